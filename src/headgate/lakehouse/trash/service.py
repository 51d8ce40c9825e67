"""Deleted items: who may restore them, and their details."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, Text, cast, delete, func, literal, select, tuple_

from headgate.access.decision import DENIED, Decision
from headgate.access.facts import Grant, Layer, Table, Volume
from headgate.kit.columns import UtcDateTime
from headgate.kit.errors import Invalid
from headgate.kit.paging import Cursor
from headgate.lakehouse.items.schemas import LakeDeleted
from headgate.lakehouse.trash.models import deleted_item_table
from headgate.organization.access.changes.targets import Targets
from headgate.organization.members.schemas import Named
from headgate.platform.authorization.models import resource_table
from headgate.platform.directory.models import member_table
from headgate.platform.unit_of_work.call import Call

_deleted = deleted_item_table.c


def one(connection: Connection, identifier: str) -> Any:
    """The row of a deleted item, or None."""
    query = select(deleted_item_table).where(_deleted.id == identifier)
    return connection.execute(query).mappings().one_or_none()


def forget(connection: Connection, identifier: str) -> None:
    """Delete the row after a restore or purge."""
    connection.execute(delete(deleted_item_table).where(_deleted.id == identifier))


def is_marked(kept: dict[str, Any]) -> bool:
    """Whether purging has started: then only the folders to delete are retained."""
    return "folders" in kept


def thing(call: Call, row: Any) -> Layer | Table | Volume:
    """A deleted item for authorization: with its own former grants and the current ones of its layer."""
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
    """Whether the caller may restore an item: members who could delete it, by its former grants and its layer's current
    ones.

    After the retention, nobody may, even if it is not purged yet.
    """
    if row["purge_at"] <= call.now or is_marked(row["kept"]):
        return DENIED
    targets = Targets(call.facts, call.subject, call.caller.narrowing)
    return targets.decide("delete", thing(call, row))


def shown(row: Any, layer: str, by: Named | None) -> LakeDeleted:
    """A deleted item as an API schema."""
    return LakeDeleted(
        id=row["id"],
        kind=row["kind"],
        name=f"{layer}.{row['name']}" if layer else row["name"],
        deleted_at=row["deleted_at"],
        deleted_by=by,
        restore_until=row["purge_at"],
    )


BATCH = 200


def page(call: Call, limit: int, after: Cursor | None, purpose: str) -> tuple[list[LakeDeleted], str | None]:
    """A page of items that the caller may restore, newest first."""
    results: list[Any] = []
    while len(results) <= limit:
        rows = _batch(call, after)
        results += [row for row in rows if decide(call, row)]
        if len(rows) < BATCH:
            break
        after = _place(rows[-1])
    chosen, more = results[:limit], len(results) > limit
    names = _layer_names(call.connection, chosen)
    items = [shown(row, names.get(row["layer_id"], "") if row["kind"] != "layer" else "", _by(row)) for row in chosen]
    return items, _place(chosen[-1]).encode(purpose) if more else None


def _place(row: Any) -> Cursor:
    return Cursor(row["deleted_at"].isoformat(), row["id"])


def _batch(call: Call, after: Cursor | None) -> list[Any]:
    """The next rows, with only the retained data that the decision needs, because a volume may have many files."""
    columns = [column for column in deleted_item_table.columns if column.name != "kept"]
    query = (
        select(*columns, _kept_grants(call.connection).label("grants"), member_table.c.name.label("by_name"))
        .outerjoin(member_table, (member_table.c.id == _deleted.deleted_by_id) & member_table.c.removed_at.is_(None))
        .where(_deleted.purge_at > call.now)
        .order_by(_deleted.deleted_at.desc(), _deleted.id.desc())
        .limit(BATCH)
    )
    if after is not None:
        query = query.where(
            tuple_(_deleted.deleted_at, _deleted.id) < tuple_(literal(_instant(after.value), UtcDateTime), after.id)
        )
    result = []
    for row in call.connection.execute(query).mappings():
        grants = row["grants"]
        kept = json.loads(grants) if isinstance(grants, str) else grants
        result.append({**row, "kept": {"rows": {"grants": kept or []}}})
    return result


def _kept_grants(connection: Connection) -> Any:
    if connection.dialect.name == "sqlite":
        return func.json_extract(_deleted.kept, "$.rows.grants")
    return cast(func.json_extract_path(_deleted.kept, "rows", "grants"), Text)


def _instant(text: str) -> datetime:
    """The time in a cursor; Invalid for a forged cursor."""
    try:
        moment = datetime.fromisoformat(text)
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        raise Invalid("cursor: invalid cursor; omit it to start from the first page") from None


def _by(row: Any) -> Named | None:
    return Named(id=row["deleted_by_id"], name=row["by_name"]) if row["by_name"] is not None else None


def _layer_names(connection: Connection, rows: Sequence[Any]) -> dict[str, str]:
    """The names of layers, including deleted ones."""
    ids = {row["layer_id"] for row in rows}
    alive = select(resource_table.c.id, resource_table.c.name).where(resource_table.c.id.in_(ids))
    gone = select(_deleted.id, _deleted.name).where(_deleted.id.in_(ids))
    return {identifier: name for query in (gone, alive) for identifier, name in connection.execute(query)}
