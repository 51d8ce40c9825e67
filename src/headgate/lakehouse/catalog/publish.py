"""Publishes the outputs of a run atomically, if none has changed since its base version."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, delete, select

from headgate.access.decision import Decision
from headgate.kit.errors import Conflict
from headgate.lakehouse.catalog import pointers
from headgate.lakehouse.catalog.models import run_pointer_table, table_pointer_table
from headgate.lakehouse.catalog.pointers import Author, Counts, Move, Pointer
from headgate.lakehouse.items.service import create_item
from headgate.platform.unit_of_work.call import Call, Caller
from headgate.platform.unit_of_work.services import Services

PUBLISHED = "run.published"
_own, _pointers = run_pointer_table.c, table_pointer_table.c


class TableMoved(Conflict):
    """Another writer changed an output since the run's base version; the run starts over."""

    code, title = "table_moved", "A table was changed since the run started; run the pipeline again"


def publish_outputs(
    services: Services,
    connection: Connection,
    now: datetime,
    run_id: str,
    fence: int,
    member: str,
    author: Author,
    states: Mapping[str, Any],
) -> list[Move]:
    """Publish the outputs of a run for its member.

    After TableMoved or a refusal of the rule tables, the transaction must be rolled back.
    """
    call = Call(connection, now, Caller(member), services)
    moves = [move for row in _outputs(connection, run_id, fence) if (move := _published(call, row)) is not None]
    if moves:
        pointers.enter(connection, moves, now, author, states)
    for move in moves:
        after = {"run": run_id, "version": move.to.version, "snapshot": move.to.snapshot_id}
        event = call.event(PUBLISHED, allowed=True, action="edit", kind="table", resource_id=move.table_id, after=after)
        call.record(event)
    forget(connection, run_id)
    return moves


def forget(connection: Connection, run_id: str) -> None:
    """Drop the pointers of a run that was published or has ended. Maintenance removes the files."""
    connection.execute(delete(run_pointer_table).where(_own.run_id == run_id))


def _outputs(connection: Connection, run_id: str, fence: int) -> Sequence[Any]:
    mine = (_own.run_id == run_id, _own.fence == fence)
    query = select(run_pointer_table).where(*mine).order_by(_own.table_id)
    return connection.execute(query).mappings().all()


def _published(call: Call, row: Any) -> Move | None:
    """Move one output's pointer from its base to the run's version; None if the run only read it."""
    if row["base_version"] is None:
        return _created(call, row)
    if row["version"] == row["base_version"]:
        return None
    _require(call, row)
    there = select(table_pointer_table).where(_pointers.table_id == row["table_id"])
    result = call.connection.execute(there).mappings().one_or_none()
    if result is None or result["version"] != row["base_version"]:
        raise TableMoved
    base = Pointer(
        result["uuid"], result["version"], result["metadata_file"], result["metadata_sha256"], result["snapshot_id"]
    )
    move = _move(row, base, base.version + 1)
    if not pointers.swap(call.connection, move, call.now, call.caller.member):
        raise TableMoved
    return move


def _created(call: Call, row: Any) -> Move:
    """Create an output that existed only in the run."""
    move = _move(row, None, 1)
    if call.facts.thing(row["table_id"]) is not None:
        _require(call, row)
        there = select(_pointers.version).where(_pointers.table_id == row["table_id"])
        if call.connection.execute(there).first() is not None:
            raise TableMoved
    else:
        try:
            create_item(call, "table", row["layer_id"], row["name"], item_id=row["table_id"])
        except Conflict:
            raise TableMoved("Another table now has the name of an output; run the pipeline again") from None
    pointers.create(call.connection, move, call.now, call.caller.member)
    return move


def _require(call: Call, row: Any) -> Decision:
    return call.require("edit", "table", row["table_id"])


def _move(row: Any, base: Pointer | None, version: int) -> Move:
    to = Pointer(row["uuid"], version, row["metadata_file"], row["metadata_sha256"], row["snapshot_id"])
    counts = Counts(row["rows"], row["bytes"], row["files"])
    return Move(row["table_id"], base, to, counts, "publish", base.snapshot_id if base else None)
