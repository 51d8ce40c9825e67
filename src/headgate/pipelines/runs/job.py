"""Runs as jobs: claimed in order, executed step by step, published at the end, retried or failed.

Commits of a run are invisible to others until it is published. If a worker is lost, commits since the last finished
step are discarded when the run starts again.
"""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, delete, select, update
from sqlalchemy.engine import RowMapping

from headgate.contracts.jobs import LogLine
from headgate.contracts.pipelines import definitions
from headgate.contracts.pipelines.fields import duration
from headgate.contracts.pipelines.steps import AnyStep, RunNotebook, to_json
from headgate.contracts.runs import EndpointOut, RunPayload
from headgate.kit.clock import now as clock
from headgate.kit.database import is_full
from headgate.kit.errors import Conflict, Denied, NotFound
from headgate.lakehouse.catalog.models import commit_table, run_output_table, run_pointer_table, work_token_table
from headgate.lakehouse.catalog.pointers import pin_all
from headgate.lakehouse.catalog.publish import TableMoved
from headgate.lakehouse.catalog.work_tokens import open_reading, open_work
from headgate.lakehouse.models import lake_item_table, table_ref_table
from headgate.organization.members.repository import address
from headgate.pipelines.planner import DeclaredItems, InvalidPlan, item_of, plan
from headgate.pipelines.runs import completion, log, staged_files
from headgate.pipelines.runs.models import run_step_table, run_table
from headgate.pipelines.runs.publish import NotRunning, publish
from headgate.pipelines.runs.start import CannotStart, check_waited
from headgate.pipelines.runs.steps import begin_steps, forget_pointers, forget_steps, memories
from headgate.pipelines.runs.waiting import wait_no_longer, waiting
from headgate.platform.authorization.facts import Facts
from headgate.platform.authorization.questions import is_ready
from headgate.platform.external_systems.opener import open_endpoint
from headgate.platform.jobs import queue
from headgate.platform.jobs.kinds import LOOK_AT, Begun, CannotBegin, JobKind, Outcome, WorkerSlots
from headgate.platform.jobs.models import CANCELLING, HELD
from headgate.platform.unit_of_work.call import Call
from headgate.platform.unit_of_work.services import Services
from headgate.platform.unit_of_work.work import DeclaredTable
from headgate.settings.settings import Settings

SPARE = timedelta(minutes=2)
"""Extra lifetime of a run's token beyond the time limit. The worker enforces the limit earlier, by a monotonic
clock.
"""
LOSSES = 3
"""Maximum restarts of a run whose worker or Spark server was lost."""
MOVES = 5
"""Maximum restarts of a run because of a concurrent change to one of its tables."""
UNRETRIED = frozenset({"EXPECTATION_FAILED", "DEFINITION", "REFUSED", "BLOCKED"})
"""Error codes for which a retry cannot help."""
ENGINE_DOWN = "ENGINE_DOWN"
"""The error code of a run whose Spark server for member SQL ended."""
NOT_READY = (
    "Whom this pipeline acts for may not read all that it reads, write all that it writes, or use its connection or "
    "destination any more; someone who may saves it again"
)

_runs, _outputs, _own, _steps = run_table.c, run_output_table.c, run_pointer_table.c, run_step_table.c
_works, _refs, _items, _commits = work_token_table.c, table_ref_table.c, lake_item_table.c, commit_table.c


class MovedAgain(Exception):
    """A table was changed concurrently: the run must start over, in a separate transaction."""


