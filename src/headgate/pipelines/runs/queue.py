"""The life of a run between whoever started it and a worker: claimed, kept alive, step by step, ended or given back.

Each function works in one write transaction. A claim counts the fence up; whatever comes with an older one is refused.
What a run commits before it is published, nobody else sees; what a lost one committed since its last finished step is
forgotten when it is begun again.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, delete, select, update
from sqlalchemy.engine import RowMapping

from headgate.contracts.pipelines import definitions
from headgate.contracts.pipelines.fields import duration
from headgate.contracts.pipelines.steps import AnyStep, RunNotebook, to_json
from headgate.kit.errors import Conflict
from headgate.kit.leases import is_over
from headgate.lakehouse.catalog.models import commit_table, run_output_table, run_pointer_table, work_token_table
from headgate.lakehouse.catalog.pointers import pin_all
from headgate.lakehouse.catalog.work_tokens import open_reading, open_work
from headgate.lakehouse.models import lake_item_table, table_ref_table
from headgate.organization.members.repository import address
from headgate.pipelines.planner import DeclaredItems, InvalidPlan, item_of, plan
from headgate.pipelines.runs.completion import end, end_works
from headgate.pipelines.runs.models import run_table
from headgate.pipelines.runs.start import CannotStart, check_waited
from headgate.pipelines.runs.steps import begin_steps, memories
from headgate.pipelines.runs.waiting import waiting
from headgate.platform.authorization.facts import Facts
from headgate.platform.authorization.questions import is_ready
from headgate.platform.jobs.models import CANCELLING, ENDED, HELD, RUNNING, WAITING
from headgate.platform.unit_of_work.work import DeclaredTable
from headgate.settings.settings import Settings

SPARE = timedelta(minutes=2)
"""How long a run's token outlives its time limit: the worker stops it before, by a clock that nobody sets."""
LOSSES = 3
"""How often a run whose worker or Spark was lost is begun again."""

_runs, _outputs, _own = run_table.c, run_output_table.c, run_pointer_table.c
_works, _refs, _items, _commits = work_token_table.c, table_ref_table.c, lake_item_table.c, commit_table.c


@dataclass(frozen=True, slots=True)
class Claimed:
    """A run for a worker, with the token for its work, which nobody keeps."""

    id: str
    pipeline_id: str
    fence: int
    token: str
    steps: list[AnyStep]
    done: int
    moment: datetime
    time_zone: str
    seconds: float
    full_refresh: bool
    parameters: dict[str, Any]
    reading_token: str = ""
    """Beside its own: for a notebook, which only reads its inputs."""
    states: dict[str, dict[str, Any]] = field(default_factory=dict)
    memories: dict[int, dict[str, Any]] = field(default_factory=dict)
    """By the numbers of its steps: what each told while it ran, when the run was begun before."""
    user: str = ""
    """The mail address of the member as whom it runs."""
    places: list[str] = field(default_factory=list)
    """The connections and the destination that it uses."""
    isolated: bool = False
    """Whether it runs on a Spark of its own, since one was lost under it."""


@dataclass(frozen=True, slots=True)
class Over:
    """A run that ended in a claim: it could not begin."""

    id: str
    state: str
    reason: str


def claim(
    connection: Connection, now: datetime, settings: Settings, worker: str, slots: int, only: str | None = None
) -> tuple[list[Claimed], list[Over]]:
    """Take waiting runs, up to a worker's free slots, or one of them alone; those that may not begin any more end."""
    known, claimed, over = Facts(connection, now), list[Claimed](), list[Over]()
    taken: set[str] = set()
    for run in waiting(connection, now):
        if len(claimed) == slots:
            break
        if only not in {None, run}:
            continue
        outputs = set(connection.execute(select(_outputs.item_id).where(_outputs.run_id == run)).scalars())
        row = None if outputs & taken else _locked(connection, run)
        if row is None:
            continue
        try:
            claimed.append(_take(connection, known, settings, worker, row))
            taken |= outputs
        except InvalidPlan as error:
            over.append(_ended(connection, now, row["id"], "failed", "DEFINITION", str(error)))
        except _NotReady as error:
            over.append(_ended(connection, now, row["id"], "blocked", "BLOCKED", str(error)))
    return claimed, over


class _NotReady(Exception):
    """Whom the run acts for lacks, by now, what it needs."""


def _locked(connection: Connection, run: str) -> RowMapping | None:
    """The row, for this transaction, if it still waits: another worker's claim may be about to have it."""
    mine = select(run_table).where(_runs.id == run, _runs.state == WAITING).with_for_update(skip_locked=True)
    return connection.execute(mine).mappings().one_or_none()


def fail_waiting(connection: Connection, now: datetime, run: str, code: str, reason: str) -> bool:
    """End a run that cannot begin, unless it has by now; whether it was ended."""
    if _locked(connection, run) is None:
        return False
    end(connection, now, run, "failed", code, reason)
    return True


