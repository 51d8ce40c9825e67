"""What workers call: claim statements, keep them alive, upload pages, finish. By the worker secret, never a token."""

from contextlib import suppress
from functools import partial
from typing import Annotated, Any

from fastapi import Path, Query, Request

from headgate.contracts.jobs import ClaimIn, Fence, InstructionsOut, WorkerId
from headgate.contracts.statements import (
    AnalysedIn,
    Claims,
    ColumnsRecorded,
    Finished,
    FinishIn,
    HeartbeatIn,
    Job,
    Stored,
)
from headgate.kit.errors import Conflict, Invalid
from headgate.lakehouse.sql import fair_share, queue, repository
from headgate.pipelines.probe import PIPELINE, save_probed
from headgate.platform.http.bodies import Body
from headgate.platform.http.guards import ByWorker
from headgate.platform.http.routes import Audit, GovernedRouter
from headgate.platform.jobs.kinds import result_bytes
from headgate.platform.jobs.worker_endpoints import LIMITER, Wait, is_worker, wait_for
from headgate.platform.jobs.workers import is_leaving, note_worker
from headgate.platform.unit_of_work.call import Call
from headgate.platform.unit_of_work.services import Services
from headgate.platform.unit_of_work.stages import Stages
from headgate.warehouse.locations import result_page
from headgate.warehouse.store import PathTaken

router = GovernedRouter(prefix="/api/worker", tags=["workers"])

StatementPath = Annotated[str, Path(pattern=r"^stm_[0-9a-z]{20}$", examples=["stm_01k6x3v9c2m4n8p0q7rs"])]


def _room(body: ClaimIn) -> fair_share.WorkerSlots:
    return fair_share.WorkerSlots(body.worker, body.slots, body.total)


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
        if is_leaving(call.connection, body.worker):
            return []
        note_worker(call.connection, call.now, body)
        claimeds = queue.claim(call.connection, call.now, call.settings, _room(body))
        return [Job.model_validate(claimed, from_attributes=True) for claimed in claimeds]

    sql = stages.settings.sql
    return Claims(
        jobs=stages.write(work),
        statement_seconds=sql.statement_seconds,
        max_bytes=sql.max_bytes,
        page_bytes=result_bytes(stages.settings),
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
        note_worker(call.connection, call.now, body)
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
