"""What came of a run: published, tried again, or failed; and what follows from that for its pipeline."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, select
from sqlalchemy.engine import RowMapping

from headgate.contracts.pipelines import definitions
from headgate.contracts.pipelines.fields import duration
from headgate.kit.errors import Conflict, Denied, NotFound
from headgate.lakehouse.catalog.models import work_token_table
from headgate.lakehouse.catalog.publish import TableMoved
from headgate.pipelines.runs import queue
from headgate.pipelines.runs.completion import end, end_works
from headgate.pipelines.runs.models import run_step_table
from headgate.pipelines.runs.publish import NotRunning, publish
from headgate.pipelines.runs.steps import forget_pointers, forget_steps
from headgate.platform.jobs.models import CANCELLING, WAITING
from headgate.platform.unit_of_work.services import Services

MOVES = 5
"""How often a run is begun anew because a table moved under it."""
UNRETRIED = frozenset({"EXPECTATION_FAILED", "DEFINITION", "REFUSED", "BLOCKED"})
"""What another try would not change."""

ENGINE_DOWN = "ENGINE_DOWN"
"""The code of a run under which the Spark of members' SQL ended."""

_steps, _works = run_step_table.c, work_token_table.c


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a run, as its worker says: succeeded, failed, lost (a fault of ours) or returned (it stops)."""

    state: str
    error_code: str | None = None
    error: str | None = None


class TableMovedDuringRun(Exception):
    """A table moved under the run: it is to be begun anew, in a transaction of its own."""


def finish(services: Services, connection: Connection, now: datetime, row: RowMapping, outcome: Outcome) -> str:
    """End a run with what came of it, or put it back; its state then. MovedAgain: nothing may be committed."""
    if outcome.state in {"lost", "returned"}:
        reason = outcome.error or "Spark or the worker died during the run; nothing was published"
        is_lost = outcome.state == "lost"
        isolates = is_lost and outcome.error_code == ENGINE_DOWN
        return queue.give_back(connection, now, row, reason, counts=is_lost, isolates=isolates)
    if row["state"] == CANCELLING:
        return _cancelled(connection, now, row)
    if outcome.state != "succeeded":
        return fail(connection, now, row, outcome.error_code or "FAILED", outcome.error or "It failed")
    try:
        _publish(services, connection, now, row)
    except NotRunning:
        raise Conflict("This run is assigned to another worker; stop it") from None
    except TableMoved as error:
        raise TableMovedDuringRun(str(error)) from None
    return "succeeded"


def _cancelled(connection: Connection, now: datetime, row: RowMapping) -> str:
    end(connection, now, row["id"], "cancelled")
    return "cancelled"


def _publish(services: Services, connection: Connection, now: datetime, row: RowMapping) -> None:
    steps = connection.execute(select(run_step_table).where(_steps.run_id == row["id"])).mappings().all()
    if any(step["state"] != "succeeded" for step in steps):
        raise Conflict("Some steps of this run have not finished")
    states = {
        step["item_id"]: step["result"]["state"] for step in steps if step["item_id"] and step["result"].get("state")
    }
    member = row["acts_for_id"]
    work = select(_works.id).where(_works.run_id == row["id"], _works.fence == row["fence"]).limit(1)
    work_id = connection.execute(work).scalar()
    publish(services, connection, now, row["id"], row["fence"], member=member, work_id=work_id, states=states)
    end(connection, now, row["id"], "succeeded")


def begin_anew(connection: Connection, now: datetime, row: RowMapping, reason: str) -> str:
    """Have a run start from its first step, since a table that it writes was changed by another; its state."""
    if row["state"] == CANCELLING:
        return _cancelled(connection, now, row)
    if row["losses"] >= MOVES:
        # What its steps have made starts from a state that is gone: whoever tries again begins anew.
        forget_pointers(connection, row["id"])
        return fail(connection, now, row, "TABLE_MOVED", reason)
    end_works(connection, now, row["id"])
    forget_steps(connection, row["id"])
    queue.wait(connection, row["id"], None, losses=row["losses"] + 1, plan=None)
    return WAITING


REFUSALS = (Denied, NotFound)
"""What publishing raises if whom the run acts for may not write an output any more."""


def block(connection: Connection, now: datetime, row: RowMapping, reason: str) -> str:
    """End a run that may not publish any more."""
    if row["state"] == CANCELLING:
        return _cancelled(connection, now, row)
    end(connection, now, row["id"], "blocked", "BLOCKED", reason)
    return "blocked"


def fail(connection: Connection, now: datetime, row: RowMapping, code: str, reason: str) -> str:
    """Have a run tried again if its pipeline wants that; else it has failed. Its state."""
    retries = definitions.parse(row["definition"]).retries
    if code not in UNRETRIED and row["attempt"] < retries.times:
        end_works(connection, now, row["id"])
        until = now + duration(retries.delay)
        queue.wait(connection, row["id"], until, attempt=row["attempt"] + 1, error_code=code, error=reason)
        return WAITING
    end(connection, now, row["id"], "failed", code, reason)
    return "failed"
