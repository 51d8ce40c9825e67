"""What workers call: claim a table to rewrite, and say what came of it. By the worker secret, never a token."""

from typing import Annotated, Any

from fastapi import Path, Request

from headgate.kit.errors import Conflict
from headgate.lakehouse.maintenance import queue
from headgate.lakehouse.maintenance.endpoints import PassId
from headgate.lakehouse.maintenance.schemas import (
    RewriteClaim,
    RewriteClaimIn,
    RewriteFinished,
    RewriteFinishIn,
    RewriteJob,
)
from headgate.platform.http.call import Call
from headgate.platform.http.guards import ByWorker
from headgate.platform.http.routes import Audit, GovernedRouter, Stages
from headgate.platform.http.services import Services
from headgate.platform.jobs.worker_endpoints import LIMITER, Wait, wait_for
from headgate.platform.jobs.workers import is_leaving

router = GovernedRouter(prefix="/api/worker/maintenance", tags=["workers"])

TableId = Annotated[str, Path(pattern="^tbl_[0-9a-z]{20}$", examples=["tbl_01k6x3v9c2m4n8p0q7rs"])]


async def until_waiting(services: Services, request: Request, parameters: dict[str, Any]) -> None:
    """Wait for a table to rewrite."""
    await wait_for(queue.is_waiting, services, request, parameters)


@router.governed(
    "POST",
    "/claim",
    ByWorker("gets a table to rewrite, with a token for it"),
    Audit.changes,
    staged=True,
    limiter=LIMITER,
    wait=until_waiting,
)
def claim_rewrite(stages: Stages, body: RewriteClaimIn, wait: Wait = 0) -> RewriteClaim:
    """The table that has waited longest, unless a run writes it by now."""

    def work(call: Call) -> RewriteJob | None:
        if is_leaving(call.connection, body.worker):
            return None
        claimed = queue.claim(call.connection, call.now, call.settings, body.worker)
        return RewriteJob.model_validate(claimed, from_attributes=True) if claimed else None

    return RewriteClaim(job=stages.write(work))


@router.governed(
    "POST",
    "/{pass_id}/{table_id}/finish",
    ByWorker("ends the rewriting that it was given"),
    Audit.changes,
    errors=[Conflict],
    staged=True,
    limiter=LIMITER,
)
def finish_rewrite(stages: Stages, pass_id: PassId, table_id: TableId, body: RewriteFinishIn) -> RewriteFinished:
    """What came of it. One that was given up since answers 409."""
    told = body.model_dump(include={"files_before", "files_after", "error"})
    stages.write(lambda call: queue.finish(call.connection, pass_id, table_id, body.worker, body.fence, **told))
    return RewriteFinished()
