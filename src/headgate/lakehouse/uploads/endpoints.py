"""Endpoints of resumable uploads: start, send parts, get the offset, finish or cancel."""

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
"""Threads that join parts; as many as a disk serves well at a time."""
OWN = SignedIn("goes on with an upload of their own, with edit on its volume")

UploadId = Annotated[str, Path(pattern="^upl_[0-9a-z]{20}$", examples=["upl_01k6x3v9c2m4n8p0q7rs"])]


@router.governed("POST", "/volumes/{volume_id}/uploads", MemberOn("edit"), Audit.changes, errors=[Conflict])
def create_upload(call: Call, volume_id: VolumeId, body: UploadBegin) -> UploadOut:
    """Start a resumable upload; then PATCH the parts and finish. Only the member who started it can continue it."""
    return service.begin(call, volume_id, body)


@router.governed("GET", "/volumes/{volume_id}/uploads", MemberOn("edit"), Audit.nothing)
def list_uploads(call: Call, volume_id: VolumeId) -> UploadList:
    """List the caller's uploads that can be continued, newest first."""
    rows = repository.of_member(call.connection, volume_id, call.caller.member, call.now)
    return UploadList(items=[service.listed(row) for row in rows])


@router.governed("GET", "/uploads/{upload_id}", OWN, Audit.nothing)
def get_upload(call: Call, upload_id: UploadId) -> UploadOut:
    """Get an upload with its offset; HEAD returns it in `Upload-Offset`."""
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
    """Append bytes at `Upload-Offset`. Any other offset is a conflict that names the right one.

    A long body is stored durably every 32 MiB. After a lost connection, get the offset and continue.
    """
    return service.append(stages, upload_id, upload_offset, Body(request))


@router.governed(
    "POST", "/uploads/{upload_id}/finish", OWN, Audit.changes, errors=[Conflict], staged=True, limiter=JOINING
)
def finish_upload(stages: Stages, upload_id: UploadId, body: UploadFinish) -> FileOut:
    """Finish an upload as a file of the volume. Repeating this returns the same file."""
    return service.finish(stages, upload_id, body.sha256)


@router.governed("DELETE", "/uploads/{upload_id}", OWN, Audit.changes, staged=True)
def cancel_upload(stages: Stages, upload_id: UploadId) -> UploadCancelled:
    """Cancel an upload and delete its parts."""
    service.cancel(stages, upload_id)
    return UploadCancelled(id=upload_id)
