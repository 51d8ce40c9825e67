"""Follow-up of a finished run.

In the same transaction as the end of the run: release its outputs, write the audit event, update the failure count of
its pipeline, and notify the subscribers of the channel `runs` who may see the pipeline's runs.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, delete, null, select, update
from sqlalchemy.engine import RowMapping

from headgate.lakehouse.catalog.models import run_output_table, run_pointer_table
from headgate.pipelines.models import pipeline_definition_table
from headgate.pipelines.runs.models import run_step_table
from headgate.pipelines.triggers.events import note_success
from headgate.platform.audit.events import Event, record
from headgate.platform.authorization.facts import Facts
from headgate.platform.notifications.service import Notice, notify

FAILED, BLOCKED, DEACTIVATED = "run.failed", "run.blocked", "pipeline.deactivated"
MOST_CAUSES = 20
"""Maximum number of failure causes notified per pipeline until it succeeds again."""
COUNTED = ("rows_in", "rows_out", "rejected", "bytes")

_steps, _outputs, _own = run_step_table.c, run_output_table.c, run_pointer_table.c
_definitions = pipeline_definition_table.c


def totals_of(connection: Connection, run: str) -> dict[str, int | None]:
    """Totals over the stored steps of a run."""
    counted = select(_steps.kind, *(_steps[name] for name in COUNTED)).where(_steps.run_id == run)
    return totals(connection.execute(counted).mappings().all())


def settle(connection: Connection, run: str) -> None:
    """Release the outputs of the run to other writers and mark a running step as failed."""
    connection.execute(delete(run_pointer_table).where(_own.run_id == run))
    connection.execute(delete(run_output_table).where(_outputs.run_id == run))
    under_way = (_steps.run_id == run, _steps.state == "running")
    connection.execute(update(run_step_table).where(*under_way).values(state="failed"))


def follow_up(connection: Connection, now: datetime, row: RowMapping) -> None:
    """Update the pipeline, fire its triggers and send notifications after a run has ended."""
    if row["state"] == "succeeded":
        _succeeded(connection, now, row)
    elif row["state"] in {"failed", "blocked"}:
        _stopped(connection, now, row)


def totals(steps: Sequence[RowMapping]) -> dict[str, int | None]:
    """Totals over the steps of a run."""
    counts = {name: [step[name] for step in steps if step["kind"] != "check"] for name in COUNTED}
    known = {name: [value for value in some if value is not None] for name, some in counts.items()}
    return {name: sum(some) if some else None for name, some in known.items()}


# Follow-up


def _succeeded(connection: Connection, now: datetime, row: RowMapping) -> None:
    troubled = (_definitions.failures > 0) | _definitions.told_causes.is_not(None)
    mine = (_definitions.pipeline_id == row["parent_id"], troubled)
    connection.execute(update(pipeline_definition_table).where(*mine).values(failures=0, told_causes=null()))
    note_success(connection, now, row["parent_id"], row["id"], row["depth"])


def _stopped(connection: Connection, now: datetime, row: RowMapping) -> None:
    """Audit and notify a failed or blocked run; disable a pipeline that failed too often in a row."""
    event = BLOCKED if row["state"] == "blocked" else FAILED
    after = {"code": row["error_code"], "reason": (row["error"] or "")[:500]}
    _record(connection, now, row, event, after, "run", row["id"])
    query = select(pipeline_definition_table).where(_definitions.pipeline_id == row["parent_id"]).with_for_update()
    pipeline = connection.execute(query).mappings().one_or_none()
    if pipeline is None:
        return
    values: dict[str, Any] = {}
    cause = f"{pipeline['version']} {row['state']} {row['error_code']}"
    told = pipeline["told_causes"] or []
    if cause not in told and len(told) < MOST_CAUSES:
        values["told_causes"] = [*told, cause]
        _tell(connection, now, row, event)
    if row["state"] == "failed":
        values |= _counted(connection, now, row, pipeline)
    if values:
        mine = _definitions.pipeline_id == row["parent_id"]
        connection.execute(update(pipeline_definition_table).where(mine).values(values))


def _counted(connection: Connection, now: datetime, row: RowMapping, pipeline: RowMapping) -> dict[str, Any]:
    values: dict[str, Any] = {"failures": pipeline["failures"] + 1}
    most = pipeline["deactivate_after"]
    if most and values["failures"] >= most and pipeline["active"]:
        why = "The run failed" if most == 1 else f"The run failed {values['failures']} times in a row"
        values |= {"active": False, "inactive_because": why}
        _record(connection, now, row, DEACTIVATED, {"reason": why}, "pipeline", row["parent_id"])
        _tell(connection, now, row, DEACTIVATED, failures=values["failures"])
    return values


def _record(
    connection: Connection, now: datetime, row: RowMapping, event: str, after: dict[str, Any], kind: str, about: str
) -> None:
    allowed = event != BLOCKED
    record(connection, [Event(now, event, allowed, row["acts_for_id"], kind=kind, resource_id=about, after=after)])


def _tell(connection: Connection, now: datetime, row: RowMapping, event: str, **facts: Any) -> None:
    """Notify the subscribers of the channel. Access is checked now, and again when the notice is sent or read."""
    parent = Facts(connection, now).thing(row["parent_id"])
    if parent is None:
        return
    notice = Notice(
        "runs",
        event,
        kind="pipeline",
        resource=row["parent_id"],
        needs="open" if parent.kind == "task" else "see_runs",
        facts={"run": row["id"], "state": row["state"], "code": row["error_code"], **facts},
    )
    notify(connection, notice, now)
