"""Lakehouse levels, from none to Manager (section 4)."""

from collections.abc import Iterable

from .world import Grant, Member, World

NONE, VIEWER, EDITOR, MANAGER = 0, 1, 2, 3


def layer_of(name: str) -> str:
    """Return the layer that a table or volume lies in, by its name; a layer is its own."""
    return name.split(".", 1)[0]


def kind_of_data(world: World, name: str) -> str | None:
    """Return layer, table or volume, or None when nothing of that name exists."""
    for kind in ("layer", "table", "volume"):
        if world.find(kind, name) is not None:
            return kind
    return None


def level(world: World, member: Member, name: str) -> int:
    """Return the member's level on lakehouse data; for what is missing, the level on its layer."""
    if member.is_admin:
        return MANAGER  # no limits for admins
    if world.starter:
        return _starter_level(world, name)  # everybody manages what exists
    # the better of what is granted here and what is granted on the layer, which flows down
    return max(granted(world, member, name), granted(world, member, layer_of(name)))


def granted(world: World, member: Member, name: str) -> int:
    """Return the highest level of the member's unexpired grants on exactly this resource."""
    levels = [grant.level for grant in world.grants if grant.name == name and _applies(world, member, grant)]
    return max(levels, default=NONE)


def holds(world: World, member: Member, name: str, wanted: int) -> bool:
    """Tell whether the member has at least the wanted level on one piece of data."""
    return level(world, member, name) >= wanted


def holds_all(world: World, member: Member, wanted_on: Iterable[str], wanted: int) -> bool:
    """Tell whether the member has at least the wanted level on each of them."""
    return all(holds(world, member, name, wanted) for name in wanted_on)


def sees_through_content(world: World, member: Member, layer: str) -> bool:
    """Tell whether a table or volume in the layer carries a grant to the member (propagation up)."""
    for kind, name in world.resources:
        if kind not in ("table", "volume") or layer_of(name) != layer:
            continue
        if granted(world, member, name) >= VIEWER:
            return True
    return False


def _starter_level(world: World, name: str) -> int:
    """Return Manager on data that exists, or whose layer does."""
    if kind_of_data(world, name) is not None or kind_of_data(world, layer_of(name)) is not None:
        return MANAGER
    return NONE


def _applies(world: World, member: Member, grant: Grant) -> bool:
    """Tell whether a grant is the member's, has not ended, and is on something that exists."""
    if world.find(grant.kind, grant.name) is None:
        return False  # a grant on nothing waits for no later namesake (section 2)
    if grant.kind not in ("layer", "table", "volume"):
        return False
    if world.has_ended(grant.ends):
        return False
    if grant.to_group is not None:
        return world.in_group(member, grant.to_group)
    return grant.to_member == member.name
