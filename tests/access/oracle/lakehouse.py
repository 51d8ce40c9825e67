"""Layers, tables, volumes, integrations and saved queries (section 4)."""

from .levels import EDITOR, MANAGER, VIEWER, holds, holds_all, sees_through_content
from .world import Member, Resource, World


def data_right(world: World, member: Member, action: str, data: Resource) -> bool:
    """Answer an action on lakehouse data: a table, a volume or a layer."""
    if action == "see":
        return _sees_data(world, member, data)
    if action in ("execute", "follow"):  # Viewers query, and know of changes (section 10)
        return data.kind == "table" and holds(world, member, data.name, VIEWER)
    if action in ("describe", "edit"):  # Editors change it and fill it
        return holds(world, member, data.name, EDITOR)
    if action == "delete":  # Managers drop it
        return holds(world, member, data.name, MANAGER)
    if action == "grant":  # Managers hand out the lower levels; nobody does on Starter
        return not world.starter and holds(world, member, data.name, MANAGER)
    if action == "grant_manager":  # admins hand out Manager; nobody does on Starter
        return not world.starter and member.is_admin
    return False


def _sees_data(world: World, member: Member, data: Resource) -> bool:
    """Tell whether a member sees a table, a volume or a layer."""
    if holds(world, member, data.name, VIEWER):
        return True
    # a grant on something inside shows the layer around it
    return data.kind == "layer" and sees_through_content(world, member, data.name)


def create_data_right(world: World, member: Member, layer: str | None) -> bool:
    """Answer creating a table or volume, which Editors of its layer may."""
    place = world.find("layer", layer)
    return place is not None and holds(world, member, place.name, EDITOR)


def integration_right(world: World, member: Member, action: str, integration: Resource) -> bool:
    """Answer an action on an integration."""
    if action != "see":
        return False
    if member.is_admin:
        return True
    listed = integration.demands("reads")
    # Viewers of all its tables see it; without tables it is for admins
    return listed != () and holds_all(world, member, listed, VIEWER)


def saved_query_right(world: World, member: Member, action: str, query: Resource) -> bool:
    """Answer an action on a saved query."""
    if query.ref("author") != member.name:
        return False  # private to the author, even from admins
    if action in ("see", "edit"):
        return True
    if action == "delete":  # the author, while Editor of its tables
        return holds_all(world, member, query.demands("reads"), EDITOR)
    return False
