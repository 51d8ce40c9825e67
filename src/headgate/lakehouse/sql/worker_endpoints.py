"""Worker endpoints of statements, besides claim and finish: upload pages, report the columns of a probe."""

from contextlib import suppress
from typing import Annotated

from fastapi import Path, Query, Request

from headgate.contracts.jobs import Fence, WorkerId
from headgate.contracts.statements import AnalysedIn, ColumnsRecorded, Stored
from headgate.kit.errors import Conflict
from headgate.lakehouse.sql.job import STATEMENTS, note_analysed
from headgate.platform.http.bodies import Body
from headgate.platform.http.guards import ByWorker
from headgate.platform.http.routes import Audit, GovernedRouter
from headgate.platform.jobs import queue
from headgate.platform.jobs.worker_endpoints import LIMITER
from headgate.platform.unit_of_work.call import Call
from headgate.platform.unit_of_work.stages import Stages
from headgate.warehouse.locations import result_page
from headgate.warehouse.store import PathTaken

router = GovernedRouter(prefix="/api/worker", tags=["workers"])

StatementPath = Annotated[str, Path(pattern=r"^stm_[0-9a-z]{20}$", examples=["stm_01k6x3v9c2m4n8p0q7rs"])]


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
    """Upload a result page as an Arrow stream. Page 0 is sent with the finish."""
    stages.read(lambda call: queue.owned(STATEMENTS, call.connection, statement_id, worker, fence))
    page = b"".join(Body(request))
    # A repeated upload, because the first response was lost. A fence has one worker, which sends each page identically.
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
    """Report the columns of a query and their origins, for the rest of the probe and for the save."""

    def work(call: Call) -> None:
        row = queue.owned(STATEMENTS, call.connection, statement_id, body.worker, body.fence)
        note_analysed(call.connection, row, body.model_dump(exclude={"worker", "fence"}))

    stages.write(work)
    return ColumnsRecorded(id=statement_id)
