"""What was deleted and can be restored: who may, and what is known of it."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, delete, select

from headgate.access.decision import DENIED, Decision
from headgate.access.facts import Grant, Layer, Table, Volume
from headgate.edge.call import Call
from headgate.governance.changes.targets import Targets
from headgate.lakehouse.models import deleted_item_table

_deleted = deleted_item_table.c


def one(connection: Connection, identifier: str) -> Any:
    """The row of something deleted, or None."""
    found = select(deleted_item_table).where(_deleted.id == identifier)
    return connection.execute(found).mappings().one_or_none()


def forget(connection: Connection, identifier: str) -> None:
    """Drop the row: it was restored, or is gone for good."""
    connection.execute(delete(deleted_item_table).where(_deleted.id == identifier))


def is_marked(kept: dict[str, Any]) -> bool:
    """Whether its end has begun: then only the folders to delete are left of what was kept."""
    return "folders" in kept


def thing(call: Call, row: Any) -> Layer | Table | Volume:
    """Something deleted as decisions see it: its own grants as they were, those of its layer as they are."""
    grants = tuple(_grant(kept) for kept in row["kept"]["rows"].get("grants", ()))
    if row["kind"] == "layer":
        return Layer(id=row["id"], name=row["name"], grants=grants)
    layer = call.facts.thing(row["layer_id"])
    kind = Table if row["kind"] == "table" else Volume
    return kind(id=row["id"], name=row["name"], layer=layer, grants=grants)


def _grant(kept: dict[str, Any]) -> Grant:
    ends = kept["expires_at"]
    return Grant(kept["grantee_id"], kept["level"], datetime.fromisoformat(ends) if ends else None)


def decide(call: Call, row: Any) -> Decision:
    """Whether the caller may restore it: whoever may delete it, as its grants were and its layer's are.

    Nobody may whose time is over, whether or not it is gone already."""
    if row["purge_at"] <= call.now or is_marked(row["kept"]):
        return DENIED
    targets = Targets(call.facts, call.subject, call.caller.narrowing)
    return targets.decide("delete", thing(call, row))


def restorable(call: Call, rows: Sequence[Any]) -> list[Any]:
    """Of these, what the caller may restore."""
    return [row for row in rows if decide(call, row)]
