"""What a worker says of the workers that it replaces."""

from typing import Annotated

from pydantic import BaseModel, Field

from headgate.contracts.statements import WorkerId, WorkerIn
from headgate.kit.errors import Invalid
from headgate.kit.log import get_logger
from headgate.lakehouse.sql.worker_endpoints import LIMITER
from headgate.platform.http.guards import ByWorker
from headgate.platform.http.routes import Audit, GovernedRouter, Stages
from headgate.platform.jobs import replacement

router = GovernedRouter(prefix="/api/worker", tags=["workers"])
_log = get_logger("headgate.workers")


class ReplacementIn(WorkerIn):
    """A worker, and dead ones of its machine that it replaces."""

    dead: Annotated[list[WorkerId], Field(min_length=1, max_length=100)]


class Released(BaseModel):
    """What the dead workers had."""

    released: int = Field(description="Statements, runs, connection checks and rewrites that others may claim now")


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
    """Have what dead workers of the same machine held begun again now, instead of when their leases run out."""
    if body.worker in body.dead:
        raise Invalid("dead: a worker cannot replace itself")
    taken = stages.write(
        lambda call: replacement.release(call.connection, call.now, call.settings, body.name, body.dead), in_turn=True
    )
    for value in taken:
        _log.warning("a worker died; its successor released what it held", id=value, worker=body.worker)
    stages.services.watch.ring()
    return Released(released=len(taken))
