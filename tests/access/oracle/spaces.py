"""Spaces and what lies in them (section 5 and the tables of seed 004)."""

from .names import fold, words
from .world import GROUP_PREFIX, Member, Resource, World

ASSIGNABLE = frozenset({"can_view", "can_view_data", "can_consume_data", "can_manage", "can_operate", "can_edit"})
ALL_ROLES = ASSIGNABLE | {"is_owner"}
EDITORS = frozenset({"is_owner", "can_edit"})
MANAGERS = frozenset({"is_owner", "can_manage"})
OPENERS = frozenset({"is_owner", "can_view", "can_operate", "can_edit"})
OPERATORS = frozenset({"is_owner", "can_operate"})

# Seed 004, the three tables for members of a space; Can view data, which has no column there, by section 5.
MEMBER_CELLS: dict[tuple[str, str], frozenset[str]] = {
    ("space", "see"): ALL_ROLES,
    ("space", "update"): MANAGERS,
    ("space", "manage_members"): MANAGERS,
    ("space", "delete"): MANAGERS,
    ("project", "list"): ALL_ROLES,
    ("project", "create"): EDITORS,
    ("project", "update"): EDITORS,
    ("project", "open"): OPENERS,
    ("project", "delete"): EDITORS,
    ("project", "operate"): OPERATORS,
    ("task", "create"): EDITORS,
    ("task", "list"): ALL_ROLES,
    ("task", "edit_attributes"): EDITORS,
    ("task", "open"): OPENERS,
    ("task", "update"): EDITORS,
    ("task", "delete"): EDITORS,
    ("task", "control"): OPERATORS,
    ("task", "view_data"): frozenset({"is_owner", "can_view_data"}),
    ("task", "consume_data"): frozenset({"is_owner", "can_consume_data"}),
    ("connection", "list"): ALL_ROLES,
    ("connection", "add"): MANAGERS,
    ("connection", "delete"): MANAGERS,
    # gateways go by the rows of connections (section 5)
    ("gateway", "list"): ALL_ROLES,
    ("gateway", "add"): MANAGERS,
    ("gateway", "delete"): MANAGERS,
}

# Seed 004, the three tables for security roles, whose two admins have equal cells; manage_members by section 5.
SECURITY_CELLS = frozenset(
    {
        ("space", "see"), ("space", "update"), ("space", "delete"), ("space", "change_owner"),
        ("space", "manage_members"),
        ("project", "list"), ("project", "open"), ("project", "delete"), ("project", "change_owner"),
        ("task", "list"), ("task", "open"), ("task", "delete"), ("task", "change_owner"),
        ("connection", "list"), ("connection", "delete"), ("connection", "change_owner"),
        ("connection", "change_space"),
        ("gateway", "list"), ("gateway", "delete"),
    }
)  # fmt: skip

# Seed 004 rows that no space role has, yet that admins have (section 5).
ADMIN_ONLY_CELLS = frozenset(
    {
        ("space", "change_owner"), ("project", "change_owner"), ("task", "change_owner"),
        ("connection", "change_owner"), ("connection", "change_space"),
    }
)  # fmt: skip

DENIED_IN_PERSONAL = ("manage_members", "change_owner", "change_space")


def roles_in(world: World, member: Member, space: Resource) -> frozenset[str]:
    """Return the member's space roles, by all assignments together; an owner has every role."""
    if space.ref("owner") == member.name:
        return ALL_ROLES
    if space.is_marked("personal"):
        return frozenset()  # nobody else has a role there
    assignments = space.fields.get("members")
    if not isinstance(assignments, dict):
        return frozenset()
    held: set[str] = set()
    for grantee, roles in assignments.items():
        if isinstance(grantee, str) and _is_grantee(world, member, fold(grantee)):
            held.update(words(roles))
    return frozenset(held) & ASSIGNABLE


