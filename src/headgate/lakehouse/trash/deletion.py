"""Deletes and restores layers, tables and volumes in the transaction of the call."""

from datetime import timedelta

from sqlalchemy import Connection, insert

from headgate.kit.errors import Conflict, Denied, NotFound
from headgate.kit.ids import kind_of
from headgate.kit.names import name_key
from headgate.lakehouse.items import service as items
from headgate.lakehouse.items.schemas import LakeDeleted
from headgate.lakehouse.trash import retained_rows
from headgate.lakehouse.trash import service as trash
from headgate.lakehouse.trash.models import deleted_item_table
from headgate.organization.access.changes.reach import dependents
from headgate.organization.members.schemas import Named
from headgate.platform.authorization import writer
from headgate.platform.unit_of_work.call import Call


def delete_item(call: Call, item_id: str) -> None:
    """Delete a layer, table or volume. It can be restored until it is purged. Its name is free immediately."""
    kind = items.kind_of_item(call, item_id)
    decision = call.require("delete", kind, item_id)
    _refuse_in_use(call.connection, item_id)
    row = items.resource_row(call.connection, item_id)
    touched = dependents(call.connection, [item_id]) - {item_id}
    touched |= {row["scope_id"]} - {""}
    kept = retained_rows.keep(call.connection, item_id)
    writer.remove(call.connection, [item_id], affected=touched)
    days = call.settings.warehouse.deleted_days
    deleted = {
        "id": item_id,
        "kind": kind,
        "layer_id": row["scope_id"] or item_id,
        "name": row["name"],
        "kept": kept,
        "deleted_at": call.now,
        "deleted_by_id": call.caller.member,
        "purge_at": call.now + timedelta(days=days),
    }
    call.connection.execute(insert(deleted_item_table).values(deleted))
    after = {"change": f"delete_{kind}"}
    call.record_change(decision, "delete", kind, item_id, before={"name": row["name"]}, after=after)


_RUN = "a run is writing to it; wait until the run has ended"
_USES = {
    "lake_items": (
        "it contains a table or volume; delete or move that first",
        "it contains {count} tables and volumes; delete or move them first",
    ),
    "pipelines": (
        "a pipeline writes to it; change the output layer of the pipeline first",
        "{count} pipelines write to it; change the output layers of the pipelines first",
    ),
    "run_pointers": (_RUN, _RUN),
}
"""Reasons why an item cannot be deleted, in singular and plural."""


def _refuse_in_use(connection: Connection, item: str) -> None:
    for table, count in retained_rows.users(connection, item).items():
        value, several = _USES.get(table, ("it is in use", "it is in use"))
        raise Conflict("Cannot delete it: " + (value if count == 1 else several).format(count=count))


def restore_item(call: Call, item_id: str, *, name: str | None = None) -> str:
    """Restore a deleted layer, table or volume under its own id, with its grants and references.

    It requires the same rights as the deletion; under another name, also those of a rename.
    """
    row = trash.one(call.connection, item_id)
    decision = trash.decide(call, row) if row else None
    if row is None or not decision:
        call.note_denial("restore", kind_of(item_id) or "", item_id)
        raise NotFound
    kind, wanted = row["kind"], items.checked_name(name) if name is not None else row["name"]
    layer = row["layer_id"] if kind in items.ITEMS else ""
    if layer and call.facts.thing(layer) is None:
        raise Conflict("Its layer was deleted too; restore the layer first")
    if wanted != row["name"]:
        _require_naming(call, kind, layer)
    kept = _renamed(row["kept"], wanted)

    def affected() -> set[str]:
        return dependents(call.connection, [item_id]) | ({layer} - {""})

    taken = items.uniquely(kind, wanted, "; give a new name to restore it")
    with taken, writer.access_change(call.connection, affected):
        retained_rows.restore_rows(call.connection, item_id, kept, call.now)
    trash.forget(call.connection, item_id)
    after = {"change": f"restore_{kind}", "name": wanted, "layer": layer or None}
    call.record_change(decision, "restore", kind, item_id, before={}, after=after)
    return item_id


def _require_naming(call: Call, kind: str, layer: str) -> None:
    """Refuse another name to callers who may not create an item there, because the error for a taken name would reveal
    hidden items.
    """
    if kind == "layer":
        call.require("create_layer", "organization", "organization")
    elif not items.decide_create(call, kind, layer):
        call.note_denial("create", kind, layer)
        raise Denied(
            "Restoring it under another name requires Editor on its layer; you may restore it under its own name"
        )


def _renamed(kept: retained_rows.Kept, name: str) -> retained_rows.Kept:
    rows = {table: list(result) for table, result in kept["rows"].items()}
    rows["resources"] = [{**value, "name": name, "name_key": name_key(name)} for value in rows["resources"]]
    return {**kept, "rows": rows}


def deleted(call: Call, identifier: str) -> LakeDeleted:
    """The deleted item as shown to the member who deleted it."""
    row = trash.one(call.connection, identifier)
    layer = items.full_name(call.connection, row["layer_id"]) if row["kind"] != "layer" else ""
    return trash.shown(row, layer, Named(id=call.caller.member, name=call.subject.name))
