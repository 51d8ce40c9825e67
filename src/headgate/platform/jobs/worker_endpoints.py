"""Worker endpoints for jobs of all kinds: claim, heartbeat, finish. Authenticated by the worker secret, never by a
token.
"""

from typing import Annotated, Any

from anyio import CapacityLimiter
from fastapi import Path, Query, Request
from pydantic import BaseModel, Field, ValidationError
from sqlalchemy import Connection

from headgate.contracts.jobs import (
    BeatIn,
    ClaimIn,
    Claims,
    FinishIn,
    HeartbeatIn,
    InstructionsOut,
    JobId,
    JobOut,
    JobState,
    LogIn,
    WorkerId,
    WorkerIn,
)
from headgate.kit.clock import now
from headgate.kit.crash_points import crash_point
from headgate.kit.database import passes
from headgate.kit.errors import Conflict, Invalid, NotSignedIn, Problem, Unavailable
from headgate.kit.log import get_logger
from headgate.platform.http.authentication import worker as identify
from headgate.platform.http.guards import ByWorker
from headgate.platform.http.routes import Audit, GovernedRouter
from headgate.platform.jobs import queue, replacement
from headgate.platform.jobs.kinds import CannotBegin, JobKind, Outcome, WorkerSlots, kind_named
from headgate.platform.jobs.workers import is_leaving, note_worker
from headgate.platform.unit_of_work.call import Call
from headgate.platform.unit_of_work.services import Services
from headgate.platform.unit_of_work.stages import Stages
from headgate.platform.unit_of_work.watch import LONGEST

router = GovernedRouter(prefix="/api/worker", tags=["workers"])

LIMITER = CapacityLimiter(16)
"""Threads reserved for workers, so that jobs are renewed and finished however busy the server is."""
FAULT = "The job could not start because of an internal error; see the server's log"

KIND_PATTERN = r"^[a-z_]{1,40}$"
Kind = Annotated[str, Path(pattern=KIND_PATTERN, examples=["run"], description="The kind of job")]
Job = Annotated[JobId, Path()]
Wait = Annotated[float, Query(ge=0, le=LONGEST, description="Seconds to wait for something to answer")]
_log = get_logger("headgate.jobs")


def is_worker(services: Services, request: Request) -> bool:
    """Whether the request comes from a worker."""
    try:
        identify(request, services.worker_secret)
    except NotSignedIn:
        return False
    return True


async def until_waiting(services: Services, request: Request, parameters: dict[str, Any]) -> None:
    """Wait for a job that this worker would get. The guard refuses callers other than workers, who do not wait."""
    if not is_worker(services, request):
        return
    kind, slots = kind_named(parameters["kind"]), _slots(parameters["body"])

    def is_waiting(connection: Connection) -> bool:
        return kind.is_waiting(connection, now(), slots)

    await services.watch.wait(is_waiting, parameters["wait"])
    if await request.is_disconnected():
        # A dead worker would hold the claimed jobs until the lease expires.
        raise Unavailable


async def until_cancelled(services: Services, request: Request, parameters: dict[str, Any]) -> None:
    """Wait for a job to interrupt."""
    if not is_worker(services, request):
        return
    worker, kinds = parameters["body"].worker, _kinds(parameters["body"].running)

    def is_cancelling(connection: Connection) -> bool:
        return any(queue.is_cancelling(kind, connection, worker) for kind in kinds)

    await services.watch.wait(is_cancelling, parameters["wait"])


def _slots(body: ClaimIn) -> WorkerSlots:
    return WorkerSlots(body.worker, body.slots, body.total)


def _kinds(beats: list[BeatIn]) -> list[JobKind]:
    return [kind_named(name) for name in sorted({message.kind for message in beats})]


@router.governed(
    "POST",
    "/jobs/{kind}/claim",
    ByWorker("gets jobs, each with the credentials for it alone"),
    Audit.changes,
    staged=True,
    limiter=LIMITER,
    wait=until_waiting,
)
def claim_jobs(stages: Stages, kind: Kind, body: ClaimIn, wait: Wait = 0) -> Claims:
    """Claim queued jobs of one kind, up to the worker's free slots. The worker loses a job if it sends no heartbeat for
    the kind's lease. A job that may no longer begin is ended.
    """
    wanted = stages.peek(lambda call: kind_named(kind))
    try:
        jobs = stages.write(lambda call: _claim(wanted, call, body), in_turn=wanted.in_turn)
    except Exception as error:
        if not _is_our_fault(error):
            raise
        _log.exception("Jobs cannot be claimed together; claiming each by itself", kind=kind)
        jobs = _one_by_one(wanted, stages, body)
    stages.services.watch.ring()
    if jobs:
        crash_point("server: claimed")
    return Claims(jobs=jobs)


def _claim(kind: JobKind, call: Call, body: ClaimIn, only: str | None = None) -> list[JobOut]:
    if is_leaving(call.connection, body.worker):
        return []
    note_worker(call.connection, call.now, body)
    return queue.claim(kind, call, _slots(body), only)


def _is_our_fault(error: Exception) -> bool:
    """Whether an error is a defect of Headgate: neither transient nor caused by the caller."""
    return not (isinstance(error, Problem) or passes(error))


