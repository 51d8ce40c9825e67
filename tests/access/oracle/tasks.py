"""Data tasks, that is pipelines in a data project (sections 5, 6.2 and 6.3)."""

from .levels import EDITOR, MANAGER, VIEWER, holds, holds_all
from .marts import uses_destination
from .pipelines import added, enabled_writes, runs_with_levels
from .spaces import cell, draws_on_connections, roles_in, space_of
from .world import Member, Resource, World


def is_task(resource: Resource) -> bool:
    """Tell whether a resource is a pipeline that belongs to a project."""
    return resource.kind == "pipeline" and resource.ref("project") is not None


def task_cell(world: World, member: Member, action: str, task: Resource) -> bool:
    """Answer the cell alone."""
    return cell(world, member, "task", action, space_of(world, task))


def task_right(world: World, member: Member, action: str, task: Resource) -> bool:
    """Answer an action on a stored task."""
    if action == "follow":  # event triggers need Open on the source task (section 10)
        return task_cell(world, member, "open", task)
    if not task_cell(world, member, action, task):
        return False
    if action == "update":  # asked of the stored definition
        return saves_task(world, member, task, task)
    if action in ("view_data", "consume_data"):
        return _some_output_may_be_shown(world, member, task)
    return True


def creates_task(world: World, member: Member, task: Resource) -> bool:
    """Answer creating a task with this definition in the project it names; every stream is added."""
    if not task_cell(world, member, "create", task):
        return False
    nothing = Resource("pipeline", "", "", {})
    return saves_task(world, member, nothing, task)


def saves_task(world: World, author: Member, before: Resource, after: Resource) -> bool:
    """Answer what 6.2 asks of an author besides the space role."""
    # levels on all enabled streams
    if not runs_with_levels(world, author, after):
        return False
    # and on new or redirected ones, enabled or not
    if not holds_all(world, author, added(before, after, "reads"), VIEWER):
        return False
    if not holds_all(world, author, added(before, after, "writes"), EDITOR):
        return False
    return _reaches_ends(world, author, after)


def _reaches_ends(world: World, member: Member, task: Resource) -> bool:
    """Tell whether a member may touch every connection, gateway and destination that the task uses."""
    if not draws_on_connections(world, member, connections_of(world, task)):
        return False
    # nor does a space lend a destination (section 6.2)
    destination = task.ref("destination")
    return destination is None or uses_destination(world, member, destination)


def connections_of(world: World, task: Resource) -> tuple[str, ...]:
    """Return all connections of a task: its own, and the target of its project."""
    project = world.find("project", task.ref("project"))
    target = None if project is None else project.ref("target")
    if target is None:
        return task.demands("connections")
    return (*task.demands("connections"), target)


def owner_of_project(world: World, task: Resource) -> Member | None:
    """Return the project owner, as whom a task runs, or None when they are gone."""
    project = world.find("project", task.ref("project"))
    return None if project is None else world.member(project.ref("owner"))


def project_owner_may_run(world: World, task: Resource) -> bool:
    """Tell whether the project owner could run the task (section 5)."""
    owner, space = owner_of_project(world, task), space_of(world, task)
    if owner is None or space is None:
        return False
    # a security role is worth nothing here, the role of admin is
    if not owner.is_admin and "can_edit" not in roles_in(world, owner, space):
        return False
    return _reaches_ends(world, owner, task)


def _some_output_may_be_shown(world: World, member: Member, task: Resource) -> bool:
    """Tell whether the member may get rows of any output (section 6.3)."""
    for output in enabled_writes(task):
        if world.find("table", output) is None:
            continue  # only tables have rows to show
        if _lent(world, task, output) or holds(world, member, output, VIEWER):
            return True
    return False


def _lent(world: World, task: Resource, output: str) -> bool:
    """Tell whether project owner and last saver could each grant the rows (section 6.3)."""
    owner, saver = owner_of_project(world, task), world.member(task.ref("acts_for"))
    if owner is None or saver is None:
        return False
    return holds(world, owner, output, MANAGER) and holds(world, saver, output, MANAGER)
