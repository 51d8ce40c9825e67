"""Creating, adding and saving: the answers for a state that is given in `with`."""

from .lakehouse import create_data_right
from .levels import VIEWER, holds_all
from .marts import data_mart_actions, uses_destination, uses_mart, uses_storage
from .names import UNKNOWN, fold, optional_name
from .pipelines import adds_pipeline, changes_definition, saves_pipeline
from .rights import right, trigger_right
from .spaces import adds_connection, cell, edits_connection, space_of
from .tasks import creates_task, is_task, saves_task, task_cell
from .world import Member, Resource, World

Change = dict[str, object]

# What can be saved without touching the definition of a mart (section 6.4).
OUTSIDE_MART_DEFINITION = frozenset(
    {
        "name", "description", "descriptions", "owners", "technical_owners", "business_owners",
        "shared_for_reporting", "shared_for_maintenance", "contexts", "triggers", "published",
    }
)  # fmt: skip

# Fields whose change is an action of its own (sections 3 and 5); None: no action changes the field.
OWN_ACTION: dict[str, dict[str, str | None]] = {
    "storage": {
        "owners": "manage_owners", "contexts": "manage_owners",
        "shared_for_use": "configure_sharing", "shared_for_maintenance": "configure_sharing",
    },
    "destination": {
        "owners": "manage_owners", "contexts": "manage_owners", "deleted": None,
        "shared_for_use": "configure_sharing", "shared_for_maintenance": "configure_sharing",
    },
    "data_mart": {
        "technical_owners": "manage_owners", "business_owners": "manage_owners", "contexts": "manage_owners",
        "shared_for_reporting": "configure_sharing", "shared_for_maintenance": "configure_sharing",
    },
    "report": {"owners": "manage_owners"},
    "layer": {"name": None},
    "table": {"name": None},
    "volume": {"name": None},
    "space": {"members": "manage_members", "owner": "change_owner", "personal": None},
    "project": {"owner": "change_owner", "space": None},
    "connection": {"owner": "change_owner", "space": "change_space"},
    "pipeline": {"project": None},
    "task": {"project": None, "owner": "change_owner"},
}  # fmt: skip


def create_right(world: World, member: Member, kind: str, place: Change) -> bool:
    """Answer create for a kind, its place and definition given."""
    new = Resource(kind, UNKNOWN, UNKNOWN, place)
    if kind == "storage":  # technical members and admins
        return member.is_admin or member.role == "technical"
    if kind == "data_mart":
        return _creates_mart(world, member, new)
    if kind == "destination":  # everybody
        return True
    if kind == "report":
        return _creates_report(world, member, new)
    if kind in ("data_mart_trigger", "report_trigger", "pipeline_trigger"):
        return trigger_right(world, member, "manage", new)  # whoever manages the triggers of the parent
    if kind in ("table", "volume"):
        return create_data_right(world, member, new.ref("layer"))
    if kind == "project":
        return _project_target_exists(world, new) and cell(world, member, kind, "create", space_of(world, new))
    if kind in ("task", "pipeline"):
        task = Resource("pipeline", UNKNOWN, UNKNOWN, place)
        return is_task(task) and creates_task(world, member, task)
    return False


def add_right(world: World, member: Member, kind: str, place: Change) -> bool:
    """Answer add for a kind, its place and definition given."""
    new = Resource(kind, UNKNOWN, UNKNOWN, place)
    if kind == "pipeline":
        return not is_task(new) and adds_pipeline(world, member, new)
    if kind == "connection":
        return adds_connection(world, member, new)
    if kind == "gateway":
        return cell(world, member, "gateway", "add", space_of(world, new))
    return False


def _creates_mart(world: World, member: Member, new: Resource) -> bool:
    """Answer creating a mart: by role, `use` of the storage, and Viewer on its tables."""
    if not member.is_admin and member.role != "technical":
        return False
    if not uses_storage(world, member, new.ref("storage")):
        return False
    return holds_all(world, member, new.demands("reads"), VIEWER)


def _creates_report(world: World, member: Member, new: Resource) -> bool:
    """Answer creating a report: `use` at both ends, and a mart that is published."""
    mart = world.find("data_mart", new.ref("data_mart"))
    if mart is None or not mart.is_on("published"):
        return False
    return "use" in data_mart_actions(member, mart) and uses_destination(world, member, new.ref("destination"))


def _project_target_exists(world: World, project: Resource) -> bool:
    """Tell whether the target connection is left out or exists."""
    target = project.ref("target")
    return target is None or world.find("connection", target) is not None


def save_right(world: World, member: Member, action: str, before: Resource, change: Change) -> bool:
    """Answer edit or update with the state after."""
    if not _own_actions_held(world, member, before, change):
        return False
    after = before.after(change)
    if is_task(before):
        return task_cell(world, member, action, before) and saves_task(world, member, before, after)
    if not right(world, member, action, before):
        return False
    if before.kind == "report":
        return _points_report(world, member, before, after)
    if before.kind == "data_mart":
        return _saves_mart(world, member, before, change)
    if before.kind == "pipeline":
        return not changes_definition(change) or saves_pipeline(world, member, before, after)
    if before.kind == "connection":
        return edits_connection(world, member, before.after({**change, "owner": before.fields.get("owner")}))
    if before.kind == "project":
        return _project_target_exists(world, after)
    return True


def _own_actions_held(world: World, member: Member, before: Resource, change: Change) -> bool:
    """Tell whether the member has the action of its own of each field that has one and changes."""
    kind = "task" if is_task(before) else before.kind
    for key, action in OWN_ACTION.get(kind, {}).items():
        if key not in change or _same(change[key], before.fields.get(key)):
            continue
        if action is None or not right(world, member, action, before):
            return False
    return True


def _same(one: object, other: object) -> bool:
    """Tell whether two values of a field are the same; left out, empty and off are."""
    if isinstance(one, str) and isinstance(other, str):
        return fold(one) == fold(other)
    return (one or None) == (other or None)


def _points_report(world: World, member: Member, before: Resource, after: Resource) -> bool:
    """Answer where an edited report points: what is new there must be usable."""
    mart, destination = after.ref("data_mart"), after.ref("destination")
    if mart != before.ref("data_mart") and not uses_mart(world, member, mart):
        return False
    return destination == before.ref("destination") or uses_destination(world, member, destination)


def _saves_mart(world: World, member: Member, before: Resource, change: Change) -> bool:
    """Answer saving a mart, for one who has `edit` on it."""
    if change and all(key in OUTSIDE_MART_DEFINITION for key in change):
        return True
    after = before.after(change)
    storage = after.ref("storage")
    if storage != before.ref("storage") and not uses_storage(world, member, storage):
        return False
    # the saver must view all its tables, old and new (section 6.4)
    return holds_all(world, member, after.demands("reads"), VIEWER)


def hand_over_right(world: World, member: Member, action: str, resource: Resource, change: Change) -> bool:
    """Answer change_owner or change_space with the new owner or space."""
    if not right(world, member, action, resource):
        return False
    if action == "change_owner":
        return world.member(optional_name(change.get("owner"))) is not None
    moved = resource.after({"space": change.get("space")})
    return right(world, member, action, moved)
