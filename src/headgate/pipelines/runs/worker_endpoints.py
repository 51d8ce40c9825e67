"""What workers call about runs: claim, keep alive, log, report, finish. By the worker secret, never a token."""

from contextlib import suppress
from datetime import datetime
from typing import Annotated, Any

from fastapi import Path, Query, Request

from headgate.contracts.jobs import Fence, InstructionsOut, WorkerId
from headgate.contracts.pipelines.steps import to_json
from headgate.contracts.runs import (
    Acknowledged,
    EndpointOut,
    LinesIn,
    RunClaimIn,
    RunClaims,
    RunFinishIn,
    RunHeartbeatIn,
    RunId,
    RunJobOut,
    RunState,
    StepIn,
    VolumeFileOut,
    VolumeFiles,
)
from headgate.kit.clock import now
from headgate.kit.crash_points import crash_point
from headgate.kit.database import is_full, passes
from headgate.kit.errors import Conflict, NotFound, Problem
from headgate.kit.log import get_logger
from headgate.kit.patterns import TextPattern
from headgate.pipelines.runs import artifacts, log, queue, staged_files, steps, volumes
from headgate.pipelines.runs import finish as finishing
from headgate.pipelines.runs.artifacts import RunArtifact
from headgate.pipelines.runs.completion import end
from headgate.pipelines.runs.schemas import ARTIFACT_NAME
from headgate.pipelines.runs.waiting import is_waiting, waiting
from headgate.platform.external_systems.opener import open_endpoint
from headgate.platform.http.bodies import Body
from headgate.platform.http.guards import ByWorker
from headgate.platform.http.routes import Audit, GovernedRouter
from headgate.platform.jobs.worker_endpoints import LIMITER, Wait, is_worker, wait_for
from headgate.platform.jobs.workers import is_leaving, note_worker
from headgate.platform.unit_of_work.call import Call
from headgate.platform.unit_of_work.services import Services
from headgate.platform.unit_of_work.stages import Stages
from headgate.warehouse.store import PathTaken

router = GovernedRouter(prefix="/api/worker/runs", tags=["workers"])

RunPath = Annotated[RunId, Path()]
_MEDIA_TYPE = TextPattern(r"^[a-z]{1,40}/[a-z0-9.+-]{1,59}$", "must be a media type, such as image/png")
MAX_ARTIFACTS = 500
FAULT = "The run could not start because of an internal error; see the server's log"
_log = get_logger("headgate.runs")


async def until_waiting(services: Services, request: Request, parameters: dict[str, Any]) -> None:
    """Wait for a run that could begin."""
    await wait_for(lambda connection: is_waiting(connection, now()), services, request, parameters)


async def until_cancelled(services: Services, request: Request, parameters: dict[str, Any]) -> None:
    """Wait for something to stop."""
    worker = parameters["body"].worker
    if is_worker(services, request):
        await services.watch.wait(lambda connection: queue.is_cancelling(connection, worker), parameters["wait"])


@router.governed(
    "POST",
    "/claim",
    ByWorker("gets runs, each with a token for what it declared, and the secrets of its connections"),
    Audit.changes,
    staged=True,
    limiter=LIMITER,
    wait=until_waiting,
)
def claim_runs(stages: Stages, body: RunClaimIn, wait: Wait = 0) -> RunClaims:
    """Runs that wait, the oldest first, up to the worker's free slots. Of runs with an output in common one begins at a
    time. Whoever a run acts for is judged again now: one that may not begin any more ends as blocked.
    """

    try:
        run_jobs = stages.write(lambda call: _claim(call, body), in_turn=True)
    except Exception as error:
        if not _is_our_fault(error):
            raise
        _log.exception("runs cannot be claimed in batches; claim one at a time")
        run_jobs = _one_by_one(stages, body)
    if run_jobs:
        crash_point("server: claimed")
    return RunClaims(jobs=run_jobs)


def _claim(call: Call, body: RunClaimIn, only: str | None = None) -> list[RunJobOut]:
    if is_leaving(call.connection, body.worker):
        return []
    note_worker(call.connection, call.now, body)
    claimed, over = queue.claim(call.connection, call.now, call.settings, body.worker, body.slots, only)
    for entry in over:
        log.add(call.connection, call.settings, entry.id, [(call.now, "error", entry.reason)])
    return [job for claimed in claimed if (job := _job(call, claimed)) is not None]


def _is_our_fault(error: Exception) -> bool:
    """Whether an error is nothing that passes, and nothing that the caller did."""
    return not (isinstance(error, Problem) or passes(error))


