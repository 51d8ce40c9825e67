"""The right alone: an action on a stored resource, without a state after."""

from .lakehouse import data_right, integration_right, saved_query_right
from .marts import data_mart_actions, destination_actions, report_actions, storage_actions
from .pipelines import pipeline_right
from .spaces import cell, draws_on_connection, edits_connection, space_of
from .tasks import is_task, task_cell, task_right
from .world import Member, Resource, World


def right(world: World, member: Member, action: str, resource: Resource) -> bool:
    """Answer an action that the kind of the resource has (not start, not fire)."""
    kind = resource.kind
    if kind in ("storage", "data_mart", "destination", "report"):
        return action in _mart_area_actions(world, member, resource)
    if kind in ("data_mart_trigger", "report_trigger", "pipeline_trigger"):
        return trigger_right(world, member, action, resource)
    if kind == "run":
        return _run_right(world, member, action, resource)
    if kind in ("layer", "table", "volume"):
        return data_right(world, member, action, resource)
    if kind == "integration":
        return integration_right(world, member, action, resource)
    if kind == "saved_query":
        return saved_query_right(world, member, action, resource)
    if kind == "pipeline":
        if is_task(resource):
            return task_right(world, member, action, resource)
        return pipeline_right(world, member, action, resource)
    if kind == "connection" and action == "edit":
        return edits_connection(world, member, resource)
    if kind == "connection" and action == "connect":
        return draws_on_connection(world, member, resource.name)
    if kind in ("space", "project", "connection", "gateway"):
        return cell(world, member, kind, action, space_of(world, resource))
    return False


def _mart_area_actions(world: World, member: Member, resource: Resource) -> frozenset[str]:
    """Return what a member may do with a storage, data mart, destination or report."""
    if resource.kind == "storage":
        return storage_actions(member, resource)
    if resource.kind == "data_mart":
        return data_mart_actions(member, resource)
    if resource.kind == "destination":
        return destination_actions(member, resource)
    return report_actions(world, member, resource)


def parent_of_trigger(world: World, trigger: Resource) -> Resource | None:
    """Return the data mart, report or pipeline that a trigger starts."""
    parent_kind = trigger.kind.removesuffix("_trigger")
    return world.find(parent_kind, trigger.ref(parent_kind))


def trigger_right(world: World, member: Member, action: str, trigger: Resource) -> bool:
    """Answer see or manage on a trigger, stored or about to be created."""
    parent = parent_of_trigger(world, trigger)
    if parent is None or action not in ("see", "manage"):
        return False
    if is_task(parent):  # the cells Open and Update (section 5), without levels (section 6.2)
        return task_cell(world, member, "open" if action == "see" else "update", parent)
    if action == "see":
        return right(world, member, "see", parent)
    if parent.kind == "pipeline":  # whoever edits a pipeline schedules it (section 4)
        return right(world, member, "edit", parent)
    return right(world, member, "manage_triggers", parent)


def _run_right(world: World, member: Member, action: str, run: Resource) -> bool:
    """Answer see or delete on a run, which follows its parent (section 3)."""
    kinds = [kind for kind in ("data_mart", "report", "pipeline") if run.ref(kind) is not None]
    if len(kinds) != 1:
        return False
    parent = world.find(kinds[0], run.ref(kinds[0]))
    if parent is None:
        return False
    if action == "delete":
        return member.is_admin
    if is_task(parent):  # the cell Open (section 5)
        return task_cell(world, member, "open", parent)
    return right(world, member, "see_runs" if parent.kind == "pipeline" else "see", parent)
