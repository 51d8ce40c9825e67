"""Worker endpoints of runs, besides claim, log and finish: report steps, upload artifacts, list volumes."""

from contextlib import suppress
from typing import Annotated

from fastapi import Path, Query, Request

from headgate.contracts.jobs import Fence, WorkerId
from headgate.contracts.runs import Acknowledged, RunId, StepIn, VolumeFileOut, VolumeFiles
from headgate.kit.crash_points import crash_point
from headgate.kit.errors import Conflict
from headgate.kit.patterns import TextPattern
from headgate.pipelines.runs import artifacts, steps, volumes
from headgate.pipelines.runs.artifacts import RunArtifact
from headgate.pipelines.runs.job import RUNS
from headgate.pipelines.runs.schemas import ARTIFACT_NAME
from headgate.platform.http.bodies import Body
from headgate.platform.http.guards import ByWorker
from headgate.platform.http.routes import Audit, GovernedRouter
from headgate.platform.jobs import queue
from headgate.platform.jobs.worker_endpoints import LIMITER
from headgate.platform.unit_of_work.call import Call
from headgate.platform.unit_of_work.stages import Stages
from headgate.warehouse.store import PathTaken

router = GovernedRouter(prefix="/api/worker/runs", tags=["workers"])

RunPath = Annotated[RunId, Path()]
_MEDIA_TYPE = TextPattern(r"^[a-z]{1,40}/[a-z0-9.+-]{1,59}$", "must be a media type, such as image/png")
MAX_ARTIFACTS = 500


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
    """List the files of a volume that a run reads, as far as the member it runs as may see it now."""
    row = queue.owned(RUNS, call.connection, run_id, worker, fence)
    results = volumes.files(call.connection, call.now, row, volume_id)
    return VolumeFiles(items=[VolumeFileOut(**value) for value in results])


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
    """Report the start or the result of a step. A finished step is not executed again, even by another worker.

    With `memory`, a running step reports state for its next attempt. The call is refused if the run is about to end.
    """
    counts = body.model_dump(include={"rows_in", "rows_out", "rejected", "bytes"})
    check = body.check.model_dump() if body.check else None
    result = {**counts, "state": body.cursor, "check": check, "detail": body.detail}

    def work(call: Call) -> None:
        row = queue.owned(RUNS, call.connection, run_id, body.worker, body.fence)
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
    """Upload an artifact of a run. A repeated upload replaces the earlier one."""
    stages.read(lambda call: queue.owned(RUNS, call.connection, run_id, worker, fence))
    content = b"".join(Body(request))
    place = f"runs/{run_id}/{fence}/{name}"
    with suppress(PathTaken):
        stages.services.store.write(place, [content])

    def work(call: Call) -> None:
        queue.owned(RUNS, call.connection, run_id, worker, fence)
        artifacts.keep(call.connection, run_id, RunArtifact(name, media_type, len(content), place))

    stages.write(work)
    return Acknowledged(id=run_id)
