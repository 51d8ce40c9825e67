"""Run endpoints: follow, read the log, cancel, resume."""

from typing import Annotated, Any

from fastapi import Path, Query, Request, Response
from starlette.concurrency import run_in_threadpool

from headgate.contracts.runs import RunState
from headgate.kit.clock import now
from headgate.kit.errors import Conflict, NotFound, NotSignedIn
from headgate.kit.paging import DEFAULT_LIMIT, Cursor
from headgate.pipelines.runs import log, service
from headgate.pipelines.runs.artifacts import RunArtifact, artifact
from headgate.pipelines.runs.schemas import ARTIFACT_NAME, LogPage, RunOut, RunPage
from headgate.pipelines.schemas import PipelineId
from headgate.platform.authorization import writer
from headgate.platform.authorization.questions import Question, decide
from headgate.platform.http.authentication import caller
from headgate.platform.http.guards import MemberOn, OnPipeline
from headgate.platform.http.paging import After, Limit, begins_after
from headgate.platform.http.routes import Audit, GovernedRouter
from headgate.platform.jobs.models import ENDED, WAITING
from headgate.platform.unit_of_work.call import Call
from headgate.platform.unit_of_work.services import Services
from headgate.platform.unit_of_work.stages import Stages
from headgate.platform.unit_of_work.watch import LONGEST

router = GovernedRouter(tags=["runs"])

RunId = Annotated[str, Path(pattern="^run_[0-9a-z]{20}$", examples=["run_01k6x3v9c2m4n8p0q7rs"])]
Wait = Annotated[float, Query(ge=0, le=LONGEST, description="Wait up to this many seconds for a change")]


async def _until(services: Services, request: Request, parameters: dict[str, Any], check: Any) -> None:
    """Wait only if the caller may see the run; otherwise return at once."""
    run, seconds = parameters["run_id"], parameters["wait"]
    if not seconds:
        return

    def sees() -> bool:
        with services.database.peek() as connection:
            who = caller(connection, request, services.settings, now())
            return bool(decide(connection, Question(who.member, "see", "run", run, narrowing=who.narrowing), now()))

    try:
        may = sees() if services.database.is_in_process else await run_in_threadpool(sees)
    except NotSignedIn:
        return
    if may:
        await services.watch.wait(check, seconds)


async def until_over(services: Services, request: Request, parameters: dict[str, Any]) -> None:
    """Wait until the run ends."""
    run = parameters["run_id"]
    await _until(services, request, parameters, lambda connection: service.has_ended(connection, run))


async def until_more(services: Services, request: Request, parameters: dict[str, Any]) -> None:
    """Wait for a new log line or the end of the run."""
    run, after = parameters["run_id"], parameters["after"]
    await _until(
        services,
        request,
        parameters,
        lambda connection: log.has_more(connection, run, after) or service.has_ended(connection, run),
    )


@router.governed(
    "GET", "/api/pipelines/{pipeline_id}/runs", OnPipeline("see", "pipeline_id", on_task="open"), Audit.nothing
)
def list_runs(call: Call, pipeline_id: PipelineId, limit: Limit = DEFAULT_LIMIT, cursor: After = None) -> RunPage:
    """List the runs of a pipeline, newest first. Runs are kept for `runs.history_days`."""
    purpose = f"runs {pipeline_id}"
    after = begins_after(cursor, purpose)
    run_items = service.page(call, pipeline_id, after.id if after else None, limit + 1)
    following = Cursor("", run_items[limit - 1].id).encode(purpose) if len(run_items) > limit else None
    return RunPage(items=run_items[:limit], next_cursor=following)


@router.governed("GET", "/api/runs/{run_id}", MemberOn("see", "run_id"), Audit.nothing, wait=until_over)
def get_run(call: Call, run_id: RunId, wait: Wait = 0) -> RunOut:
    """Get the status of a run: its steps with rows in, out and rejected, Spark's progress, the published tables, or the
    error. Rows that failed a check are shown only to members who may read the table.
    """
    return service.shown(call, run_id)


@router.governed("GET", "/api/runs/{run_id}/log", MemberOn("see", "run_id"), Audit.nothing, wait=until_more)
def get_run_log(
    call: Call,
    run_id: RunId,
    after: Annotated[int, Query(ge=-1, le=2**31 - 1, description="Lines after this number; -1 for all lines")] = -1,
    limit: Annotated[int, Query(ge=1, le=1000)] = 500,
    wait: Wait = 0,
) -> LogPage:
    """Read log lines of a run, in order. With `wait`, the response arrives when there are new lines or the run has
    ended.
    """
    return service.lines(call, run_id, after, limit)


@router.governed("POST", "/api/runs/{run_id}/cancel", MemberOn("see", "run_id"), Audit.changes, staged=True)
def cancel_run(stages: Stages, run_id: RunId) -> RunState:
    """Cancel a run: nothing more is committed for it, and its Spark job is stopped. Members who may start the pipeline
    may cancel its runs. A finished run is not changed.
    """

    def work(call: Call) -> RunState:
        service.require_control(call, run_id)
        service.cancel(call, run_id)
        return RunState(id=run_id, state=service.row_of(call, run_id)["state"])

    run_state = stages.write(work)
    stages.services.watch.ring()
    return run_state


@router.governed(
    "POST", "/api/runs/{run_id}/resume", MemberOn("see", "run_id"), Audit.changes, errors=[Conflict], staged=True
)
def resume_run(stages: Stages, run_id: RunId) -> RunState:
    """Resume a failed or cancelled run after its last finished step."""

    def work(call: Call) -> RunState:
        call.require("start", "pipeline", service.row_of(call, run_id)["parent_id"])
        service.resume(call, run_id)
        return RunState(id=run_id, state=WAITING)

    run_state = stages.write(work)
    stages.services.watch.ring()
    return run_state


@router.governed("DELETE", "/api/runs/{run_id}", MemberOn("delete", "run_id"), Audit.changes, errors=[Conflict])
def delete_run(call: Call, run_id: RunId) -> RunState:
    """Delete the record of a finished run. The tables it wrote and the ledger remain."""
    row = service.row_of(call, run_id)
    if row["state"] not in ENDED:
        raise Conflict("This run has not ended; cancel it first")
    writer.remove(call.connection, [run_id])
    call.record(call.event(service.DELETED, allowed=True, action="delete", kind="run", resource_id=run_id))
    return RunState(id=run_id, state="deleted")


@router.governed(
    "GET",
    "/api/runs/{run_id}/artifacts/{name}",
    MemberOn("see", "run_id"),
    Audit.reads,
    text="application/octet-stream",
    staged=True,
)
def get_run_artifact(stages: Stages, run_id: RunId, name: Annotated[str, ARTIFACT_NAME, Path()]) -> Response:
    """Download an artifact of a run, such as a plot of a notebook."""

    def work(call: Call) -> RunArtifact:
        listed = {kept.name for kept in service.shown(call, run_id).artifacts}
        kept = artifact(call.connection, run_id, name) if name in listed else None
        if kept is None:
            raise NotFound
        return kept

    kept = stages.read(work)
    content = stages.services.store.read(kept.place)
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(content, media_type=kept.media_type, headers=headers)
