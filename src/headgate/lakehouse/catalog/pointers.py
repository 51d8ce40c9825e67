"""Metadata pointers in the database: lookup by name, compare-and-swap, and the commit ledger."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Any

from sqlalchemy import Connection, insert, select, update

from headgate.kit.database import fetch
from headgate.kit.ids import new_id
from headgate.lakehouse.catalog.models import commit_table, run_pointer_table, table_pointer_table
from headgate.lakehouse.catalog.names import Ident
from headgate.platform.authorization.models import resource_table

_pointers, _own, _resources = table_pointer_table.c, run_pointer_table.c, resource_table.c


@dataclass(frozen=True, slots=True)
class Pointer:
    """The current metadata file of a table, in general or for one run."""

    uuid: str
    version: int
    metadata_file: str
    metadata_sha256: str
    snapshot_id: int | None = None


@dataclass(frozen=True, slots=True)
class Counts:
    """Row and file counts from the current snapshot's summary."""

    rows: int | None = None
    bytes: int | None = None
    files: int | None = None


@dataclass(frozen=True, slots=True)
class BaseSnapshot:
    """The public snapshot that a run's own version of a table is based on; None for a table that exists only in the
    run.
    """

    snapshot_id: int | None


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """The result of a name lookup: the ids of the layer and the table, and the pointer, as far as they exist."""

    layer_id: str | None = None
    table_id: str | None = None
    pointer: Pointer | None = None
    is_own: bool = False
    """Whether the pointer is the run's own."""
    is_new: bool = False
    """Whether the table exists only in the run."""
    taken: BaseSnapshot | None = None
    """For a run's own pointer, the base snapshot; None if the base had no snapshot."""


@dataclass(frozen=True, slots=True)
class Move:
    """A planned pointer move, and its values for the ledger."""

    table_id: str
    base: Pointer | None
    to: Pointer
    counts: Counts
    operation: str
    parent_snapshot_id: int | None = None
    added_rows: int | None = None
    deleted_rows: int | None = None


_FIND = (
    "SELECT ly.id, it.id, p.uuid, p.version, p.metadata_file, p.metadata_sha256, p.snapshot_id FROM resources ly "
    "LEFT JOIN resources it ON it.namespace = 'table' AND it.scope_id = ly.id AND it.name_key = :name "
    "AND it.kind = 'table' AND NOT EXISTS (SELECT 1 FROM views v WHERE v.view_id = it.id) "
    "LEFT JOIN table_pointers p ON p.table_id = it.id "
    "WHERE ly.namespace = 'layer' AND ly.scope_id = '' AND ly.name_key = :layer"
)
_FIND_OWN = (
    "SELECT rp.table_id, rp.base_version, c.snapshot_id, rp.uuid, rp.version, rp.metadata_file, rp.metadata_sha256, "
    "rp.snapshot_id FROM run_pointers rp "
    "LEFT JOIN commits c ON c.table_id = rp.table_id AND c.version = rp.base_version WHERE rp.run_id = :run "
    "AND rp.fence = :fence AND (rp.table_id = :table OR (rp.layer_id = :layer AND rp.name = :name))"
)


def find(connection: Connection, ident: Ident, run: tuple[str, int] | None = None) -> CatalogEntry:
    """Look up a name, in general or for one run."""
    if not ident.layer_key or not (ident.table_key or ident.table is None):
        return CatalogEntry()
    rows = fetch(connection, _FIND, {"layer": ident.layer_key, "name": ident.table_key})
    if not rows:
        return CatalogEntry()
    layer, table, *pointer = rows[0]
    entry = CatalogEntry(layer, table, Pointer(*pointer) if pointer[0] else None)
    return _of_run(connection, ident, entry, run) if run else entry


def _of_run(connection: Connection, ident: Ident, entry: CatalogEntry, run: tuple[str, int]) -> CatalogEntry:
    asked = {"run": run[0], "fence": run[1], "table": entry.table_id, "layer": entry.layer_id, "name": ident.table_key}
    rows = fetch(connection, _FIND_OWN, asked)
    if not rows:
        return entry
    # If a table was renamed during the run, the name refers to the table that the run loaded first under it.
    table, base, snapshot, *pointer = max(rows, key=lambda row: row[0] != entry.table_id)
    own = Pointer(*pointer)
    if table != entry.table_id and base == own.version:
        # The run has only read the table, and it was deleted or renamed since, so the run no longer sees it either.
        return CatalogEntry(entry.layer_id)
    taken = BaseSnapshot(snapshot) if base is None or snapshot is not None else None
    return CatalogEntry(entry.layer_id, table, own, is_own=True, is_new=entry.table_id is None, taken=taken)


def layer_of(connection: Connection, ident: Ident) -> str | None:
    """The id of the layer for a namespace."""
    return find(connection, Ident(ident.levels)).layer_id