def _ended(connection: Connection, now: datetime, run: str, state: str, code: str, reason: str) -> Over:
    end(connection, now, run, state, code, reason)
    return Over(run, state, reason)


def _take(connection: Connection, known: Facts, settings: Settings, worker: str, row: RowMapping) -> Claimed:
    pipeline, acts_for, now = row["parent_id"], row["acts_for_id"], known.now
    if acts_for is None or not is_ready(known, pipeline):
        raise _NotReady(
            "Whom this pipeline acts for may not read all that it reads, write all that it writes, or use its "
            "connection or destination any more; someone who may saves it again"
        )
    try:
        check_waited(connection, row)
    except CannotStart as error:
        raise _NotReady(str(error)) from None
    definition = _definition(row)
    steps = plan(definition, DeclaredItems.of(connection, pipeline))
    fence, seconds = row["fence"] + 1, _seconds(definition, settings)
    done = begin_steps(connection, row, steps, fence)
    declared = reach(connection, pipeline)
    if isinstance(definition, definitions.Delivery):
        # What is checked is what is sent, whatever is committed meanwhile.
        pin_all(connection, (row["id"], fence), [declared_table.table_id for declared_table in declared], now)
    values = {
        "state": RUNNING,
        "fence": fence,
        "worker_id": worker,
        "lease_until": now + lease(settings),
        "progress": None,
    }
    times = {"started_at": row["started_at"] or now}
    connection.execute(update(run_table).where(_runs.id == row["id"]).values(**values, **times, plan=to_json(steps)))
    expires = now + timedelta(seconds=seconds) + SPARE
    work, token = open_work(
        connection,
        now,
        purpose="run",
        member=acts_for,
        run_id=row["id"],
        fence=fence,
        reach=declared,
        expires=expires,
    )
    inputs = [entry.id for step in steps if isinstance(step, RunNotebook) for entry in step.inputs]
    is_notebook = any(isinstance(step, RunNotebook) for step in steps)
    reading = open_reading(connection, now, work, inputs, expires=expires)[1] if is_notebook else ""
    places = definitions.connections(definition)
    if isinstance(definition, definitions.Delivery):
        places.append(definition.destination)
    return Claimed(
        row["id"],
        pipeline,
        fence,
        token,
        steps,
        done,
        row["due_at"] or now,
        definition.time_zone,
        seconds,
        bool(row["full_refresh"]),
        row["parameters"] or {},
        reading,
        _states(connection, pipeline, steps),
        memories(connection, row["id"]) if row["fence"] else {},
        address(connection, acts_for),
        places,
        row["isolated"],
    )


def _definition(row: RowMapping) -> definitions.AnyDefinition:
    """What the run is to do; NoPlan for one of another version of Headgate, which must not keep the others waiting."""
    try:
        return definitions.parse(row["definition"])
    except ValueError:
        raise InvalidPlan(
            "Its definition is not one that this version of Headgate knows; save the pipeline again"
        ) from None


def _seconds(definition: Any, settings: Settings) -> float:
    most = timedelta(hours=settings.runs.max_hours)
    return (min(duration(definition.timeout), most) if definition.timeout else most).total_seconds()


def lease(settings: Settings) -> timedelta:
    """How long a worker may be silent before its runs are taken back."""
    return timedelta(seconds=settings.runs.lease_seconds)


def reach(connection: Connection, pipeline: str) -> list[DeclaredTable]:
    """What a pipeline declared, of what is enabled: all that exists for its runs."""
    joined = table_ref_table.join(lake_item_table, _items.id == _refs.item_id)
    query = (
        select(_refs.item_id, _refs.mode, _items.layer_id)
        .select_from(joined)
        .where(_refs.resource_id == pipeline, _refs.enabled, _items.kind == "table")
    )
    return [DeclaredTable(item, mode, layer) for item, mode, layer in connection.execute(query)]


def _states(connection: Connection, pipeline: str, steps: list[AnyStep]) -> dict[str, dict[str, Any]]:
    """Where the last published run of the pipeline ended, for each output."""
    values: dict[str, dict[str, Any]] = {}
    for table in {value for value in map(item_of, steps) if value}:
        query = (
            select(_commits.state)
            .where(_commits.table_id == table, _commits.pipeline_id == pipeline, _commits.state.is_not(None))
            .order_by(_commits.version.desc())
            .limit(1)
        )
        state = connection.execute(query).scalar()
        if state is not None:
            values[table] = state
    return values


# Keeping alive, and ending


def owned(connection: Connection, run: str, worker: str, fence: int) -> RowMapping:
    """The row of a run that a worker has with this fence; Conflict for any other."""
    row = connection.execute(select(run_table).where(_runs.id == run)).mappings().one_or_none()
    if row is None or (row["worker_id"], row["fence"]) != (worker, fence) or row["state"] not in HELD:
        raise Conflict("This run is no longer this worker's; drop it")
    return row


