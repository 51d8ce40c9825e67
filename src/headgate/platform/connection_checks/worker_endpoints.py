"""What workers call: claim errands, and say what they found out. By the worker secret, never a token."""

from typing import Annotated, Any

from fastapi import Path, Request

from headgate.kit.errors import Conflict
from headgate.lakehouse.sql.queue import is_leaving
from headgate.lakehouse.sql.worker_endpoints import LIMITER, Wait, page_bytes, wait_for
from headgate.platform.connection_checks import queue
from headgate.platform.connection_checks.schemas import (
    ErrandClaimIn,
    ErrandClaims,
    ErrandFinished,
    ErrandFinishIn,
    ErrandJob,
)
from headgate.platform.http.call import Call
from headgate.platform.http.guards import ByWorker
from headgate.platform.http.routes import Audit, GovernedRouter, Stages
from headgate.platform.http.services import Services

router = GovernedRouter(prefix="/api/worker/errands", tags=["workers"])

ErrandPath = Annotated[str, Path(pattern=r"^ern_[0-9a-z]{20}$", examples=["ern_01k6x3v9c2m4n8p0q7rs"])]


async def until_waiting(services: Services, request: Request, parameters: dict[str, Any]) -> None:
    """Wait for an errand."""
    await wait_for(queue.is_waiting, services, request, parameters)


@router.governed(
    "POST",
    "/claim",
    ByWorker("gets errands, each with the secrets of the place that it is about"),
    Audit.changes,
    staged=True,
    limiter=LIMITER,
    wait=until_waiting,
)
def claim_errands(stages: Stages, body: ErrandClaimIn, wait: Wait = 0) -> ErrandClaims:
    """Errands that wait, up to the worker's free slots, if who asked for each may still do so."""

    def work(call: Call) -> list[ErrandJob]:
        if is_leaving(call.connection, body.worker):
            return []
        claimeds = queue.claim(call.connection, call.now, call.services, body.worker, body.slots)
        return [ErrandJob.model_validate(claimed, from_attributes=True) for claimed in claimeds]

    jobs = stages.write(work)
    stages.services.watch.ring()
    most = page_bytes(stages.settings.server.max_body_bytes)
    return ErrandClaims(jobs=jobs, seconds=queue.SECONDS, max_bytes=most)


@router.governed(
    "POST",
    "/{errand_id}/finish",
    ByWorker("ends an errand that it runs"),
    Audit.changes,
    errors=[Conflict],
    staged=True,
    limiter=LIMITER,
)
def finish_errand(stages: Stages, errand_id: ErrandPath, body: ErrandFinishIn) -> ErrandFinished:
    """What came of an errand. One that was claimed again since, or is over, answers 409."""
    told: dict[str, Any] = {"state": body.state, "error_code": body.error_code, "error": body.error}
    told["result"] = body.result.model_dump(mode="json") if body.result else None

    def work(call: Call) -> str:
        return queue.finish(call.connection, call.now, errand_id, body.worker, body.fence, **told)

    state = stages.write(work)
    stages.services.watch.ring()
    return ErrandFinished(state=state)