def _one_by_one(stages: Stages, body: RunClaimIn) -> list[RunJobOut]:
    """Claim runs in a transaction each: one that cannot begin ends, and keeps none of the others waiting."""
    run_jobs: list[RunJobOut] = []
    for run in stages.read(lambda call: waiting(call.connection, call.now)):
        if len(run_jobs) == body.slots:
            break
        try:
            run_jobs += stages.write(lambda call, run=run: _claim(call, body, run), in_turn=True)  # type: ignore[misc]
        except Exception as error:
            if not _is_our_fault(error):
                raise
            _log.exception("a run cannot start; it fails", run=run)
            stages.write(lambda call, run=run: _failed(call, run))  # type: ignore[misc]
    return run_jobs


def _failed(call: Call, run: str) -> None:
    if queue.fail_waiting(call.connection, call.now, run, "FAULT", FAULT):
        log.add(call.connection, call.settings, run, [(call.now, "error", FAULT)])


def _job(call: Call, claimed: queue.Claimed) -> RunJobOut | None:
    """A run for the worker; None for one that ended here, since what it uses cannot be opened."""
    try:
        endpoints = [open_endpoint(call.connection, call.services, place) for place in claimed.places]
    except (Conflict, NotFound) as error:
        end(call.connection, call.now, claimed.id, "failed", "CONNECTION", str(error))
        log.add(call.connection, call.settings, claimed.id, [(call.now, "error", str(error))])
        return None
    return RunJobOut(
        id=claimed.id,
        pipeline=claimed.pipeline_id,
        fence=claimed.fence,
        token=claimed.token,
        reading_token=claimed.reading_token,
        user=claimed.user,
        steps=to_json(claimed.steps),
        done=claimed.done,
        moment=claimed.moment,
        time_zone=claimed.time_zone,
        seconds=claimed.seconds,
        full_refresh=claimed.full_refresh,
        parameters=claimed.parameters,
        states=claimed.states,
        memories=claimed.memories,
        isolated=claimed.isolated,
        endpoints=[
            EndpointOut(id=endpoint.id, kind=endpoint.kind, config=endpoint.config, secrets=endpoint.secrets)
            for endpoint in endpoints
        ],
    )


@router.governed(
    "POST",
    "/heartbeat",
    ByWorker("keeps its runs alive"),
    Audit.changes,
    staged=True,
    limiter=LIMITER,
    wait=until_cancelled,
)
def beat_runs(stages: Stages, body: RunHeartbeatIn, wait: Wait = 0) -> InstructionsOut:
    """Keep a worker's runs alive, and tell how far they are. The answer says what to stop, at once if there is any."""

    def work(call: Call) -> InstructionsOut:
        note_worker(call.connection, call.now, body)
        beats = [
            queue.Beat(run_beat.id, run_beat.fence, run_beat.progress.model_dump() if run_beat.progress else None)
            for run_beat in body.running
        ]
        cancel, lost = queue.beat(call.connection, call.now, call.settings, body.worker, beats)
        return InstructionsOut(cancel=cancel, lost=lost)

    return stages.write(work, in_turn=True)


@router.governed(
    "GET",
    "/{run_id}/volumes/{volume_id}",
    ByWorker("lists the files of a volume that a run of its own declared"),
    Audit.nothing,
    errors=[Conflict],
    limiter=LIMITER,
)
def list_run_volume(
    call: Call,
    run_id: RunPath,
    volume_id: Annotated[str, Path(pattern=r"^vol_[0-9a-z]{20}$")],
    worker: Annotated[WorkerId, Query()],
    fence: Annotated[Fence, Query()],
) -> VolumeFiles:
    """The files of a volume that a run reads, as far as whom it acts for may see it now."""
    row = queue.owned(call.connection, run_id, worker, fence)
    results = volumes.files(call.connection, call.now, row, volume_id)
    return VolumeFiles(items=[VolumeFileOut(**value) for value in results])


@router.governed(
    "POST",
    "/{run_id}/lines",
    ByWorker("writes the log of a run that it has"),
    Audit.changes,
    errors=[Conflict],
    staged=True,
    limiter=LIMITER,
)
def add_run_lines(stages: Stages, run_id: RunPath, body: LinesIn) -> Acknowledged:
    """Add lines to the log of a run."""

    def work(call: Call) -> None:
        queue.owned(call.connection, run_id, body.worker, body.fence)
        log.add(call.connection, call.settings, run_id, [(line.at, line.level, line.text) for line in body.lines])

    stages.write(work)
    stages.services.watch.ring()
    return Acknowledged(id=run_id)