def _one_by_one(kind: JobKind, stages: Stages, body: ClaimIn) -> list[JobOut]:
    """Claim jobs in separate transactions: one that cannot begin fails without delaying the others."""
    jobs: list[JobOut] = []
    for job in stages.read(lambda call: kind.waiting(call.connection, call.now, _slots(body))):
        if len(jobs) == body.slots:
            break
        try:
            jobs += stages.write(lambda call, job=job: _claim(kind, call, body, job), in_turn=kind.in_turn)  # type: ignore[misc]
        except Exception as error:
            if not _is_our_fault(error):
                raise
            _log.exception("A job cannot begin; it fails", kind=kind.name, job=job)
            stages.write(lambda call, job=job: _fail(kind, call, job))  # type: ignore[misc]
    return jobs


def _fail(kind: JobKind, call: Call, job: str) -> None:
    if queue.locked(kind, call.connection, job) is not None:
        queue.fail_to_begin(kind, call, job, CannotBegin("failed", "FAULT", FAULT))


@router.governed(
    "POST",
    "/jobs/heartbeat",
    ByWorker("renews the leases of its jobs"),
    Audit.changes,
    staged=True,
    limiter=LIMITER,
    wait=until_cancelled,
)
def renew_leases(stages: Stages, body: HeartbeatIn, wait: Wait = 0) -> InstructionsOut:
    """Renew the leases of a worker's jobs and store their progress. The response names the jobs to interrupt and
    arrives immediately if there is one.
    """
    kinds = stages.peek(lambda call: _kinds(body.running))

    def work(call: Call) -> InstructionsOut:
        note_worker(call.connection, call.now, body)
        orders = InstructionsOut(cancel=[], lost=[])
        for kind in kinds:
            beats = [message for message in body.running if message.kind == kind.name]
            answer = queue.beat(kind, call.connection, call.now, call.settings, body.worker, beats)
            orders = InstructionsOut(cancel=orders.cancel + answer.cancel, lost=orders.lost + answer.lost)
        return orders

    return stages.write(work, in_turn=any(kind.in_turn for kind in kinds))


@router.governed(
    "POST",
    "/jobs/{kind}/{job_id}/log",
    ByWorker("writes the log of a job that it holds"),
    Audit.changes,
    errors=[Conflict],
    staged=True,
    limiter=LIMITER,
)
def add_log_lines(stages: Stages, kind: Kind, job_id: Job, body: LogIn) -> JobState:
    """Append lines to the log of a job."""
    wanted = stages.peek(lambda call: kind_named(kind))

    def work(call: Call) -> str:
        row = queue.owned(wanted, call.connection, job_id, body.worker, body.fence)
        wanted.log(call, job_id, body.lines)
        return str(row["state"])

    state = stages.write(work)
    stages.services.watch.ring()
    return JobState(state=state)


@router.governed(
    "POST",
    "/jobs/{kind}/{job_id}/finish",
    ByWorker("ends a job that it holds, or gives it back"),
    Audit.changes,
    errors=[Conflict],
    staged=True,
    limiter=LIMITER,
)
def finish_job(stages: Stages, kind: Kind, job_id: Job, body: FinishIn) -> JobState:
    """Report the outcome of a job. The response is 409 if the worker no longer holds the job. Repeating the message has
    no effect.
    """
    wanted = stages.peek(lambda call: kind_named(kind))
    outcome = Outcome(body.state, body.error_code, body.error, _result(wanted, body))

    def work(call: Call) -> str:
        ended = queue.ended_by(wanted, call.connection, job_id, body.worker, body.fence)
        if ended is not None:
            return ended
        row = queue.owned(wanted, call.connection, job_id, body.worker, body.fence)
        state = queue.finish(wanted, call, row, outcome)
        crash_point(f"server: finishing {state}")
        return state

    try:
        state = stages.write(work, in_turn=wanted.in_turn)
    except wanted.rollbacks as error:
        state = stages.write(lambda call, error=error: _recover(wanted, call, job_id, body, error))  # type: ignore[misc]
    crash_point(f"server: finished {state}")
    stages.services.watch.ring()
    wanted.finished(stages.services, job_id, body.fence, state)
    return JobState(state=state)


def _result(kind: JobKind, body: FinishIn) -> BaseModel | None:
    if body.state != "succeeded":
        return None
    try:
        return kind.result.model_validate(body.result)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise Invalid(f"result.{place}: {first['msg']}") from None


def _recover(kind: JobKind, call: Call, job: str, body: FinishIn, error: Exception) -> str:
    row = queue.owned(kind, call.connection, job, body.worker, body.fence)
    return kind.recover(call, row, error)


# Dead workers


class ReplacementIn(WorkerIn):
    """A worker, and the dead workers of its machine that it replaces."""

    dead: Annotated[list[WorkerId], Field(min_length=1, max_length=100)]


class Released(BaseModel):
    """The jobs of the dead workers."""

    released: int = Field(description="Number of jobs that other workers may claim now")


@router.governed(
    "POST",
    "/replace",
    ByWorker("ends the leases of workers of its own machine whose processes are gone"),
    Audit.changes,
    errors=[Invalid],
    staged=True,
    limiter=LIMITER,
)
def replace_workers(stages: Stages, body: ReplacementIn) -> Released:
    """Queue the jobs of dead workers of the same machine immediately, instead of after their leases expire."""
    if body.worker in body.dead:
        raise Invalid("dead: a worker cannot replace itself")

    def work(call: Call) -> list[str]:
        return replacement.release(call.connection, call.now, body.name, body.dead)

    released = stages.write(work, in_turn=True)
    for job in released:
        _log.warning("A worker died; its successor released its job", job=job, worker=body.worker)
    stages.services.watch.ring()
    return Released(released=len(released))
