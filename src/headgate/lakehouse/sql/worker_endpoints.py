"""What workers call: claim statements, keep them alive, upload pages, finish. By the worker secret, never a token."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Annotated, Any

from anyio import CapacityLimiter
from fastapi import Path, Query, Request
from sqlalchemy import Connection

from headgate.contracts.statements import (
    AnalysedIn,
    ClaimIn,
    Claims,
    ColumnsRecorded,
    Fence,
    Finished,
    FinishIn,
    HeartbeatIn,
    InstructionsOut,
    Job,
    Stored,
    WorkerId,
)
from headgate.kit.errors import Conflict, Invalid, NotSignedIn, Unavailable
from headgate.lakehouse.sql import fair_share, queue, repository
from headgate.pipelines.probe import PIPELINE, save_probed
from headgate.platform.http.authentication import worker as identify
from headgate.platform.http.bodies import Body
from headgate.platform.http.call import Call
from headgate.platform.http.guards import ByWorker
from headgate.platform.http.routes import Audit, GovernedRouter, Stages
from headgate.platform.http.services import Services
from headgate.platform.jobs.watch import LONGEST
from headgate.warehouse.locations import result_page
from headgate.warehouse.store import PathTaken

router = GovernedRouter(prefix="/api/worker", tags=["workers"])

LIMITER = CapacityLimiter(16)
"""Threads for workers alone: however busy members keep the server, statements stay alive and end."""

PAGE = 1 << 20
_ENVELOPE = 64 << 10
StatementPath = Annotated[str, Path(pattern=r"^stm_[0-9a-z]{20}$", examples=["stm_01k6x3v9c2m4n8p0q7rs"])]
Wait = Annotated[float, Query(ge=0, le=LONGEST, description="Answer later, if there is nothing to say yet")]


def page_bytes(most: int) -> int:
    """The largest page: in base64, and with what goes with it, it must fit into a body."""
    return max(512, min(PAGE, (most - min(_ENVELOPE, most // 2)) * 3 // 4))


def is_worker(services: Services, request: Request) -> bool:
    """Whether a worker asks."""
    try:
        identify(request, services.worker_secret)
    except NotSignedIn:
        return False
    return True


def _room(body: ClaimIn) -> fair_share.WorkerSlots:
    return fair_share.WorkerSlots(body.worker, body.slots, body.total)


async def wait_for(
    check: Callable[[Connection], bool], services: Services, request: Request, parameters: dict[str, Any]
) -> None:
    """Wait, if a worker asks, until there is something for it to claim."""
    if is_worker(services, request):
        await services.watch.wait(check, parameters["wait"])
        if await request.is_disconnected():
            # What a dead worker gets would wait for the end of its lease.
            raise Unavailable


async def until_waiting(services: Services, request: Request, parameters: dict[str, Any]) -> None:
    """Wait for a statement that this worker would get."""
    room = _room(parameters["body"])
    await wait_for(lambda connection: fair_share.is_waiting(connection, room), services, request, parameters)


async def until_cancelled(services: Services, request: Request, parameters: dict[str, Any]) -> None:
    """Wait for something to interrupt."""
    worker = parameters["body"].worker
    if is_worker(services, request):
        await services.watch.wait(lambda connection: repository.is_cancelling(connection, worker), parameters["wait"])


@router.governed(
    "POST",
    "/claim",
    ByWorker("gets statements to run, each with a token for the catalog alone"),
    Audit.changes,
    staged=True,
    limiter=LIMITER,
    wait=until_waiting,
)
def claim_statements(stages: Stages, body: ClaimIn, wait: Wait = 0) -> Claims:
    """Statements that wait, up to the worker's free slots, those of members who run fewest first. The last free slot of
    several goes only to a member who runs nothing on this worker. Each is its own for 20 seconds after every heartbeat.
    """

    def work(call: Call) -> list[Job]:
        if queue.is_leaving(call.connection, body.worker):
            return []
        queue.note_worker(call.connection, call.now, body.worker, body.name, body.version, body.state)
        claimeds = queue.claim(call.connection, call.now, call.settings, _room(body))
        return [Job.model_validate(claimed, from_attributes=True) for claimed in claimeds]

    sql = stages.settings.sql
    return Claims(
        jobs=stages.write(work),
        statement_seconds=sql.statement_seconds,
        max_bytes=sql.max_bytes,
        page_bytes=page_bytes(stages.settings.server.max_body_bytes),
    )


@router.governed(
    "POST",
    "/heartbeat",
    ByWorker("keeps alive what it runs"),
    Audit.changes,
    staged=True,
    limiter=LIMITER,
    wait=until_cancelled,
)
def beat_worker(stages: Stages, body: HeartbeatIn, wait: Wait = 0) -> InstructionsOut:
    """Keep what the worker runs alive, and tell how far it is. The answer says what to interrupt; it comes at once when
    there is something.
    """

    def work(call: Call) -> queue.Orders:
        queue.note_worker(call.connection, call.now, body.worker, body.name, body.version, body.state)
        beats = [
            queue.Beat(
                statement_progress.id,
                statement_progress.fence,
                statement_progress.progress.model_dump() if statement_progress.progress else None,
            )
            for statement_progress in body.running
        ]
        return queue.beat(call.connection, call.now, body.worker, beats)

    return InstructionsOut.model_validate(stages.write(work), from_attributes=True)


@router.governed(
    "PUT",
    "/statements/{statement_id}/pages/{number}",
    ByWorker("stores a page of what it runs"),
    Audit.changes,
    errors=[Conflict],
    takes="application/octet-stream",
    staged=True,
    limiter=LIMITER,
)
def upload_page(
    stages: Stages,
    request: Request,
    statement_id: StatementPath,
    number: Annotated[int, Path(ge=1, le=10**6)],
    worker: Annotated[WorkerId, Query()],
    fence: Annotated[Fence, Query()],
) -> Stored:
    """Store a page of a result, as an Arrow stream. The first, page 0, travels with the finish."""
    stages.read(lambda call: queue.owned(call.connection, statement_id, worker, fence))
    page = b"".join(Body(request))
    # Taken: sent again because the first answer was lost. A fence has one worker, which sends a page one way only.
    with suppress(PathTaken):
        stages.services.store.write(result_page(f"{statement_id}/{fence}", number), [page])
    return Stored(number=number, bytes=len(page))


@router.governed(
    "POST",
    "/statements/{statement_id}/analysed",
    ByWorker("tells what the SQL of a probe that it runs would give"),
    Audit.changes,
    errors=[Conflict],
    staged=True,
    limiter=LIMITER,
)
def report_probe_columns(stages: Stages, statement_id: StatementPath, body: AnalysedIn) -> ColumnsRecorded:
    """The columns that a query would give, and what they are made of: for the rest of the probe, and for the save."""

    def work(call: Call) -> None:
        row = queue.owned(call.connection, statement_id, body.worker, body.fence)
        queue.note_analysed(call.connection, row, body.model_dump(exclude={"worker", "fence"}))

    stages.write(work)
    return ColumnsRecorded(id=statement_id)


@router.governed(
    "POST",
    "/statements/{statement_id}/finish",
    ByWorker("ends what it runs, or gives it back"),
    Audit.changes,
    errors=[Conflict],
    staged=True,
    limiter=LIMITER,
)
def finish_statement(stages: Stages, statement_id: StatementPath, body: FinishIn) -> Finished:
    """What came of a statement. A statement that was claimed again since, or is over, answers 409."""
    is_whole = body.first_page is not None and body.columns is not None and body.pages is not None
    told = body.model_dump(exclude={"worker", "fence", "bytes", "first_page"})
    outcome = queue.Outcome(**told, size=body.bytes, first_page=body.first_page)

    def work(call: Call) -> str:
        row = queue.owned(call.connection, statement_id, body.worker, body.fence)
        if body.state == "succeeded" and row["purpose"] == "statement" and not is_whole:
            raise Invalid("a statement that succeeded has columns, pages and a first page")
        save = partial(save_probed, call.services) if PIPELINE in (row["save"] or {}) else queue.save_query
        return queue.finish(call.connection, call.now, call.settings, row, outcome, save)

    state = stages.write(work)
    if state != "succeeded":
        stages.services.store.delete_folder(f"results/{statement_id}/{body.fence}")
    stages.services.watch.ring()
    return Finished(state=state)
