"""Trash endpoints. Members who may restore an item see it until it is purged."""

from typing import Annotated

from fastapi import Path

from headgate.kit.errors import Conflict
from headgate.kit.paging import DEFAULT_LIMIT
from headgate.lakehouse.items import presentation
from headgate.lakehouse.items.schemas import DeletedPage, LakeResource, Restore
from headgate.lakehouse.trash import deletion
from headgate.lakehouse.trash import service as trash
from headgate.platform.http.guards import SignedIn
from headgate.platform.http.paging import After, Limit, begins_after
from headgate.platform.http.routes import Audit, GovernedRouter
from headgate.platform.unit_of_work.call import Call

router = GovernedRouter(prefix="/api/deleted", tags=["deleted"])

DeletedId = Annotated[str, Path(pattern="^(lay|tbl|vol)_[0-9a-z]{20}$", examples=["tbl_01k6x3v9c2m4n8p0q7rs"])]
_PURPOSE = "deleted"


@router.governed("GET", "", SignedIn("sees what they may restore"), Audit.reads)
def list_deleted_items(call: Call, limit: Limit = DEFAULT_LIMIT, cursor: After = None) -> DeletedPage:
    """List deleted layers, tables and volumes that the caller may restore, newest first."""
    items, following = trash.page(call, limit, begins_after(cursor, _PURPOSE), _PURPOSE)
    call.note_read("see", "deleted", None)
    return DeletedPage(items=items, next_cursor=following)


@router.governed(
    "POST", "/{deleted_id}/restore", SignedIn("restores what they could delete"), Audit.changes, errors=[Conflict]
)
def restore_deleted_item(call: Call, deleted_id: DeletedId, body: Restore) -> LakeResource:
    """Restore an item under its own id, with its unexpired grants, its texts, and its references.

    If its name is taken, provide another; that requires Editor on its layer.
    """
    deletion.restore_item(call, deleted_id, name=body.name)
    return presentation.one(call, deleted_id)