@router.governed(
    "POST",
    "/{run_id}/steps/{number}",
    ByWorker("tells of a step of a run that it has"),
    Audit.changes,
    errors=[Conflict],
    staged=True,
    limiter=LIMITER,
)
def report_step(
    stages: Stages, run_id: RunPath, number: Annotated[int, Path(ge=0, le=10_000)], body: StepIn
) -> Acknowledged:
    """That a step has begun, or what came of it. A finished one is not done again, whoever goes on with the run.

    With `memory`, what one under way tells for whoever may begin it again; refused once the run is to end.
    """
    counts = body.model_dump(include={"rows_in", "rows_out", "rejected", "bytes"})
    check = body.check.model_dump() if body.check else None
    result = {**counts, "state": body.cursor, "check": check, "detail": body.detail}

    def work(call: Call) -> None:
        row = queue.owned(call.connection, run_id, body.worker, body.fence)
        if body.memory is not None:
            steps.remember(call.connection, row, number, body.memory)
        else:
            steps.note_step(call.connection, call.now, row, number, body.state, dict(result))

    stages.write(work)
    crash_point(f"server: step {number} {body.state}")
    return Acknowledged(id=run_id)


@router.governed(
    "PUT",
    "/{run_id}/artifacts/{name}",
    ByWorker("keeps a file of a run that it has"),
    Audit.changes,
    errors=[Conflict],
    takes="application/octet-stream",
    staged=True,
    limiter=LIMITER,
)
def upload_artifact(
    stages: Stages,
    request: Request,
    run_id: RunPath,
    name: Annotated[str, ARTIFACT_NAME, Path()],
    worker: Annotated[WorkerId, Query()],
    fence: Annotated[Fence, Query()],
    media_type: Annotated[str, _MEDIA_TYPE, Query()],
) -> Acknowledged:
    """Keep a file with a run. Sent again, it replaces what was sent before."""
    stages.read(lambda call: queue.owned(call.connection, run_id, worker, fence))
    content = b"".join(Body(request))
    place = f"runs/{run_id}/{fence}/{name}"
    with suppress(PathTaken):
        stages.services.store.write(place, [content])

    def work(call: Call) -> None:
        queue.owned(call.connection, run_id, worker, fence)
        artifacts.keep(call.connection, run_id, RunArtifact(name, media_type, len(content), place))

    stages.write(work)
    return Acknowledged(id=run_id)


@router.governed(
    "POST",
    "/{run_id}/finish",
    ByWorker("ends a run that it has, or gives it back"),
    Audit.changes,
    errors=[Conflict],
    staged=True,
    limiter=LIMITER,
)
def finish_run(stages: Stages, run_id: RunPath, body: RunFinishIn) -> RunState:
    """What came of a run. One that succeeded is published: all its outputs in one transaction, or, if another has
    changed one of them since, none, and it begins anew. Told again by the same worker, nothing is done twice.
    """
    outcome = finishing.Outcome(body.state, body.error_code, body.error)

    def work(call: Call) -> str:
        try:
            row = queue.owned(call.connection, run_id, body.worker, body.fence)
        except Conflict:
            ended = queue.ended_by(call.connection, run_id, body.worker, body.fence)
            if ended is None:
                raise
            return ended
        state = finishing.finish(call.services, call.connection, call.now, row, outcome)
        crash_point(f"server: finishing {state}")
        return state

    try:
        state = stages.write(work, in_turn=True)
    except finishing.TableMovedDuringRun as error:
        moved = str(error)
        state = stages.write(lambda call: _again(call, run_id, body, moved))
    except finishing.REFUSALS as error:
        refused = str(error)
        state = stages.write(lambda call: _blocked(call, run_id, body, refused))
    crash_point(f"server: finished {state}")
    stages.services.watch.ring()
    if state == "succeeded":
        unmoved = staged_files.move_outputs(stages.services, run_id)
        lines = [(now(), "warning", f"Could not move a file to its volume: {why}") for why in unmoved]
        if lines:
            _add_if_there_is_room(stages, run_id, lines)
    return RunState(id=run_id, state=state)


def _add_if_there_is_room(stages: Stages, run_id: str, lines: list[tuple[datetime, str, str]]) -> None:
    """Tell of what became of a run that has ended: the worker need not come again for that."""
    try:
        stages.write(lambda call: log.add(call.connection, call.settings, run_id, lines))
    except Exception as error:
        if not is_full(error):
            raise


def _again(call: Call, run_id: str, body: RunFinishIn, reason: str) -> str:
    row = queue.owned(call.connection, run_id, body.worker, body.fence)
    log.add(call.connection, call.settings, run_id, [(call.now, "warning", reason)])
    return finishing.begin_anew(call.connection, call.now, row, reason)


def _blocked(call: Call, run_id: str, body: RunFinishIn, reason: str) -> str:
    row = queue.owned(call.connection, run_id, body.worker, body.fence)
    why = f"The member as whom this run executes may no longer write to an output: {reason}"
    return finishing.block(call.connection, call.now, row, why)
