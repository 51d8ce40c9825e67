"""Database access to passes and their results."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, case, delete, func, insert, select, update
from sqlalchemy.engine import RowMapping
from sqlalchemy.exc import IntegrityError

from headgate.kit.ids import new_id
from headgate.lakehouse.maintenance.models import maintenance_pass_table, maintenance_table_table, table_rewrite_table
from headgate.lakehouse.maintenance.table_maintenance import MaintenanceResult
from headgate.lakehouse.models import lake_item_table
from headgate.platform.authorization.models import resource_table
from headgate.platform.jobs.models import ACTIVE, WAITING

OPEN = ("queued", "running", "compacting")
KIND = "maintenance"
_passes, _tables, _items = maintenance_pass_table.c, maintenance_table_table.c, lake_item_table.c
_rewrites = table_rewrite_table.c


def ask(
    connection: Connection,
    now: datetime,
    *,
    table_id: str | None = None,
    dry_run: bool = False,
    member: str | None = None,
    due: datetime | None = None,
) -> str | None:
    """Insert a pass; returns its id, or None if the pass for this due time exists already."""
    identifier = new_id(KIND)
    row = {
        "id": identifier,
        "state": "queued",
        "dry_run": dry_run,
        "table_id": table_id,
        "asked_by_id": member,
        "due_at": due,
        "asked_at": now,
        "tables": 0,
        "looked_at": 0,
    }
    try:
        with connection.begin_nested():
            connection.execute(insert(maintenance_pass_table).values(row))
    except IntegrityError:
        return None
    return identifier


def is_open(connection: Connection) -> bool:
    """Whether a pass is open."""
    return connection.execute(select(_passes.id).where(_passes.state.in_(OPEN)).limit(1)).first() is not None


def first_open(connection: Connection) -> RowMapping | None:
    """The pass in progress, or the oldest queued one."""
    here = _passes.state.in_(("running", "queued"))
    query = select(maintenance_pass_table).where(here).order_by(_passes.state.desc(), _passes.id).limit(1)
    return connection.execute(query).mappings().one_or_none()


def compacting(connection: Connection) -> list[str]:
    """Passes that wait only for compactions."""
    query = select(_passes.id).where(_passes.state == "compacting").order_by(_passes.id)
    return list(connection.execute(query).scalars())


def one(connection: Connection, pass_id: str) -> RowMapping | None:
    """A pass."""
    query = select(maintenance_pass_table).where(_passes.id == pass_id)
    return connection.execute(query).mappings().one_or_none()


def newest(connection: Connection, limit: int, before: str | None = None) -> Sequence[RowMapping]:
    """The newest passes, optionally before a given one."""
    query = select(maintenance_pass_table).order_by(_passes.id.desc()).limit(limit)
    if before is not None:
        query = query.where(_passes.id < before)
    return connection.execute(query).mappings().all()


def change(connection: Connection, pass_id: str, **values: Any) -> None:
    """Update columns of a pass."""
    connection.execute(update(maintenance_pass_table).where(_passes.id == pass_id).values(values))


def tables(connection: Connection, only: str | None, after: str | None) -> list[str]:
    """The tables of a pass after this id."""
    query = select(_items.id).where(_items.kind == "table", _items.id > (after or "")).order_by(_items.id)
    return list(connection.execute(query.where(_items.id == only) if only else query).scalars())


def note(connection: Connection, row: RowMapping, table_id: str, result: MaintenanceResult, now: datetime) -> None:
    """Store the results of a table and the progress of the pass."""
    change(connection, row["id"], after_id=table_id, looked_at=_passes.looked_at + 1)
    place = (_tables.pass_id == row["id"], _tables.table_id == table_id)
    connection.execute(delete(maintenance_table_table).where(*place))
    if not result.is_worth_telling:
        return
    connection.execute(
        insert(maintenance_table_table).values(
            pass_id=row["id"],
            table_id=table_id,
            outcome=result.outcome,
            note=result.note,
            snapshots=result.snapshots,
            files=result.files,
            bytes=result.bytes,
            small_files=result.small_files or None,
            planned=bool(result.small_files) and row["dry_run"],
        )
    )
    if result.small_files and not row["dry_run"]:
        _queue_rewrite(connection, row["id"], table_id, now)


def _queue_rewrite(connection: Connection, pass_id: str, table_id: str, now: datetime) -> None:
    """Queue a compaction of a table, unless one is queued already."""
    active = (_rewrites.table_id == table_id, _rewrites.state.in_(ACTIVE))
    if connection.execute(select(_rewrites.id).where(*active)).first() is None:
        row = {"id": new_id("table_rewrite"), "pass_id": pass_id, "table_id": table_id}
        connection.execute(insert(table_rewrite_table).values(**row, state=WAITING, queued_at=now))


def outcomes(connection: Connection, pass_id: str, limit: int) -> Sequence[RowMapping]:
    """The results of a pass, with the names of tables that still exist."""
    layers = resource_table.alias()
    joined = maintenance_table_table.outerjoin(resource_table, resource_table.c.id == _tables.table_id)
    joined = joined.outerjoin(layers, layers.c.id == resource_table.c.scope_id)
    same = (_rewrites.pass_id == _tables.pass_id) & (_rewrites.table_id == _tables.table_id)
    joined = joined.outerjoin(table_rewrite_table, same)
    columns = (
        *(column for column in _tables if column.name != "note"),
        func.coalesce(_rewrites.error, _tables.note).label("note"),
        case((_tables.planned, "planned"), (_rewrites.state == "succeeded", "done"), else_=_rewrites.state).label(
            "compaction"
        ),
        _rewrites.files_before,
        _rewrites.files_after,
        resource_table.c.name.label("name"),
        layers.c.name.label("layer"),
    )
    query = select(*columns).select_from(joined).where(_tables.pass_id == pass_id)
    return connection.execute(query.order_by(_tables.table_id).limit(limit)).mappings().all()


def summary(connection: Connection, pass_id: str) -> dict[str, int]:
    """The totals of a pass."""
    of_tables = {
        "skipped": _count(_tables.outcome == "skipped"),
        "failed": _count(_tables.outcome == "failed"),
        "snapshots_expired": _total(_tables.snapshots),
        "files_removed": _total(_tables.files),
        "bytes_removed": _total(_tables.bytes),
        "compactions_planned": _count(_tables.planned),
    }
    of_rewrites = {
        "compactions_open": _count(_rewrites.state.in_(ACTIVE)),
        "compactions_failed": _count(_rewrites.state == "failed"),
        "tables_compacted": _count(_rewrites.state == "succeeded"),
        "files_before": _total(_rewrites.files_before),
        "files_after": _total(_rewrites.files_after),
    }
    tables = _added_up(connection, of_tables, _tables.pass_id == pass_id)
    return tables | _added_up(connection, of_rewrites, _rewrites.pass_id == pass_id)


def _added_up(connection: Connection, columns: dict[str, Any], which: Any) -> dict[str, int]:
    row = connection.execute(select(*columns.values()).where(which)).one()
    return {name: int(value) for name, value in zip(columns, row, strict=True)}


def _total(column: Any) -> Any:
    return func.coalesce(func.sum(column), 0)


def _count(condition: Any) -> Any:
    return _total(case((condition, 1), else_=0))


def forget(connection: Connection, before: datetime) -> None:
    """Delete passes that ended before `before`."""
    connection.execute(delete(maintenance_pass_table).where(_passes.ended_at < before))