class Runs(JobKind):
    """Runs of pipelines. Runs that share an output are executed one at a time."""

    name = "run"
    table = run_table
    max_losses = LOSSES
    max_attempts = None
    lost = ("WORKER_LOST", "The workers that ran this were lost, one after the other; nothing was published")
    in_turn = True
    rollbacks = (MovedAgain, Denied, NotFound)

    def lease(self, settings: Settings) -> timedelta:
        return timedelta(seconds=settings.runs.lease_seconds)

    def waiting(self, connection: Connection, now: datetime, slots: WorkerSlots) -> Sequence[str]:
        return waiting(connection, now, LOOK_AT)

    def is_waiting(self, connection: Connection, now: datetime, slots: WorkerSlots) -> bool:
        return bool(waiting(connection, now, most=1))

    def is_blocked(self, connection: Connection, row: RowMapping) -> bool:
        mine = select(_outputs.item_id).where(_outputs.run_id == row["id"])
        held = select(_runs.id).join(run_output_table, _outputs.run_id == _runs.id)
        query = held.where(_runs.state.in_(HELD), _outputs.item_id.in_(mine.scalar_subquery())).limit(1)
        return connection.execute(query).first() is not None

    def begin(self, call: Call, row: RowMapping) -> Begun:
        try:
            payload = _payload(call, row)
        except InvalidPlan as error:
            raise CannotBegin("failed", "DEFINITION", str(error)) from None
        except CannotStart as error:
            raise CannotBegin("blocked", "BLOCKED", str(error)) from None
        return Begun(payload, _seconds(_definition(row), call.settings))

    def log(self, call: Call, job: str, lines: Sequence[LogLine]) -> None:
        log.add(call.connection, call.settings, job, [(line.at, line.level, line.text) for line in lines])

    def finish(self, call: Call, row: RowMapping, outcome: Outcome) -> str:
        if outcome.state != "succeeded":
            return fail(call.connection, call.now, row, outcome.error_code or "FAILED", outcome.error or "It failed")
        try:
            _publish(call, row)
        except NotRunning:
            raise Conflict("This run is assigned to another worker; stop it") from None
        except TableMoved as error:
            raise MovedAgain(str(error)) from None
        return queue.end(self, call.connection, call.now, row["id"], "succeeded")

    def recover(self, call: Call, row: RowMapping, error: Exception) -> str:
        if isinstance(error, MovedAgain):
            log.add(call.connection, call.settings, row["id"], [(call.now, "warning", str(error))])
            return begin_anew(call.connection, call.now, row, str(error))
        if row["state"] == CANCELLING:
            return queue.end(self, call.connection, call.now, row["id"], "cancelled")
        reason = f"Whom this run acts for may not write an output any more: {error}"
        return queue.end(self, call.connection, call.now, row["id"], "blocked", "BLOCKED", reason)

    def finished(self, services: Services, job: str, fence: int, state: str) -> None:
        if state != "succeeded":
            return
        unmoved = staged_files.move_outputs(services, job)
        lines = [(clock(), "warning", f"A file was not put into its volume: {why}") for why in unmoved]
        try:
            services.database.write(lambda connection: log.add(connection, services.settings, job, lines))
        except Exception as error:
            # A full disk must not make the worker repeat the call for a log line.
            if not is_full(error):
                raise

    def keep_alive(self, connection: Connection, now: datetime, jobs: Collection[str]) -> None:
        # A token can expire before its worker ends the run only if the clock was set forward.
        early = (_works.run_id.in_(jobs), _works.ended_at.is_(None), _works.expires_at < now + SPARE)
        connection.execute(update(work_token_table).where(*early).values(expires_at=now + 2 * SPARE))

    def revoke(self, connection: Connection, now: datetime, job: str) -> None:
        alive = (_works.run_id == job, _works.ended_at.is_(None))
        connection.execute(update(work_token_table).where(*alive).values(ended_at=now))

    def isolates(self, outcome: Outcome) -> bool:
        return outcome.error_code in {None, ENGINE_DOWN}

    def loss(self, connection: Connection, row: RowMapping, outcome: Outcome) -> tuple[str, str]:
        code, message = self.lost
        return code, outcome.error or message

    def end_values(self, connection: Connection, now: datetime, job: str) -> dict[str, Any]:
        return completion.totals_of(connection, job)

    def ended(self, connection: Connection, now: datetime, row: RowMapping) -> None:
        completion.settle(connection, row["id"])
        completion.follow_up(connection, now, row)

    def requeued(self, connection: Connection, now: datetime, row: RowMapping) -> None:
        connection.execute(delete(run_pointer_table).where(_own.run_id == row["id"]))

    def clock_was_set(self, connection: Connection, now: datetime) -> None:
        wait_no_longer(connection, now)


RUNS = Runs()


def _payload(call: Call, row: RowMapping) -> RunPayload:
    connection, now, run, pipeline, acts_for = (
        call.connection,
        call.now,
        row["id"],
        row["parent_id"],
        row["acts_for_id"],
    )
    if acts_for is None or not is_ready(Facts(connection, now), pipeline):
        raise CannotStart(NOT_READY)
    check_waited(connection, row)
    definition = _definition(row)
    steps = plan(definition, DeclaredItems.of(connection, pipeline))
    done = begin_steps(connection, row, steps)
    declared = reach(connection, pipeline)
    if isinstance(definition, definitions.Delivery):
        # Pin the snapshots, so that the delivery sends exactly the rows that were checked, despite concurrent commits.
        pin_all(connection, (run, row["fence"]), [table.table_id for table in declared], now)
    connection.execute(update(run_table).where(_runs.id == run).values(plan=to_json(steps)))
    expires = now + timedelta(seconds=_seconds(definition, call.settings)) + SPARE
    work, token = open_work(
        connection,
        now,
        purpose="run",
        member=acts_for,
        run_id=run,
        fence=row["fence"],
        reach=declared,
        expires=expires,
    )
    notebooks = [step for step in steps if isinstance(step, RunNotebook)]
    inputs = [item.id for step in notebooks for item in step.inputs]
    reading = open_reading(connection, now, work, inputs, expires=expires)[1] if notebooks else ""
    return RunPayload(
        pipeline=pipeline,
        token=token,
        reading_token=reading,
        user=address(connection, acts_for),
        steps=to_json(steps),
        done=done,
        moment=row["due_at"] or now,
        time_zone=definition.time_zone,
        full_refresh=bool(row["full_refresh"]),
        parameters=row["parameters"] or {},
        states=_states(connection, pipeline, steps),
        memories=memories(connection, run) if row["fence"] > 1 else {},
        endpoints=_endpoints(call, definition),
    )


