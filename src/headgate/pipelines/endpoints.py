"""Pipeline endpoints: create, save, view, start."""

from typing import Annotated

from fastapi import Query

from headgate.kit.errors import Conflict, TooManyAttempts
from headgate.kit.paging import DEFAULT_LIMIT
from headgate.pipelines import (
    confirmation,
    deferred_checks,
    expected_columns,
    probe,
    service,
)
from headgate.pipelines import (
    save as saving,
)
from headgate.pipelines.runs import service as runs
from headgate.pipelines.runs.schemas import RunOut
from headgate.pipelines.schemas import (
    ConfirmIn,
    PipelineChange,
    PipelineDeleted,
    PipelineId,
    PipelineIn,
    PipelineOut,
    PipelinePage,
    PipelineSaving,
    PlanIn,
    PlanOut,
    RunIn,
)
from headgate.platform.authorization.repository import ResourceSort
from headgate.platform.http.guards import MemberOn, OnPipeline, SignedIn
from headgate.platform.http.paging import After, Limit, Prefix
from headgate.platform.http.routes import Audit, GovernedRouter
from headgate.platform.resources import presentation
from headgate.platform.unit_of_work.call import Call
from headgate.platform.unit_of_work.stages import Stages

router = GovernedRouter(prefix="/api/pipelines", tags=["pipelines"])

Sort = Annotated[ResourceSort, Query(description="The order; a leading minus turns it around")]


@router.governed(
    "GET", "", SignedIn("sees the pipelines whose tables they may all see, and the tasks of their spaces"), Audit.reads
)
def list_pipelines(
    call: Call, sort: Sort = ResourceSort.name, prefix: Prefix = "", limit: Limit = DEFAULT_LIMIT, cursor: After = None
) -> PipelinePage:
    """List pipelines, each with its last run and the actions allowed to the caller."""
    resources, following = presentation.listed(call, saving.KIND, sort, prefix, limit, cursor)
    return PipelinePage(items=service.items(call, resources), next_cursor=following)


def _save(stages: Stages, draft: saving.PipelineDraft, *, active: bool | None = None) -> PipelineSaving:
    """Save a draft, or submit a probe first if it contains SQL. Enable or disable the stored pipeline in the same
    transaction.
    """

    def turn(call: Call) -> None:
        if draft.own is not None and active is not None:
            service.change(call, draft.own, PipelineChange(active=active))

    fields = expected_columns.of_history(stages, draft.definition)

    def save(call: Call) -> str:
        turn(call)
        return saving.save(call, draft, [], analysed=saving.Analysed(fields))

    def work(call: Call) -> str:
        turn(call)
        saving.judge(call, draft, saving.refs(call, draft.definition, []))
        return probe.submit(call, draft, sql, fields)

    sql = stages.read(lambda call: deferred_checks.probed_sql(call.connection, draft.definition))
    if not sql:
        return PipelineSaving(id=stages.write(save), statement=None, state="saved")
    statement = stages.write(work)
    stages.services.watch.ring()
    return PipelineSaving(id=draft.own, statement=statement, state="queued")


@router.governed(
    "POST",
    "",
    SignedIn("makes pipelines of tables on which they are Editor"),
    Audit.changes,
    errors=[Conflict, TooManyAttempts],
    staged=True,
)
def create_pipeline(stages: Stages, body: PipelineIn) -> PipelineSaving:
    """Create a pipeline. It runs with the rights of its author, which are checked at every run. Outputs that do not
    exist yet get their names and ids now. SQL is analysed first to find the tables it reads: follow the statement in
    the response.
    """
    draft = saving.PipelineDraft(
        body.definition, body.name, body.description, body.project, deactivate_after=body.deactivate_after
    )
    return _save(stages, draft)


@router.governed(
    "POST",
    "/plan",
    SignedIn("looks at what a definition would do, if they may save it"),
    Audit.nothing,
    errors=[Conflict],
)
def plan_definition(call: Call, body: PlanIn) -> PlanOut:
    """Dry run of an unsaved definition: its steps, the tables it reads and writes, and the access levels it needs."""
    return service.plan_draft(call, saving.PipelineDraft(body.definition, project=body.project))


@router.governed("GET", "/{pipeline_id}", OnPipeline("see", "pipeline_id", on_task="open"), Audit.reads)
def get_pipeline(call: Call, pipeline_id: PipelineId) -> PipelineOut:
    """Get a pipeline with its definition and the actions allowed to the caller. Names of hidden tables are omitted."""
    return service.shown(call, pipeline_id)


@router.governed(
    "PATCH",
    "/{pipeline_id}",
    OnPipeline("see", "pipeline_id", on_task="list"),
    Audit.changes,
    errors=[Conflict, TooManyAttempts],
    staged=True,
)
def change_pipeline(stages: Stages, pipeline_id: PipelineId, body: PipelineChange) -> PipelineSaving:
    """Change the name, description or activation, or save a new definition. After that, the pipeline runs with the
    rights of the member who saved it. SQL is analysed first: follow the statement in the response.
    """
    if body.definition is None:
        stages.write(lambda call: service.change(call, pipeline_id, body))
        return PipelineSaving(id=pipeline_id, statement=None, state="saved")
    draft = saving.PipelineDraft(
        body.definition, body.name, body.description, deactivate_after=body.deactivate_after, own=pipeline_id
    )
    return _save(stages, draft, active=body.active)


@router.governed("DELETE", "/{pipeline_id}", MemberOn("delete", "pipeline_id"), Audit.changes, errors=[Conflict])
def delete_pipeline(call: Call, pipeline_id: PipelineId) -> PipelineDeleted:
    """Delete a pipeline with its triggers and its run history. The tables it wrote remain."""
    return PipelineDeleted(id=pipeline_id, name=service.delete(call, pipeline_id))


@router.governed(
    "GET", "/{pipeline_id}/plan", OnPipeline("see", "pipeline_id", on_task="open"), Audit.nothing, errors=[Conflict]
)
def plan_pipeline(call: Call, pipeline_id: PipelineId) -> PlanOut:
    """Dry run: the steps, the tables read and written, the access levels needed, whether the member that the pipeline
    runs as has them, and what prevents a start.
    """
    return service.plan_of(call, pipeline_id)


@router.governed("POST", "/{pipeline_id}/confirm", MemberOn("confirm", "pipeline_id"), Audit.changes, errors=[Conflict])
def confirm_pipeline(call: Call, pipeline_id: PipelineId, body: ConfirmIn) -> PipelineOut:
    """Confirm the endpoints of the connections and the destination after one of them changed. This requires the same
    rights as saving the pipeline. The caller becomes its last saver: outside of data projects, the pipeline then runs
    with the caller's rights. `versions` holds the versions shown in `endpoints`; the response is 409 if an endpoint has
    changed again since.
    """
    confirmation.confirm(call, pipeline_id, body.versions)
    return service.shown(call, pipeline_id)


@router.governed(
    "POST", "/{pipeline_id}/runs", MemberOn("start", "pipeline_id"), Audit.changes, errors=[Conflict], staged=True
)
def run_pipeline(stages: Stages, pipeline_id: PipelineId, body: RunIn) -> RunOut:
    """Start a run with the rights of the member that the pipeline runs as. The run waits for a worker; follow it with
    `GET` and `wait`.
    """
    run = stages.write(lambda call: runs.start_by_hand(call, pipeline_id, body.full_refresh, body.parameters))
    stages.services.watch.ring()
    return run
