"""The steps of a run in the database: created, started and finished, with their writes and reported state."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, delete, insert, null, select, update
from sqlalchemy.engine import RowMapping

from headgate.contracts.pipelines.steps import AnyStep, from_json, title
from headgate.kit.errors import Conflict
from headgate.lakehouse.catalog.models import run_pointer_table
from headgate.lakehouse.models import layer_table
from headgate.pipelines.planner import item_of
from headgate.pipelines.runs.models import run_step_table

_steps, _own = run_step_table.c, run_pointer_table.c


def begin_steps(connection: Connection, row: RowMapping, steps: list[AnyStep]) -> int:
    """Create the steps, or continue after the last finished one from its checkpoint; returns the number of finished
    steps.
    """
    fence, is_again = row["fence"], row["fence"] > 1
    known = _known(connection, row["id"]) if is_again else []
    finished = [row for row in known if row["state"] == "succeeded"]
    is_same = row["plan"] is not None and from_json(row["plan"]) == steps
    # Maintenance drops old checkpoints and removes their files.
    is_kept = all(row["pointers"] is not None for row in finished)
    pointers = (finished[-1]["pointers"] or []) if finished else []
    is_kept = is_kept and _have_layers(connection, pointers)
    if not finished or not is_same or not is_kept:
        if is_again:
            forget_steps(connection, row["id"])
        # External effects cannot be rolled back, so the next attempt of the same step needs its reported state.
        kept = {(row["number"], row["kind"], row["item_id"]): row["memory"] for row in known}
        rows = [
            {"run_id": row["id"], "number": number, "kind": step.kind, "title": title(step), "item_id": item_of(step)}
            | {"state": "waiting", "memory": kept.get((number, step.kind, item_of(step)))}
            for number, step in enumerate(steps)
        ]
        if rows:
            connection.execute(insert(run_step_table), rows)
        return 0
    connection.execute(
        update(run_step_table)
        .where(_steps.run_id == row["id"], _steps.state != "succeeded")
        .values(state="waiting", started_at=None, ended_at=None, result=None)
    )
    if pointers:
        values = [
            {**pointer, "run_id": row["id"], "fence": fence, "committed_at": _time(pointer)} for pointer in pointers
        ]
        connection.execute(insert(run_pointer_table), values)
    return len(finished)


def _have_layers(connection: Connection, pointers: list[dict[str, Any]]) -> bool:
    """Whether the layers of these tables still exist; between two attempts of a run, nothing locks them."""
    layers = {pointer["layer_id"] for pointer in pointers}
    query = select(layer_table.c.id).where(layer_table.c.id.in_(layers))
    return not layers or len(connection.execute(query).all()) == len(layers)


def _known(connection: Connection, run: str) -> Sequence[RowMapping]:
    mine = select(run_step_table).where(_steps.run_id == run).order_by(_steps.number)
    return connection.execute(mine).mappings().all()


def _time(pointer: dict[str, Any]) -> datetime:
    return datetime.fromisoformat(pointer["committed_at"])


def forget_steps(connection: Connection, run: str) -> None:
    """Reset a run to its start, as if no step had run."""
    connection.execute(delete(run_step_table).where(_steps.run_id == run))
    connection.execute(delete(run_pointer_table).where(_own.run_id == run))


def forget_pointers(connection: Connection, run: str) -> None:
    """Drop the checkpoints, so that the next attempt starts from the first step. The reported state of the steps is
    kept.
    """
    connection.execute(update(run_step_table).where(_steps.run_id == run).values(pointers=null()))


def note_step(
    connection: Connection, now: datetime, row: RowMapping, number: int, state: str, result: dict[str, Any]
) -> None:
    """Record the start or the result of a step. Its commits so far then survive the loss of the worker."""
    place = (_steps.run_id == row["id"], _steps.number == number)
    if state == "running":
        values: dict[str, Any] = {"state": state, "fence": row["fence"], "started_at": now, "ended_at": None}
        done = connection.execute(update(run_step_table).where(*place, _steps.state != "succeeded").values(values))
    else:
        counts = {name: result.pop(name, None) for name in ("rows_in", "rows_out", "rejected", "bytes")}
        values = {"state": state, "ended_at": now, "result": result, **counts}
        if state == "succeeded":
            values["pointers"] = _pointers(connection, row)
        mine = (*place, _steps.fence == row["fence"])
        done = connection.execute(update(run_step_table).where(*mine, _steps.state == "running").values(values))
        if done.rowcount != 1 and connection.execute(select(_steps.state).where(*mine)).scalar() == state:
            # This is a repeated report. Commits of later steps do not belong to this step.
            return
    if done.rowcount != 1:
        raise Conflict("This step is assigned to another worker")


def _pointers(connection: Connection, row: RowMapping) -> list[dict[str, Any]]:
    mine = select(run_pointer_table).where(_own.run_id == row["id"], _own.fence == row["fence"])
    kept = []
    for result in connection.execute(mine).mappings():
        values = {name: value for name, value in result.items() if name not in {"run_id", "fence"}}
        kept.append({**values, "committed_at": values["committed_at"].isoformat()})
    return kept


def remember(connection: Connection, row: RowMapping, number: int, memory: dict[str, Any]) -> None:
    """Store state that a step reports while it runs. Raises Conflict if the run is about to end, so that the step sends
    nothing more.
    """
    place = (_steps.run_id == row["id"], _steps.number == number, _steps.fence == row["fence"])
    mine = update(run_step_table).where(*place, _steps.state == "running")
    if row["state"] != "running" or connection.execute(mine.values(memory=memory)).rowcount != 1:
        raise Conflict("This run was cancelled, or is assigned to another worker; stop it")


def memories(connection: Connection, run: str) -> dict[int, dict[str, Any]]:
    """The reported states of a run's steps, by step number."""
    query = select(_steps.number, _steps.memory).where(_steps.run_id == run)
    return {number: memory for number, memory in connection.execute(query) if memory is not None}
