"""Volume endpoints. The endpoints of files are separate."""

from typing import Annotated

from fastapi import Query

from headgate.kit.errors import Conflict
from headgate.kit.names import MAX_LENGTH
from headgate.kit.paging import DEFAULT_LIMIT
from headgate.lakehouse.files.endpoints import VolumeId
from headgate.lakehouse.files.guards import MemberOn
from headgate.lakehouse.items import presentation, service
from headgate.lakehouse.items.changes import change_item
from headgate.lakehouse.items.descriptions import ITSELF, describe
from headgate.lakehouse.items.schemas import GrantPage, LakeDeleted, LakePage, LakeResource, NewVolume, VolumePatch
from headgate.lakehouse.layers.endpoints import Sort
from headgate.lakehouse.trash import deletion
from headgate.platform.authorization.repository import ResourceSort
from headgate.platform.http.guards import SignedIn
from headgate.platform.http.paging import After, Limit, Prefix
from headgate.platform.http.routes import Audit, GovernedRouter
from headgate.platform.unit_of_work.call import Call

router = GovernedRouter(prefix="/api/volumes", tags=["volumes"])

InLayer = Annotated[
    str | None, Query(max_length=MAX_LENGTH, description="Only in this layer, by name or id", examples=["raw"])
]


@router.governed("GET", "", SignedIn("sees the volumes that they may see"), Audit.reads)
def list_volumes(
    call: Call,
    layer: InLayer = None,
    sort: Sort = ResourceSort.name,
    prefix: Prefix = "",
    limit: Limit = DEFAULT_LIMIT,
    cursor: After = None,
) -> LakePage:
    """List volumes; without a layer, a prefix starts with the layer's name: `raw.inv`."""
    return presentation.listed(call, "volume", sort, prefix, limit, cursor, layer)


@router.governed(
    "POST", "", SignedIn("makes volumes in the layers that they may edit"), Audit.changes, errors=[Conflict]
)
def create_volume(call: Call, body: NewVolume) -> LakeResource:
    """Create a volume in a layer on which the caller is Editor."""
    layer = presentation.layer_asked(call, body.layer)
    volume = service.create_item(call, "volume", layer, body.name)
    if body.title or body.description:
        describe(call, volume, {ITSELF: {"title": body.title, "description": body.description}})
    return presentation.one(call, volume)


@router.governed("GET", "/{volume_id}", MemberOn("see"), Audit.reads)
def get_volume(call: Call, volume_id: VolumeId) -> LakeResource:
    """Get a volume with the caller's actions on it."""
    call.note_read("see", "volume", volume_id)
    return presentation.one(call, volume_id)


@router.governed("PATCH", "/{volume_id}", MemberOn("see"), Audit.changes, errors=[Conflict])
def change_volume(call: Call, volume_id: VolumeId, body: VolumePatch) -> LakeResource:
    """Change the title or description, which requires *describe*; or the name or layer, which requires *delete* on the
    volume and Editor on the target layer.

    Grants remain, because they refer to the id.
    """
    change_item(call, volume_id, body)
    return presentation.one(call, volume_id)


@router.governed("DELETE", "/{volume_id}", MemberOn("delete"), Audit.changes, errors=[Conflict])
def delete_volume(call: Call, volume_id: VolumeId) -> LakeDeleted:
    """Delete a volume with its files; it can be restored for a while."""
    deletion.delete_item(call, volume_id)
    return deletion.deleted(call, volume_id)


@router.governed("GET", "/{volume_id}/grants", MemberOn("see_access"), Audit.reads)
def list_volume_grants(
    call: Call, volume_id: VolumeId, limit: Limit = DEFAULT_LIMIT, cursor: After = None
) -> GrantPage:
    """List the grants on a volume and on its layer: who, which level, until when, and by whom."""
    return presentation.grants(call, volume_id, limit, cursor)
