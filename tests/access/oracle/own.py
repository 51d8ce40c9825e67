"""What belongs to one member, and requests for access (sections 3, 4 and 7)."""

from .names import fold, optional_name
from .rights import right
from .tasks import is_task
from .vocabulary import ACTIONS
from .world import Member, Resource, World

# What the holder may do, and admins.
OWN = {"token": {"see", "revoke"}, "invitation": {"see", "resend", "revoke"}, "profile": {"see"}}


def own_right(world: World, member: Member, action: str, kind: str, fields: dict[str, object]) -> bool:
    """Answer an action on something that belongs to one member."""
    is_own = optional_name(fields.get("holder")) == member.name
    return action in OWN[kind] and (is_own or member.is_admin)


def request_right(world: World, member: Member, action: str, fields: dict[str, object]) -> bool:
    """Answer an action on a request for access."""
    asker, answerer = optional_name(fields.get("asked_by")), optional_name(fields.get("answered_by"))
    if asker == member.name and action in ("see", "withdraw"):
        return True
    if not _knows(world, member, fields.get("about")):
        return False
    if answerer == member.name and action in ("see", "see_change"):
        return True
    if asker == member.name:
        return False
    if member.is_admin:
        return action in ("see", "answer", "see_change")
    return fields.get("could_give") is True and action in ("see", "answer")


def _knows(world: World, member: Member, about: object) -> bool:
    """Tell whether a member may know of what a request is about."""
    if about == "organization":
        return True
    if not isinstance(about, str) or ":" not in about:
        return False
    kind, name = about.split(":", 1)
    found = world.find(kind, fold(name))
    return found is not None and any(_has(world, member, action, found) for action in ("see", "list", "restore"))


def _has(world: World, member: Member, action: str, resource: Resource) -> bool:
    kind = "task" if is_task(resource) else resource.kind
    return action in ACTIONS.get(kind, ()) and right(world, member, action, resource)
