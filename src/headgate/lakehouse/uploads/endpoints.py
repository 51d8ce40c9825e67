"""Uploads in parts over HTTP: begin, send parts, see how far it is, finish or cancel."""

from typing import Annotated

from anyio import CapacityLimiter
from fastapi import Header, Path, Request

from headgate.kit.errors import Conflict, TooManyAttempts, TooSlow
from headgate.lakehouse.files.endpoints import TAKING, VolumeId
from headgate.lakehouse.files.guards import MemberOn
from headgate.lakehouse.files.media_types import OCTETS
from headgate.lakehouse.files.schemas import (
    FileOut,
    UploadBegin,
    UploadCancelled,
    UploadFinish,
    UploadList,
    UploadOut,
)
from headgate.lakehouse.uploads import repository, service
from headgate.platform.http.bodies import Body
from headgate.platform.http.guards import SignedIn
from headgate.platform.http.routes import Audit, GovernedRouter
from headgate.platform.unit_of_work.call import Call
from headgate.platform.unit_of_work.stages import Stages

router = GovernedRouter(prefix="/api", tags=["files"])

JOINING = CapacityLimiter(4)
"""Threads that make parts one file: as many as a disk can serve at a time."""
OWN = SignedIn("goes on with an upload of their own, with edit on its volume")

UploadId = Annotated[str, Path(pattern="^upl_[0-9a-z]{20}$", examples=["upl_01k6x3v9c2m4n8p0q7rs"])]


@router.governed("POST", "/volumes/{volume_id}/uploads", MemberOn("edit"), Audit.changes, errors=[Conflict])
def create_upload(call: Call, volume_id: VolumeId, body: UploadBegin) -> UploadOut:
    """Announce a file that is sent in parts; then PATCH the parts, and finish. Only its beginner goes on with it."""
    return service.begin(call, volume_id, body)


@router.governed("GET", "/volumes/{volume_id}/uploads", MemberOn("edit"), Audit.nothing)
def list_uploads(call: Call, volume_id: VolumeId) -> UploadList:
    """The caller's uploads that can be gone on with, the newest first."""
    rows = repository.of_member(call.connection, volume_id, call.caller.member, call.now)
    return UploadList(items=[service.listed(row) for row in rows])


@router.governed("GET", "/uploads/{upload_id}", OWN, Audit.nothing)
def get_upload(call: Call, upload_id: UploadId) -> UploadOut:
    """An upload, with the byte at which to go on; a HEAD has it in `Upload-Offset`."""
    return service.shown(call, service.own(call, upload_id))


@router.governed(
    "PATCH",
    "/uploads/{upload_id}",
    OWN,
    Audit.changes,
    errors=[Conflict, TooManyAttempts, TooSlow],
    takes=OCTETS,
    staged=True,
    limiter=TAKING,
)
def append_to_upload(
    stages: Stages,
    request: Request,
    upload_id: UploadId,
    upload_offset: Annotated[int, Header(ge=0, le=1 << 60, description="The offset of the part")],
) -> UploadOut:
    """Send bytes that go on at `Upload-Offset`. Elsewhere than at the offset it is a conflict, which names the offset.

    Of a long body, every 32 MiB are safe as they come; after a broken connection, look how far it is and go on.
    """
    return service.append(stages, upload_id, upload_offset, Body(request))


@router.governed(
    "POST", "/uploads/{upload_id}/finish", OWN, Audit.changes, errors=[Conflict], staged=True, limiter=JOINING
)
def finish_upload(stages: Stages, upload_id: UploadId, body: UploadFinish) -> FileOut:
    """Make the parts a file of the volume. Repeating it gives the same file."""
    return service.finish(stages, upload_id, body.sha256)


@router.governed("DELETE", "/uploads/{upload_id}", OWN, Audit.changes, staged=True)
def cancel_upload(stages: Stages, upload_id: UploadId) -> UploadCancelled:
    """Give an upload up; its parts are removed."""
    service.cancel(stages, upload_id)
    return UploadCancelled(id=upload_id)
