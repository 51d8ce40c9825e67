"""Layers, tables, volumes, integrations and saved queries: ACCESS.md 4."""

from .levels import EDITOR, MANAGER, VIEWER, holds, holds_all, sees_through_content
from .world import Member, Resource, World


def data_right(world: World, member: Member, action: str, data: Resource) -> bool:
    """Answer an action on a layer, table or volume."""
    if action == "see":
        return _sees_data(world, member, data)
    if action == "execute":  # "execute queries": Viewer
        return data.kind == "table" and holds(world, member, data.name, VIEWER)
    if action in ("describe", "edit"):  # "change descriptions ...; write and alter ...; create tables": Editor
        return holds(world, member, data.name, EDITOR)
    if action == "delete":  # "delete the resource": Manager
        return holds(world, member, data.name, MANAGER)
    if action == "grant":  # "grant, change, revoke Viewer and Editor": Manager; on Starter "denied to everyone"
        return not world.starter and holds(world, member, data.name, MANAGER)
    if action == "grant_manager":  # "grant, change or revoke Manager": admins only; the same on Starter
        return not world.starter and member.is_admin
    return False


def _sees_data(world: World, member: Member, data: Resource) -> bool:
    """Tell whether a member sees a layer, table or volume."""
    if holds(world, member, data.name, VIEWER):
        return True
    # "A layer with a table or volume on which the member has an unexpired grant ... gives *see* on that layer"
    return data.kind == "layer" and sees_through_content(world, member, data.name)


def create_data_right(world: World, member: Member, layer: str | None) -> bool:
    """Answer creating a table or volume in a layer: "create tables and volumes in the layer": Editor."""
    place = world.find("layer", layer)
    return place is not None and holds(world, member, place.name, EDITOR)


def integration_right(world: World, member: Member, action: str, integration: Resource) -> bool:
    """Answer an action on an integration."""
    if action != "see":
        return False
    if member.is_admin:
        return True
    listed = integration.demands("reads")
    # "An integration is seen with Viewer on every table it lists (if none, by admins only)."
    return listed != () and holds_all(world, member, listed, VIEWER)


def saved_query_right(world: World, member: Member, action: str, query: Resource) -> bool:
    """Answer an action on a saved query."""
    if query.ref("author") != member.name:
        return False  # "A saved query belongs to its author; others, admins too, never see it."
    if action == "see":
        return True
    if action == "delete":  # "Delete: its author, with Editor on every table it reads."
        return holds_all(world, member, query.demands("reads"), EDITOR)
    return False
