"""The right alone: an action on a stored resource, without a state after."""

from .lakehouse import data_right, integration_right, saved_query_right
from .levels import MANAGER, VIEWER, holds_all
from .marts import data_mart_actions, destination_actions, report_actions, storage_actions, uses_destination
from .pipelines import pipeline_right, saves_pipeline
from .spaces import cell, draws_on_connection, edits_connection, lends_secrets, space_of
from .tasks import is_task, saves_task, task_cell, task_right
from .world import Member, Resource, World


def right(world: World, member: Member, action: str, resource: Resource) -> bool:
    """Answer an action that the kind of the resource has (not start, not fire)."""
    kind = resource.kind
    if action == "confirm":
        return confirms(world, member, resource)
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
    if kind == "connection":
        return _connection_right(world, member, action, resource)
    if kind in ("space", "project", "gateway"):
        return cell(world, member, kind, action, space_of(world, resource))
    return False


def _connection_right(world: World, member: Member, action: str, connection: Resource) -> bool:
    """Answer an action on a connection."""
    if action == "edit":
        return edits_connection(world, member, connection)
    if action in ("connect", "test"):
        return draws_on_connection(world, member, connection.name)
    if action == "test_changes":  # testing, and saving, what a changed place asks for (section 9)
        return draws_on_connection(world, member, connection.name) and edits_connection(world, member, connection)
    if action == "read_secrets":
        return lends_secrets(world, member, connection.name)
    return cell(world, member, "connection", action, space_of(world, connection))


def _mart_area_actions(world: World, member: Member, resource: Resource) -> frozenset[str]:
    """Return what a member may do with a storage, data mart, destination or report."""
    if resource.kind == "storage":
        return storage_actions(member, resource)
    if resource.kind == "data_mart":
        return data_mart_actions(member, resource)
    if resource.kind == "destination":
        return destination_actions(member, resource)
    return report_actions(world, member, resource)


def confirms(world: World, member: Member, resource: Resource) -> bool:
    """Answer confirming where something writes after that was repointed, which asks for what saving does (section 9)."""
    if is_task(resource):
        return task_cell(world, member, "update", resource) and saves_task(world, member, resource, resource)
    if resource.kind == "pipeline":
        return saves_pipeline(world, member, resource, resource)
    if resource.kind != "report" or "run" not in report_actions(world, member, resource):
        return False
    return uses_destination(world, member, resource.ref("destination")) and gets_rows(world, member, resource)


def gets_rows(world: World, member: Member, report: Resource) -> bool:
    """Tell whether a member gets the rows that a report delivers: lent, or by Viewer of their own (section 6.4)."""
    mart = world.find("data_mart", report.ref("data_mart"))
    if mart is None:
        return False
    reads, saver = mart.demands("reads"), world.member(mart.ref("acts_for"))
    if not reads:
        return True
    if saver is None or not holds_all(world, saver, reads, VIEWER):
        return False
    return holds_all(world, saver, reads, MANAGER) or holds_all(world, member, reads, VIEWER)


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
