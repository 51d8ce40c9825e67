"""Trigger endpoints. Whoever sees a pipeline sees its triggers; whoever may edit it may manage them."""

from typing import Annotated

from fastapi import Path

from headgate.kit.cron import Schedule
from headgate.kit.errors import Conflict
from headgate.pipelines.triggers import presentation, service
from headgate.pipelines.triggers.repository import KIND
from headgate.pipelines.triggers.schemas import (
    NEXT,
    Preview,
    PreviewIn,
    TriggerChange,
    TriggerDeleted,
    TriggerIn,
    TriggerList,
    TriggerShown,
)
from headgate.platform.http.guards import MemberOn, SignedIn
from headgate.platform.http.routes import Audit, GovernedRouter
from headgate.platform.unit_of_work.call import Call

router = GovernedRouter(prefix="/api", tags=["triggers"])

PipelineId = Annotated[str, Path(pattern="^pip_[0-9a-z]{20}$", examples=["pip_01k6x3v9c2m4n8p0q7rs"])]
TriggerId = Annotated[str, Path(pattern="^plt_[0-9a-z]{20}$", examples=["plt_01k6x3v9c2m4n8p0q7rs"])]
ONE = "/triggers/{trigger_id}"


@router.governed(
    "GET",
    "/pipelines/{pipeline_id}/triggers",
    SignedIn("sees the triggers of the pipelines that they may see"),
    Audit.reads,
)
def list_triggers(call: Call, pipeline_id: PipelineId) -> TriggerList:
    """List the triggers of a pipeline by name, each with its next fire times."""
    service.require_pipeline(call, pipeline_id)
    call.note_read("see", KIND, None, after={"pipeline": pipeline_id})
    return TriggerList(items=presentation.of_pipeline(call, pipeline_id))


@router.governed(
    "POST",
    "/pipelines/{pipeline_id}/triggers",
    SignedIn("makes triggers of the pipelines that they may edit"),
    Audit.changes,
    errors=[Conflict],
)
def create_trigger(call: Call, pipeline_id: PipelineId, body: TriggerIn) -> TriggerShown:
    """Create a trigger that starts a pipeline on a schedule, when other pipelines succeed, or when tables change.

    The caller is the author. At each fire, Headgate checks again whether the author may start the pipeline and whether
    the member it runs as has the required access. If not, the run is *blocked* and the trigger pauses. A trigger that
    makes a pipeline start itself endlessly is rejected.
    """
    return presentation.one(call, service.create(call, pipeline_id, body))


@router.governed(
    "POST", "/triggers/preview", SignedIn("asks about a schedule of no pipeline"), Audit.nothing, quick=True
)
def preview_schedule(call: Call, body: PreviewIn) -> Preview:
    """Preview an unsaved schedule: its next fire times and a description in words."""
    schedule = Schedule(body.cron, body.time_zone)
    return Preview(says=schedule.says(), next=schedule.following(call.now, NEXT))


@router.governed("GET", ONE, MemberOn("see", "trigger_id"), Audit.reads)
def get_trigger(call: Call, trigger_id: TriggerId) -> TriggerShown:
    """Get a trigger: its condition, its next and last fire times, and what would block a fire now."""
    call.note_read("see", KIND, trigger_id)
    return presentation.one(call, trigger_id)


@router.governed("PATCH", ONE, MemberOn("manage", "trigger_id"), Audit.changes, errors=[Conflict])
def change_trigger(call: Call, trigger_id: TriggerId, body: TriggerChange) -> TriggerShown:
    """Change a trigger and become its author. A trigger that was paused because it was blocked resumes."""
    service.change(call, trigger_id, body)
    return presentation.one(call, trigger_id)


@router.governed("POST", f"{ONE}/pause", MemberOn("manage", "trigger_id"), Audit.changes, errors=[Conflict])
def pause_trigger(call: Call, trigger_id: TriggerId) -> TriggerShown:
    """Pause a trigger until it is resumed. A run that it has started continues."""
    service.pause(call, trigger_id)
    return presentation.one(call, trigger_id)


@router.governed("POST", f"{ONE}/resume", MemberOn("manage", "trigger_id"), Audit.changes, errors=[Conflict])
def resume_trigger(call: Call, trigger_id: TriggerId) -> TriggerShown:
    """Resume a paused trigger. The caller becomes its author: its fires are authorized for the caller from now on."""
    service.resume(call, trigger_id)
    return presentation.one(call, trigger_id)


@router.governed("DELETE", ONE, MemberOn("manage", "trigger_id"), Audit.changes)
def delete_trigger(call: Call, trigger_id: TriggerId) -> TriggerDeleted:
    """Delete a trigger. Runs that it has started continue and stay in the history."""
    return TriggerDeleted(id=trigger_id, name=service.delete(call, trigger_id))
