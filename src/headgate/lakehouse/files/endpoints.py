"""File endpoints of volumes: list, upload, download and delete."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from anyio import CapacityLimiter
from fastapi import Header, Path, Query, Request, Response

from headgate.contracts.volume_paths import MAX_CHARACTERS, check_prefix
from headgate.kit.errors import Conflict, Invalid, NoSuchRange, NotFound, TooManyAttempts, TooSlow, VersionConflict
from headgate.kit.names import BadName
from headgate.kit.paging import DEFAULT_LIMIT
from headgate.lakehouse.files import repository, service
from headgate.lakehouse.files.guards import MemberOn
from headgate.lakehouse.files.media_types import OCTETS
from headgate.lakehouse.files.responses import READING, ByteRange, FileAnswer, headers_of, is_among, span_of
from headgate.lakehouse.files.schemas import FileDeleted, FileOut, FilePage
from headgate.lakehouse.files.service import ReplaceCondition
from headgate.platform.http.bodies import Body
from headgate.platform.http.middleware import IS_HEAD
from headgate.platform.http.paging import After, Limit
from headgate.platform.http.routes import Audit, GovernedRouter
from headgate.platform.unit_of_work.call import Call
from headgate.platform.unit_of_work.stages import Stages
from headgate.warehouse.store import Missing

router = GovernedRouter(prefix="/api/volumes", tags=["files"])

TAKING = CapacityLimiter(16)
"""Threads that read request bodies. A slow client holds one of these and delays no other request."""
ATTEMPTS = 3

VolumeId = Annotated[str, Path(pattern="^vol_[0-9a-z]{20}$", examples=["vol_01k6x3v9c2m4n8p0q7rs"])]
FilePath = Annotated[str, Path(description="The path, with slashes between its parts", examples=["2026/march.csv"])]
MAX_TAGS = 4000


@router.governed("GET", "/{volume_id}/files", MemberOn("see"), Audit.reads)
def list_files(
    call: Call,
    volume_id: VolumeId,
    prefix: Annotated[str, Query(max_length=MAX_CHARACTERS, description="Only paths that start with this")] = "",
    delimiter: Annotated[
        Literal["/"] | None, Query(description="Group paths below the next slash into folders")
    ] = None,
    limit: Limit = DEFAULT_LIMIT,
    cursor: After = None,
) -> FilePage:
    """List files by path; with a delimiter, as folders."""
    try:
        begin = check_prefix(prefix)
    except BadName as error:
        raise Invalid(f"prefix: {error}") from None
    page = repository.page(call.connection, volume_id, begin, limit, cursor, by_folder=delimiter is not None)
    call.note_read("see", "volume", volume_id)
    return FilePage(items=page.files, folders=page.folders, next_cursor=page.next_cursor)


@router.governed(
    "PUT",
    "/{volume_id}/files/{path:path}",
    MemberOn("edit"),
    Audit.changes,
    errors=[Conflict, VersionConflict, TooManyAttempts, TooSlow],
    takes=OCTETS,
    staged=True,
    limiter=TAKING,
)
def put_file(
    stages: Stages,
    request: Request,
    volume_id: VolumeId,
    path: FilePath,
    overwrite: Annotated[bool, Query(description="Whether an existing file may be replaced")] = False,
    if_match: Annotated[
        str | None, Header(max_length=MAX_TAGS, description="Replace the file only if it has this checksum")
    ] = None,
    content_type: Annotated[str | None, Header(max_length=200, include_in_schema=False)] = None,
) -> FileOut:
    """Upload a file as the body of one request. For large files, use a resumable upload.

    A path consists of parts separated by slashes. No part is empty, `.` or `..`, contains a backslash or control
    character, or starts or ends with a space. A part has at most 255 bytes, a path at most 1,000 characters and 2,000
    bytes. A path that differs from an existing one only in case or Unicode normalization is rejected.
    """
    return service.put(stages, volume_id, path, Body(request), content_type, ReplaceCondition(overwrite, if_match))


@router.governed(
    "GET",
    "/{volume_id}/files/{path:path}",
    MemberOn("see"),
    Audit.reads,
    errors=[NoSuchRange],
    text="*/*",
    also={206: "The requested range", 304: "The file has not changed"},
    staged=True,
    limiter=READING,
)
def get_file(
    stages: Stages,
    request: Request,
    volume_id: VolumeId,
    path: FilePath,
    if_none_match: Annotated[
        str | None, Header(max_length=MAX_TAGS, description="The checksum of the caller's copy")
    ] = None,
    if_range: Annotated[
        str | None, Header(max_length=MAX_TAGS, description="Send the range only if the file has this checksum")
    ] = None,
    range_: Annotated[str | None, Header(alias="Range", max_length=200, description="One range: `bytes=0-99`")] = None,
) -> Response:
    """Download a file or one range of it. The ETag is the file's SHA-256.

    The response is always an attachment, with a media type that browsers do not execute.
    """
    wanted = FileRequest(volume_id, path, range_, if_range, if_none_match, bool(request.scope.get(IS_HEAD)))
    for _ in range(ATTEMPTS):
        row, span, answer = stages.read(wanted.look)
        if answer is not None:
            return answer
        try:
            return FileAnswer(service.opened(stages.services.store, volume_id, row["id"]), row, span)
        except Missing:
            continue  # The file was replaced meanwhile and has a new row.
    raise NotFound(service.missing(path))


@dataclass(frozen=True, slots=True)
class FileRequest:
    """A file request."""

    volume: str
    path: str
    range_: str | None
    if_range: str | None
    if_none_match: str | None
    is_head: bool

    def look(self, call: Call) -> tuple[Any, ByteRange | None, Response | None]:
        """The file's row and the byte range to send, which is audited; or a response without content."""
        decision = call.require("see", "volume", self.volume)
        row = repository.one(call.connection, self.volume, service.checked(self.path))
        if row is None:
            raise NotFound(service.missing(self.path))
        if self.if_none_match is not None and is_among(row["sha256"], self.if_none_match, weakly=True):
            return row, None, Response(status_code=304, headers={"ETag": f'"{row["sha256"]}"'})
        is_same = self.if_range is None or is_among(row["sha256"], self.if_range)
        span = span_of(self.range_, row["size"]) if is_same else None
        if self.is_head:
            return row, span, Response(status_code=206 if span else 200, headers=headers_of(row, span))
        told = {"file": row["id"], "path": row["path"], "range": self.range_ if span else None}
        call.note_data("see", "volume", self.volume, decision, **told)
        return row, span, None


@router.governed("DELETE", "/{volume_id}/files/{path:path}", MemberOn("edit"), Audit.changes, staged=True)
def delete_file(stages: Stages, volume_id: VolumeId, path: FilePath) -> FileDeleted:
    """Delete a file permanently."""
    result = service.remove(stages, volume_id, path)
    return FileDeleted(id=result["id"], path=result["path"])
