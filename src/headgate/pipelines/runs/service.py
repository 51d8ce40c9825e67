"""Start, view, cancel and resume runs for members."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.engine import RowMapping

from headgate.contracts.jobs import ProgressOut
from headgate.kit.errors import Conflict, NotFound
from headgate.lakehouse.catalog.models import commit_table
from headgate.lakehouse.catalog.run_outputs import hold_outputs
from headgate.pipelines.models import pipeline_definition_table, pipeline_table
from headgate.pipelines.runs import log
from headgate.pipelines.runs.job import RUNS
from headgate.pipelines.runs.models import run_artifact_table, run_line_table, run_step_table, run_table
from headgate.pipelines.runs.references import sees_all, whole_to
from headgate.pipelines.runs.schemas import (
    ArtifactOut,
    CheckOut,
    LineOut,
    LogPage,
    RunItem,
    RunOut,
    RunStepOut,
    WrittenOut,
)
from headgate.pipelines.runs.start import (
    UNRESOLVED,
    CannotStart,
    NotResolved,
    Start,
    StartablePipeline,
    check_room,
    start,
    startable,
    waiting_of,
)
from headgate.pipelines.runs.waiting import waits_for
from headgate.platform.authorization.models import resource_table
from headgate.platform.jobs import queue
from headgate.platform.jobs.models import ENDED
from headgate.platform.resources import presentation
from headgate.platform.unit_of_work.call import Call

KIND = "run"
STARTED, CANCELLED, RESUMED, DELETED = "run.started", "run.cancelled", "run.resumed", "run.deleted"
_SHOWN = (
    "id",
    "state",
    "due_at",
    "queued_at",
    "started_at",
    "ended_at",
    "attempt",
    "full_refresh",
    "error_code",
    "rows_in",
    "rows_out",
    "rejected",
    "bytes",
)
_SHOWN_OF_STEPS = ("number", "kind", "state", "started_at", "ended_at", "rows_in", "rows_out", "rejected", "bytes")
_ABOUT_ONE = frozenset({"land", "refine", "save_staged", "check", "deliver"})
"""Step kinds that report on their own table only."""
HIDDEN = "An error occurred in a table that you may not see"
_runs, _steps, _lines, _commits = run_table.c, run_step_table.c, run_line_table.c, commit_table.c
_artifacts, _definitions = run_artifact_table.c, pipeline_definition_table.c


def start_by_hand(call: Call, pipeline_id: str, full_refresh: bool, parameters: dict[str, Any]) -> RunOut:
    """Start a run of a pipeline for a caller who may start it."""
    active = select(_definitions.active).where(_definitions.pipeline_id == pipeline_id)
    if call.connection.execute(active).scalar() is False:
        raise Conflict("This pipeline is inactive; activate it first")
    pipeline = _startable(call, pipeline_id)
    how = Start(by=call.caller.member, token=call.caller.token, full_refresh=full_refresh, parameters=parameters)
    try:
        run = start(call.connection, call.now, pipeline, how)
    except CannotStart as error:
        raise Conflict(str(error)) from None
    call.record(
        call.event(STARTED, allowed=True, action="start", kind="pipeline", resource_id=pipeline_id, after={"run": run})
    )
    return shown(call, run)


def _startable(call: Call, pipeline_id: str) -> StartablePipeline:
    """The pipeline if it can run now; otherwise a Conflict that names nothing hidden from the caller."""
    try:
        startable_pipeline = startable(call.connection, pipeline_id)
    except NotResolved as error:
        raise Conflict(str(error) if sees_all(call, pipeline_id) else UNRESOLVED) from None
    except CannotStart as error:
        raise Conflict(str(error)) from None
    if startable_pipeline.kind == "notebook":
        call.require("start_with_secrets", "pipeline", pipeline_id)
    return startable_pipeline


def row_of(call: Call, run_id: str) -> RowMapping:
    """The row of a run."""
    row = call.connection.execute(select(run_table).where(_runs.id == run_id)).mappings().one_or_none()
    if row is None:
        raise NotFound
    return row


def page(call: Call, pipeline_id: str, before: str | None, limit: int) -> list[RunItem]:
    """A page of runs of a pipeline, newest first."""
    query = select(run_table).where(_runs.parent_id == pipeline_id)
    if before is not None:
        query = query.where(_runs.id < before)
    rows = call.connection.execute(query.order_by(_runs.id.desc()).limit(limit)).mappings().all()
    whole = whole_to(call, rows)
    return [RunItem(**_common(row, row["id"] in whole)) for row in rows]


def _common(row: RowMapping, whole: bool) -> dict[str, Any]:
    return {
        **{name: row[name] for name in _SHOWN},
        "pipeline": row["parent_id"],
        "started_by": row["started_by_id"],
        "trigger": row["trigger_id"],
        "acts_for": row["acts_for_id"],
        "error": row["error"] if whole or row["error"] is None else HIDDEN,
    }


def shown(call: Call, run_id: str) -> RunOut:
    """A run, limited to what the caller may see."""
    row = row_of(call, run_id)
    whole = run_id in whole_to(call, [row])
    lines = call.connection.execute(select(func.count()).where(_lines.run_id == run_id)).scalar() or 0
    artifacts = select(run_artifact_table).where(_artifacts.run_id == run_id).order_by(_artifacts.name)
    return RunOut(
        **_common(row, whole),
        waits_for=waits_for(call.connection, call.now, row),
        progress=ProgressOut(**row["progress"]) if row["progress"] else None,
        steps=_steps_shown(call, run_id, whole),
        written=_written(call, run_id),
        artifacts=[
            ArtifactOut(name=row["name"], media_type=row["media_type"], size=row["size"])
            for row in call.connection.execute(artifacts).mappings()
        ]
        if whole
        else [],
        definition=row["definition"] if whole else None,
        parameters=row["parameters"] or {},
        lines=lines,
    )


def _steps_shown(call: Call, run_id: str, whole: bool) -> list[RunStepOut]:
    query = select(run_step_table).where(_steps.run_id == run_id).order_by(_steps.number)
    rows = call.connection.execute(query).mappings().all()
    seen = presentation.allowed(call, (row["item_id"] for row in rows))
    match_ = []
    for row in rows:
        sees = whole or (row["item_id"] in seen and row["kind"] in _ABOUT_ONE)
        result = row["result"] or {}
        match_.append(
            RunStepOut(
                **{name: row[name] for name in _SHOWN_OF_STEPS},
                title=row["title"] if sees else row["kind"],
                check=_check(seen.get(row["item_id"], frozenset()), result.get("check")) if sees else None,
                detail=(result.get("detail") or {}) if sees else {},
            )
        )
    return match_


def _check(allowed: frozenset[str], told: dict[str, Any] | None) -> CheckOut | None:
    return CheckOut(**{**told, "sample": told["sample"] if "execute" in allowed else None}) if told else None


def _written(call: Call, run_id: str) -> list[WrittenOut]:
    joined = commit_table.outerjoin(resource_table, resource_table.c.id == _commits.table_id)
    layers = resource_table.alias()
    joined = joined.outerjoin(layers, layers.c.id == resource_table.c.scope_id)
    columns = (_commits.table_id, _commits.snapshot_id, _commits.version, resource_table.c.name, layers.c.name)
    query = select(*columns).select_from(joined).where(_commits.run_id == run_id).order_by(_commits.id)
    rows = call.connection.execute(query).all()
    seen = presentation.allowed(call, (row[0] for row in rows))
    return [
        WrittenOut(
            table=table,
            name=f"{layer}.{name}" if table in seen else None,
            snapshot=str(snapshot) if snapshot is not None else None,
            version=version,
        )
        for table, snapshot, version, name, layer in rows
    ]


def lines(call: Call, run_id: str, after: int, limit: int) -> LogPage:
    """Log lines of a run; none if the caller may not see every referenced item."""
    row = row_of(call, run_id)
    result: Sequence[Any] = []
    if run_id in whole_to(call, [row]):
        result = log.read(call.connection, run_id, after, limit)
    items = [
        LineOut(number=value["number"], at=value["at"], level=value["level"], text=value["text"]) for value in result
    ]
    following = items[-1].number if items else after
    ended = row["state"] in ENDED and len(items) < limit
    return LogPage(items=items, next=following, ended=ended)


def cancel(call: Call, run_id: str) -> None:
    """Cancel a run; a finished run is not changed."""
    row = row_of(call, run_id)
    state = queue.cancel(RUNS, call.connection, call.now, row, cancelled_by_id=call.caller.member)
    if state != row["state"]:
        call.record(call.event(CANCELLED, allowed=True, action="trigger", kind=KIND, resource_id=run_id))


def resume(call: Call, run_id: str) -> None:
    """Resume a failed or cancelled run after its last finished step."""
    row = row_of(call, run_id)
    if row["state"] not in {"failed", "cancelled"} or row["definition"] is None:
        raise Conflict("Only failed or cancelled runs can be resumed; start a new run")
    now = _startable(call, row["parent_id"])
    if now.definition != row["definition"]:
        raise Conflict("The pipeline was saved since the run started; start a new run")
    if _would_go_back(call, row):
        raise Conflict("A later run of this delivery may have sent newer rows; start a new run")
    try:
        check_room(waiting_of(call.connection, row["parent_id"]))
    except CannotStart as error:
        raise Conflict(str(error)) from None
    values: dict[str, Any] = {"ended_at": None, "error": None, "error_code": None, "cancelled_at": None}
    values |= {"attempt": 0, "losses": 0, "acts_for_id": now.acts_for}
    queue.requeue(RUNS, call.connection, call.now, row, **values)
    hold_outputs(call.connection, run_id, row["parent_id"], now.kind)
    call.record(call.event(RESUMED, allowed=True, action="start", kind=KIND, resource_id=run_id))


def _would_go_back(call: Call, row: RowMapping) -> bool:
    """Whether resuming a delivery could overwrite newer rows with older ones. Appends cannot."""
    definition = row["definition"]
    if definition["kind"] != "delivery" or all(value["write"] == "append" for value in definition["tables"]):
        return False
    later = (_runs.parent_id == row["parent_id"], _runs.fence > 0, _runs.id > row["id"])
    return call.connection.execute(select(_runs.id).where(*later).limit(1)).first() is not None


def has_ended(connection: Any, run_id: str) -> bool:
    """Whether a run has ended or does not exist."""
    state = connection.execute(select(_runs.state).where(_runs.id == run_id)).scalar()
    return state is None or state in ENDED


def require_control(call: Call, run_id: str) -> None:
    """Require the caller's own right to start the pipeline manually, which includes stopping its runs."""
    pipeline = row_of(call, run_id)["parent_id"]
    is_task = call.connection.execute(
        select(pipeline_table.c.project_id).where(pipeline_table.c.id == pipeline)
    ).scalar()
    call.require("control" if is_task else "trigger", "pipeline", pipeline)