def ended_by(connection: Connection, run: str, worker: str, fence: int) -> str | None:
    """The state of a run that this worker has ended with this fence: it may not have heard the answer."""
    mine = (_runs.id == run, _runs.worker_id == worker, _runs.fence == fence, _runs.state.in_(ENDED))
    return connection.execute(select(_runs.state).where(*mine)).scalar()


@dataclass(frozen=True, slots=True)
class Beat:
    """What a worker says of a run that it has."""

    id: str
    fence: int
    progress: dict[str, Any] | None = None


def beat(
    connection: Connection, now: datetime, settings: Settings, worker: str, beats: Sequence[Beat]
) -> tuple[list[str], list[str]]:
    """Keep a worker's runs and their tokens alive; which of them to stop, and which are no longer its own."""
    query = select(_runs.id, _runs.fence, _runs.state).where(_runs.worker_id == worker, _runs.state.in_(HELD))
    own = {row.id: row for row in connection.execute(query)}
    told = {entry.id: entry for entry in beats if entry.id in own and own[entry.id].fence == entry.fence}
    for beat in told.values():
        values: dict[str, Any] = {"lease_until": now + lease(settings)}
        if beat.progress is not None:
            values["progress"] = beat.progress
        connection.execute(update(run_table).where(_runs.id == beat.id).values(values))
    if told:
        # Only a clock that was set forward makes a token of a run end before its worker ends the run.
        early = (_works.run_id.in_(told), _works.ended_at.is_(None), _works.expires_at < now + SPARE)
        connection.execute(update(work_token_table).where(*early).values(expires_at=now + 2 * SPARE))
    cancel = sorted(row.id for row in own.values() if row.state == CANCELLING)
    return cancel, sorted(entry.id for entry in beats if entry.id not in told)


def is_cancelling(connection: Connection, worker: str) -> bool:
    """Whether a worker has something to stop."""
    query = select(_runs.id).where(_runs.worker_id == worker, _runs.state == CANCELLING).limit(1)
    return connection.execute(query).first() is not None


def cancel(connection: Connection, now: datetime, row: RowMapping, by: str) -> str:
    """Cancel a run: at once if no worker has it; else its token ends now, and the worker is told. Its state."""
    if row["state"] == WAITING:
        connection.execute(update(run_table).where(_runs.id == row["id"]).values(cancelled_at=now, cancelled_by_id=by))
        end(connection, now, row["id"], "cancelled")
        return "cancelled"
    if row["state"] == RUNNING:
        end_works(connection, now, row["id"])
        values = {"state": CANCELLING, "cancelled_at": now, "cancelled_by_id": by}
        connection.execute(update(run_table).where(_runs.id == row["id"]).values(values))
        return CANCELLING
    return str(row["state"])


def give_back(
    connection: Connection, now: datetime, row: RowMapping, reason: str, *, counts: bool = True, isolates: bool = True
) -> str:
    """Have a run begun again whose worker or Spark was lost, or which its worker gave back; its state then.

    When `isolates`, it then runs on a Spark of its own: it may be what ended the one that it shared.
    """
    end_works(connection, now, row["id"])
    if row["state"] == CANCELLING:
        end(connection, now, row["id"], "cancelled")
        return "cancelled"
    losses = row["losses"] + counts
    if losses > LOSSES:
        end(connection, now, row["id"], "failed", "WORKER_LOST", reason)
        return "failed"
    wait(connection, row["id"], None, losses=losses, isolated=row["isolated"] or isolates)
    return WAITING


def wait(connection: Connection, run: str, until: datetime | None, **values: Any) -> None:
    """Put a run back, to be claimed from then on; at once without a time."""
    fixed = {"state": WAITING, "worker_id": None, "lease_until": None, "progress": None, "not_before": until}
    connection.execute(update(run_table).where(_runs.id == run).values(**fixed, **values))
    connection.execute(delete(run_pointer_table).where(_own.run_id == run))


def _over(now: datetime, length: timedelta) -> ColumnElement[bool]:
    return and_(_runs.state.in_(HELD), is_over(_runs.lease_until, now, length))


def has_expired(connection: Connection, now: datetime, length: timedelta) -> bool:
    """Whether there is anything to sweep."""
    return connection.execute(select(_runs.id).where(_over(now, length)).limit(1)).first() is not None


def sweep(connection: Connection, now: datetime, length: timedelta) -> list[str]:
    """Take back what dead workers had, by leases of this length; the ids."""
    return _take_back(connection, now, _over(now, length))


def release(connection: Connection, now: datetime, worker: str) -> list[str]:
    """Take back what a worker had that is certainly dead; the ids."""
    return _take_back(connection, now, _runs.state.in_(HELD) & (_runs.worker_id == worker))


def _take_back(connection: Connection, now: datetime, which: ColumnElement[bool]) -> list[str]:
    rows = connection.execute(select(run_table).where(which)).mappings().all()
    for row in rows:
        give_back(
            connection, now, row, "The workers that ran this were lost, one after the other; nothing was published"
        )
    return [row["id"] for row in rows]