def _endpoints(call: Call, definition: definitions.AnyDefinition) -> list[EndpointOut]:
    """The connections and the destination of a run, with their secrets."""
    resources = definitions.connections(definition)
    if isinstance(definition, definitions.Delivery):
        resources.append(definition.destination)
    try:
        endpoints = [open_endpoint(call.connection, call.services, resource) for resource in resources]
    except (Conflict, NotFound) as error:
        raise CannotBegin("failed", "CONNECTION", str(error)) from None
    return [EndpointOut(id=end.id, kind=end.kind, config=end.config, secrets=end.secrets) for end in endpoints]


def _definition(row: RowMapping) -> definitions.AnyDefinition:
    """The definition of a run. Raises InvalidPlan if another version of Headgate wrote it, so that it does not block
    the queue.
    """
    try:
        return definitions.parse(row["definition"])
    except ValueError:
        raise InvalidPlan(
            "Its definition is not one that this version of Headgate knows; save the pipeline again"
        ) from None


def _seconds(definition: Any, settings: Settings) -> float:
    most = timedelta(hours=settings.runs.max_hours)
    return (min(duration(definition.timeout), most) if definition.timeout else most).total_seconds()


def reach(connection: Connection, pipeline: str) -> list[DeclaredTable]:
    """The enabled tables that a pipeline declared. Its runs can access no others."""
    joined = table_ref_table.join(lake_item_table, _items.id == _refs.item_id)
    query = (
        select(_refs.item_id, _refs.mode, _items.layer_id)
        .select_from(joined)
        .where(_refs.resource_id == pipeline, _refs.enabled, _items.kind == "table")
    )
    return [DeclaredTable(item, mode, layer) for item, mode, layer in connection.execute(query)]


def _states(connection: Connection, pipeline: str, steps: list[AnyStep]) -> dict[str, dict[str, Any]]:
    """The cursor state of each output after the last published run of the pipeline."""
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


def _publish(call: Call, row: RowMapping) -> None:
    connection, now, run, fence = call.connection, call.now, row["id"], row["fence"]
    steps = connection.execute(select(run_step_table).where(_steps.run_id == run)).mappings().all()
    if any(step["state"] != "succeeded" for step in steps):
        raise Conflict("Some steps of this run have not finished")
    states = {
        step["item_id"]: step["result"]["state"] for step in steps if step["item_id"] and step["result"].get("state")
    }
    work = select(_works.id).where(_works.run_id == run, _works.fence == fence).limit(1)
    work_id = connection.execute(work).scalar()
    publish(call.services, connection, now, run, fence, member=row["acts_for_id"], work_id=work_id, states=states)


def begin_anew(connection: Connection, now: datetime, row: RowMapping, reason: str) -> str:
    """Restart a run from its first step, because another writer changed one of its output tables; returns its state."""
    if row["state"] == CANCELLING:
        return queue.end(RUNS, connection, now, row["id"], "cancelled")
    if row["losses"] >= MOVES:
        # The checkpoints start from a state that no longer exists, so a retry must start from the first step.
        forget_pointers(connection, row["id"])
        return fail(connection, now, row, "TABLE_MOVED", reason)
    forget_steps(connection, row["id"])
    return queue.requeue(RUNS, connection, now, row, losses=row["losses"] + 1, plan=None)


def fail(connection: Connection, now: datetime, row: RowMapping, code: str, reason: str) -> str:
    """Schedule a retry if the pipeline allows one, otherwise mark the run as failed; returns its state."""
    retries = definitions.parse(row["definition"]).retries
    if code not in UNRETRIED and row["attempt"] < retries.times:
        values = {"attempt": row["attempt"] + 1, "error_code": code, "error": reason}
        return queue.requeue(RUNS, connection, now, row, until=now + duration(retries.delay), **values)
    return queue.end(RUNS, connection, now, row["id"], "failed", code, reason)
