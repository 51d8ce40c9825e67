"""Layer endpoints."""

from typing import Annotated

from fastapi import Path, Query

from headgate.kit.errors import Conflict
from headgate.kit.paging import DEFAULT_LIMIT
from headgate.lakehouse.files.guards import MemberOn
from headgate.lakehouse.items import presentation, service
from headgate.lakehouse.items.descriptions import ITSELF, describe
from headgate.lakehouse.items.schemas import GrantPage, LakeDeleted, LakePage, LakeResource, LayerPatch, NewLayer
from headgate.lakehouse.trash import deletion
from headgate.platform.authorization.repository import ResourceSort
from headgate.platform.http.guards import OnOrganization, SignedIn
from headgate.platform.http.paging import After, Limit, Prefix
from headgate.platform.http.routes import Audit, GovernedRouter
from headgate.platform.unit_of_work.call import Call

router = GovernedRouter(prefix="/api/layers", tags=["layers"])

LayerId = Annotated[str, Path(pattern="^lay_[0-9a-z]{20}$", examples=["lay_01k6x3v9c2m4n8p0q7rs"])]
Sort = Annotated[ResourceSort, Query(description="The sort order; a leading minus reverses it")]


@router.governed("GET", "", SignedIn("sees the layers that they may see"), Audit.reads)
def list_layers(
    call: Call, sort: Sort = ResourceSort.name, prefix: Prefix = "", limit: Limit = DEFAULT_LIMIT, cursor: After = None
) -> LakePage:
    """List layers: those with a grant on them, and those with a grant on an item in them."""
    return presentation.listed(call, "layer", sort, prefix, limit, cursor)


@router.governed("POST", "", OnOrganization("create_layer"), Audit.changes, errors=[Conflict])
def create_layer(call: Call, body: NewLayer) -> LakeResource:
    """Create a layer. Admins see it; other members need a grant."""
    layer = service.create_layer(call, body.name)
    if body.title or body.description:
        describe(call, layer, {ITSELF: {"title": body.title, "description": body.description}})
    return presentation.one(call, layer)


@router.governed("GET", "/{layer_id}", MemberOn("see", "layer_id"), Audit.reads)
def get_layer(call: Call, layer_id: LayerId) -> LakeResource:
    """Get a layer with the caller's actions on it."""
    call.note_read("see", "layer", layer_id)
    return presentation.one(call, layer_id)


@router.governed("PATCH", "/{layer_id}", MemberOn("see", "layer_id"), Audit.changes, errors=[Conflict])
def change_layer(call: Call, layer_id: LayerId, body: LayerPatch) -> LakeResource:
    """Change the title or description, which requires *describe*, or the name, which requires *delete* and
    create_layer.

    Grants remain, because they refer to the id.
    """
    if body.name is not None:
        service.rename_item(call, layer_id, name=body.name)
    if body.texts():
        describe(call, layer_id, {ITSELF: body.texts()})
    return presentation.one(call, layer_id)


@router.governed("DELETE", "/{layer_id}", MemberOn("delete", "layer_id"), Audit.changes, errors=[Conflict])
def delete_layer(call: Call, layer_id: LayerId) -> LakeDeleted:
    """Delete an empty layer; it can be restored for a while."""
    deletion.delete_item(call, layer_id)
    return deletion.deleted(call, layer_id)


@router.governed("GET", "/{layer_id}/grants", MemberOn("see_access", "layer_id"), Audit.reads)
def list_layer_grants(call: Call, layer_id: LayerId, limit: Limit = DEFAULT_LIMIT, cursor: After = None) -> GrantPage:
    """List the grants on a layer: who, which level, until when, and by whom. Grants are made by access changes."""
    return presentation.grants(call, layer_id, limit, cursor)