def pin(connection: Connection, run: tuple[str, int], entry: CatalogEntry, name: str, now: datetime) -> None:
    """Give a run its own pointer to a table, based on the public one."""
    table = select(table_pointer_table).where(_pointers.table_id == entry.table_id)
    row = connection.execute(table).mappings().one()
    kept = ("uuid", "version", "metadata_file", "metadata_sha256", "snapshot_id", "rows", "bytes", "files")
    connection.execute(
        insert(run_pointer_table).values(
            run_id=run[0],
            fence=run[1],
            table_id=entry.table_id,
            layer_id=entry.layer_id,
            name=name,
            base_version=row["version"],
            committed_at=now,
            **{column: row[column] for column in kept},
        )
    )


def pin_all(connection: Connection, run: tuple[str, int], tables: Iterable[str], now: datetime) -> None:
    """Pin the current version of these tables for a run until it ends; existing pins are kept."""
    mine = select(_own.table_id).where(_own.run_id == run[0], _own.fence == run[1])
    place = resource_table.join(table_pointer_table, _pointers.table_id == _resources.id)
    wanted = (_resources.id.in_(tables), _resources.id.not_in(mine.scalar_subquery()))
    query = select(_resources.id, _resources.scope_id, _resources.name_key).select_from(place).where(*wanted)
    for table, layer, name in connection.execute(query).all():
        pin(connection, run, CatalogEntry(layer, table), name, now)


def create(connection: Connection, move: Move, now: datetime, member: str) -> None:
    """Insert a table's first pointer."""
    values = _values(move, now)
    connection.execute(
        insert(table_pointer_table).values(table_id=move.table_id, uuid=move.to.uuid, committed_by_id=member, **values)
    )


def create_own(
    connection: Connection, run: tuple[str, int], layer_id: str, name: str, move: Move, now: datetime
) -> None:
    """Create a table that exists only in a run."""
    values = {**_values(move, now), "uuid": move.to.uuid}
    connection.execute(
        insert(run_pointer_table).values(
            run_id=run[0], fence=run[1], table_id=move.table_id, layer_id=layer_id, name=name, **values
        )
    )


def swap(connection: Connection, move: Move, now: datetime, member: str | None) -> bool:
    """Compare-and-swap a table's pointer; returns whether it succeeded."""
    base = move.base
    assert base is not None  # noqa: S101 - a first pointer is created
    place = (_pointers.table_id == move.table_id, _pointers.version == base.version)
    same = _pointers.metadata_file == base.metadata_file
    values = {**_values(move, now), "committed_by_id": member}
    return connection.execute(update(table_pointer_table).where(*place, same).values(values)).rowcount == 1


def swap_own(connection: Connection, run: tuple[str, int], move: Move, now: datetime) -> bool:
    """Compare-and-swap a run's own pointer."""
    base = move.base
    assert base is not None  # noqa: S101 - a first pointer is created
    place = (_own.run_id == run[0], _own.fence == run[1], _own.table_id == move.table_id)
    same = (_own.version == base.version, _own.metadata_file == base.metadata_file)
    done = connection.execute(update(run_pointer_table).where(*place, *same).values(_values(move, now)))
    return done.rowcount == 1


def _values(move: Move, now: datetime) -> dict[str, Any]:
    return {
        "version": move.to.version,
        "metadata_file": move.to.metadata_file,
        "metadata_sha256": move.to.metadata_sha256,
        "snapshot_id": move.to.snapshot_id,
        "rows": move.counts.rows,
        "bytes": move.counts.bytes,
        "files": move.counts.files,
        "committed_at": now,
    }


@dataclass(frozen=True, slots=True)
class Author:
    """Who moves a pointer, and for which work."""

    member: str | None
    token: str | None = None
    work: str | None = None
    run: str | None = None
    step: int | None = None
    pipeline: str | None = None


def enter(
    connection: Connection,
    moves: list[Move],
    now: datetime,
    author: Author,
    states: Mapping[str, Any] = MappingProxyType({}),
) -> None:
    """Write the moves of one commit to the ledger, with the cursor for the next run of each table."""
    group = new_id("commit")
    rows = [
        {
            "id": new_id("commit"),
            "group_id": group,
            "table_id": move.table_id,
            "version": move.to.version,
            "operation": move.operation,
            "at": now,
            "member_id": author.member,
            "token_id": author.token,
            "work_id": author.work,
            "run_id": author.run,
            "step": author.step,
            "snapshot_id": move.to.snapshot_id,
            "parent_snapshot_id": move.parent_snapshot_id,
            "added_rows": move.added_rows,
            "deleted_rows": move.deleted_rows,
            "metadata_file": move.to.metadata_file,
            "pipeline_id": author.pipeline,
            "state": states.get(move.table_id),
        }
        for move in moves
    ]
    connection.execute(insert(commit_table), rows)


def was_used(connection: Connection, table_id: str) -> bool:
    """Whether an id belongs or belonged to a table."""
    text = (
        "SELECT 1 FROM commits WHERE table_id = :id UNION ALL SELECT 1 FROM resources WHERE id = :id "
        "UNION ALL SELECT 1 FROM deleted_items WHERE id = :id"
    )
    return bool(fetch(connection, text, {"id": table_id}))
