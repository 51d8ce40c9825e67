"""Starts and fires (section 5, and 6.1 to 6.5)."""

from .levels import MANAGER, VIEWER, holds_all
from .marts import live_destination
from .pipelines import runs_with_levels, saver_reaches
from .rights import parent_of_trigger, right
from .spaces import lends_secrets
from .tasks import is_task, owner_of_project, project_owner_may_run
from .world import Member, Resource, World


def start_right(world: World, caller: Member, resource: Resource) -> bool:
    """Answer start: the caller may, and so may all those behind the resource."""
    if resource.kind == "report":
        return right(world, caller, "run", resource) and report_may_start(world, caller, resource)
    if is_task(resource):
        return right(world, caller, "control", resource) and task_may_start(world, resource)
    if resource.kind == "pipeline":
        return right(world, caller, "trigger", resource) and pipeline_may_start(world, resource)
    return False


def start_with_secrets_right(world: World, caller: Member, resource: Resource) -> bool:
    """Answer a start of code that reads secrets: all whom it acts for could have them (section 10)."""
    if not start_right(world, caller, resource):
        return False
    behind = [world.member(resource.ref("acts_for"))]
    if is_task(resource):
        behind.append(owner_of_project(world, resource))
    connections = resource.demands("connections")
    return all(one is not None and all(lends_secrets(world, one, name) for name in connections) for one in behind)


def fire_right(world: World, trigger: Resource) -> bool:
    """Answer fire: as start, with the trigger's author for the caller (section 6.5)."""
    author = world.member(trigger.ref("author"))
    parent = parent_of_trigger(world, trigger)
    if author is None or parent is None:
        return False
    if parent.kind == "report":
        return right(world, author, "run", parent) and report_may_start(world, author, parent)
    if parent.kind == "data_mart":
        return right(world, author, "manage_triggers", parent) and mart_may_be_read(world, parent)
    if is_task(parent):  # `update` asks for the levels of 6.2 as well
        return right(world, author, "update", parent) and task_may_start(world, parent)
    return right(world, author, "trigger", parent) and pipeline_may_start(world, parent)


def pipeline_may_start(world: World, pipeline: Resource) -> bool:
    """Answer what 6.1 and 6.5 ask of `acts_for` whenever such a pipeline starts."""
    acts_for = world.member(pipeline.ref("acts_for"))
    if acts_for is None:
        return False
    return saver_reaches(world, acts_for, pipeline) and runs_with_levels(world, acts_for, pipeline)


def task_may_start(world: World, task: Resource) -> bool:
    """Answer what sections 5 and 6.5 ask of the project owner and of the last saver."""
    if not project_owner_may_run(world, task):
        return False
    if not runs_with_levels(world, owner_of_project(world, task), task):
        return False
    return runs_with_levels(world, world.member(task.ref("acts_for")), task)


def mart_may_be_read(world: World, mart: Resource) -> bool:
    """Tell whether `acts_for` can still view all tables of the mart (section 6.4)."""
    reads = mart.demands("reads")
    if not reads:
        return True  # outside the lakehouse nobody has to vouch for it
    acts_for = world.member(mart.ref("acts_for"))
    return acts_for is not None and holds_all(world, acts_for, reads, VIEWER)


def report_may_start(world: World, caller: Member, report: Resource) -> bool:
    """Answer what 6.4 asks at the start of a report, for the caller or the trigger's author."""
    mart = world.find("data_mart", report.ref("data_mart"))
    if mart is None or live_destination(world, report) is None:
        return False  # nowhere to deliver (section 3)
    if not mart_may_be_read(world, mart):
        return False
    if _acts_for_could_grant(world, mart):
        return True
    # nothing is lent: caller and last saver bring their own grants
    saver, reads = world.member(report.ref("acts_for")), mart.demands("reads")
    if saver is None:
        return False
    return holds_all(world, caller, reads, VIEWER) and holds_all(world, saver, reads, VIEWER)


def _acts_for_could_grant(world: World, mart: Resource) -> bool:
    """Tell whether `acts_for` could grant the rows, as Manager of all tables (section 6.4)."""
    reads = mart.demands("reads")
    if not reads:
        return True
    acts_for = world.member(mart.ref("acts_for"))
    return acts_for is not None and holds_all(world, acts_for, reads, MANAGER)