def _is_grantee(world: World, member: Member, grantee: str) -> bool:
    """Tell whether an assignment to this member or group reaches the member."""
    if grantee.startswith(GROUP_PREFIX):
        return world.in_group(member, grantee.removeprefix(GROUP_PREFIX))
    return grantee == member.name


def cell(world: World, member: Member, kind: str, action: str, space: Resource | None) -> bool:
    """Answer one cell of seed 004 for a space, or for a resource of that kind in it."""
    if space is None:
        return False
    if space.is_marked("personal") and action in DENIED_IN_PERSONAL:
        return _gives_lost_personal_space(world, member, kind, action, space)
    row = (kind, action)
    if row not in MEMBER_CELLS and row not in ADMIN_ONLY_CELLS:
        return False
    if member.is_admin:
        return True  # every row, in all spaces
    if roles_in(world, member, space) & MEMBER_CELLS.get(row, frozenset()):
        return True
    return is_security_admin(member) and row in SECURITY_CELLS


def _gives_lost_personal_space(world: World, member: Member, kind: str, action: str, space: Resource) -> bool:
    """Answer the one exception: admins hand over a personal space whose owner is gone."""
    if kind != "space" or action != "change_owner":
        return False
    return member.is_admin and world.member(space.ref("owner")) is None


def is_security_admin(member: Member) -> bool:
    """Tell whether the member is a tenant admin or a data admin."""
    return "tenant_admin" in member.security_roles or "data_admin" in member.security_roles


def space_of(world: World, resource: Resource) -> Resource | None:
    """Return the space that a space, project, task, connection or gateway lies in."""
    if resource.kind == "space":
        return resource
    if resource.kind == "pipeline":
        project = world.find("project", resource.ref("project"))
        return None if project is None else space_of(world, project)
    return world.find("space", resource.ref("space"))


def draws_from(world: World, member: Member, space: Resource | None) -> bool:
    """Tell whether a member may draw data from a space, by a role there or as admin."""
    if space is None:
        return False
    if member.is_admin:
        return True
    # only space roles help here, not security roles (section 5)
    return bool(roles_in(world, member, space) & {"can_consume_data", "can_edit", "can_manage"})


def draws_through_gateway(world: World, member: Member, gateway: str | None) -> bool:
    """Tell whether a member may go through a gateway; no gateway asks for nothing."""
    if gateway is None:
        return True
    found = world.find("gateway", gateway)
    return found is not None and draws_from(world, member, space_of(world, found))


def draws_on_connection(world: World, member: Member, connection: str) -> bool:
    """Tell whether a member may draw from the spaces of a connection and its gateway."""
    found = world.find("connection", connection)
    if found is None or not draws_from(world, member, space_of(world, found)):
        return False
    return draws_through_gateway(world, member, found.ref("gateway"))


def lends_secrets(world: World, member: Member, connection: str) -> bool:
    """Tell whether code of a member gets the secrets of a connection: its owner, still there, let code (section 10)."""
    found = world.find("connection", connection)
    if found is None or not found.is_on("allows_code") or world.member(found.ref("owner")) is None:
        return False
    return draws_on_connection(world, member, connection)


def draws_on_connections(world: World, member: Member, connections: tuple[str, ...]) -> bool:
    """Tell whether a member may draw from the spaces of all connections and their gateways."""
    return all(draws_on_connection(world, member, connection) for connection in connections)


def edits_connection(world: World, member: Member, connection: Resource) -> bool:
    """Answer editing a connection in one state of it."""
    space = space_of(world, connection)
    if space is None or connection.ref("owner") != member.name:
        return False  # not even admins, who must take it over first (section 5)
    # its owner needs a foothold in the space
    if not member.is_admin and not roles_in(world, member, space):
        return False
    return draws_through_gateway(world, member, connection.ref("gateway"))


def adds_connection(world: World, member: Member, connection: Resource) -> bool:
    """Answer adding a connection to the space it names."""
    if not cell(world, member, "connection", "add", space_of(world, connection)):
        return False
    return draws_through_gateway(world, member, connection.ref("gateway"))
