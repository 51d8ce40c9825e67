"""Starts a pipeline: inserts a queued run with a snapshot of its definition."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Select, bindparam, insert, select, update
from sqlalchemy.engine import RowMapping

from headgate.kit.ids import new_id
from headgate.lakehouse.catalog.run_outputs import hold_outputs
from headgate.pipelines.models import pipeline_definition_table, pipeline_table
from headgate.pipelines.runs.models import run_table
from headgate.pipelines.runs.references import named_by
from headgate.platform.authorization import writer
from headgate.platform.external_systems.repository import place_of
from headgate.platform.jobs.models import WAITING
from headgate.spaces.spaces.models import project_table

KIND = "run"
MAX_DEPTH = 20
"""Maximum length of a chain of pipelines that trigger one another."""
MOST_WAITING = 100
"""Maximum number of queued runs per pipeline, not counting retries and runs whose worker was lost."""
MOVED = (
    "The host of a connection or destination of this pipeline has changed. Confirm it with `headgate pipeline "
    "confirm`; this requires the permission to save the pipeline"
)

_pipelines, _definitions = pipeline_table.c, pipeline_definition_table.c
_runs = run_table.c


UNRESOLVED = (
    "The inputs of this pipeline are not determined yet; a member who may see all its tables must save it again"
)


class CannotStart(Exception):
    """The pipeline cannot start in its current state, although the caller may start it. The message says why and what
    to do.
    """


class NotResolved(CannotStart):
    """The inputs of a pipeline are not known yet. The message names tables that some members may not see."""


@dataclass(frozen=True, slots=True)
class Start:
    """What starts a run, and how."""

    by: str | None = None
    """The member who started the run; None for a trigger."""
    token: str | None = None
    trigger: str | None = None
    due_at: datetime | None = None
    full_refresh: bool = False
    parameters: dict[str, Any] = field(default_factory=dict)
    depth: int = 0
    """Length of the chain of pipelines that triggered this run."""
    run: str | None = None
    """The id of the run, if it was assigned before."""


@dataclass(frozen=True, slots=True)
class StartablePipeline:
    """A pipeline that can start: its definition and the member it runs as."""

    id: str
    definition: dict[str, Any]
    acts_for: str | None
    kind: str


def startable(connection: Connection, pipeline_id: str) -> StartablePipeline:
    """The pipeline in its current state; raises CannotStart with the reason if it cannot start."""
    row = connection.execute(_STARTABLE, {"pipeline": pipeline_id}).mappings().one_or_none()
    if row is None:
        raise CannotStart("This pipeline has no definition; save one first")
    if row["unresolved"]:
        raise NotResolved(
            f"The inputs of this pipeline are not determined yet: {row['unresolved']}. Save the pipeline again "
            "when this is resolved"
        )
    if moved(connection, row["place_versions"]):
        raise CannotStart(MOVED)
    acts_for = row["owner"] if row["project_id"] else row["acts_for_id"]
    return StartablePipeline(pipeline_id, row["definition"], acts_for, row["pipeline_kind"])


def check_waited(connection: Connection, run: RowMapping) -> None:
    """Check that a queued run may still execute its definition; raises CannotStart with the reason.

    A run can access only the tables that its pipeline declares now. If the definition or the member it runs as has
    changed, a new run must be started.
    """
    now = startable(connection, run["parent_id"])
    if now.definition != run["definition"]:
        raise CannotStart("The pipeline was saved since this run was started; start it again")
    if now.acts_for != run["acts_for_id"]:
        raise CannotStart("The pipeline now runs as another member than when this run was started; start it again")


def moved(connection: Connection, versions: dict[str, int]) -> list[str]:
    """The names of the connections and destinations whose endpoint changed since it was confirmed."""
    now = {version: place_of(connection, version) for version in versions}
    return [value for value, place in now.items() if place is None or place.version != versions[value]]


def _startable() -> Select[Any]:
    joined = pipeline_table.join(pipeline_definition_table, _definitions.pipeline_id == _pipelines.id).outerjoin(
        project_table, project_table.c.id == _pipelines.project_id
    )
    columns = (
        _pipelines.pipeline_kind,
        _pipelines.project_id,
        _pipelines.acts_for_id,
        project_table.c.owner_id.label("owner"),
        _definitions.definition,
        _definitions.unresolved,
        _definitions.place_versions,
    )
    return select(*columns).select_from(joined).where(_pipelines.id == bindparam("pipeline"))


# Built once at import, so that a start takes no time to compile SQL.
_STARTABLE = _startable()
_WAITING_OF = select(_runs.id, _runs.trigger_id, _runs.fence, _runs.not_before).where(
    _runs.parent_id == bindparam("pipeline"), _runs.state == WAITING
)
_ADD_RUN = insert(run_table)


def waiting_of(connection: Connection, pipeline_id: str) -> Sequence[RowMapping]:
    """The queued runs of a pipeline, each with its trigger, fence and next attempt time."""
    return connection.execute(_WAITING_OF, {"pipeline": pipeline_id}).mappings().all()


def check_room(waiting: Sequence[RowMapping]) -> None:
    """Raise CannotStart if too many runs of the pipeline are queued."""
    if len(waiting) >= MOST_WAITING:
        told = "runs of this pipeline are already queued; wait until some have ended, or cancel some"
        raise CannotStart(f"{MOST_WAITING} {told}")


def start(
    connection: Connection,
    now: datetime,
    pipeline: StartablePipeline,
    how: Start,
    waiting: Sequence[RowMapping] | None = None,
) -> str:
    """Insert a queued run and return its id. The caller has checked the permission. Raises CannotStart if too many runs
    are queued; pass `waiting` if it is already loaded.
    """
    waiting = waiting_of(connection, pipeline.id) if waiting is None else waiting
    check_room(waiting)
    _hurry_outdated(connection, pipeline, [row["id"] for row in waiting if row["not_before"] is not None])
    run = _insert(connection, now, pipeline.id, pipeline, how, state="queued")
    hold_outputs(connection, run, pipeline.id, pipeline.kind)
    return run


def _hurry_outdated(connection: Connection, pipeline: StartablePipeline, tried_again: list[str]) -> None:
    """Make retries that are outdated by a new definition or member due at once. They cannot run any more and must not
    delay the runs behind them.
    """
    if not tried_again:
        return
    query = select(_runs.id, _runs.definition, _runs.acts_for_id).where(_runs.id.in_(tried_again))
    rows = connection.execute(query).all()
    outdated = [row.id for row in rows if (row.definition, row.acts_for_id) != (pipeline.definition, pipeline.acts_for)]
    if outdated:
        connection.execute(update(run_table).where(_runs.id.in_(outdated)).values(not_before=None))


def record_blocked(connection: Connection, now: datetime, pipeline_id: str, how: Start, reason: str) -> str:
    """Insert a run that is blocked for this reason; returns its id."""
    return _insert(
        connection, now, pipeline_id, None, how, state="blocked", error_code="BLOCKED", error=reason, ended_at=now
    )


def record_skipped(connection: Connection, now: datetime, pipeline_id: str, how: Start, reason: str) -> str:
    """Insert a run that is skipped for this reason; returns its id."""
    return _insert(
        connection, now, pipeline_id, None, how, state="skipped", error_code="SKIPPED", error=reason, ended_at=now
    )


def _insert(
    connection: Connection,
    now: datetime,
    pipeline_id: str,
    pipeline: StartablePipeline | None,
    how: Start,
    **values: Any,
) -> str:
    run = how.run or new_id(KIND)
    own = {
        "id": run,
        "parent_id": pipeline_id,
        "definition": pipeline.definition if pipeline else None,
        "named": named_by(connection, pipeline_id),
        "acts_for_id": pipeline.acts_for if pipeline else None,
        "started_by_id": how.by,
        "token_id": how.token,
        "trigger_id": how.trigger,
        "due_at": how.due_at or now,
        "full_refresh": how.full_refresh,
        "parameters": how.parameters,
        "depth": how.depth,
        "queued_at": now,
    }
    with writer.new_resource(connection, KIND, run, now, how.by, scope=pipeline_id, identifier=run):
        connection.execute(_ADD_RUN, own | values)
    return run
