"""Members and the organization: the members' bullet of ACCESS.md 3 and the table of seed 001."""

from .world import ROLES, Member, World

INVITABLE = {
    # Seed 001, "Who Can Invite Whom"; an owner "is an admin who may also manage ... other owners".
    "invite_owner": ("owner",),
    "invite_admin": ("owner", "admin"),
    "invite_technical": ("owner", "admin", "technical"),
    "invite_business": ("owner", "admin", "technical", "business"),
}


def organization_right(world: World, member: Member, action: str) -> bool:
    """Answer an action on the organization."""
    if action in INVITABLE:
        return _invites(world, member, action)
    if action in ("create_layer", "see_settings"):  # "create layers; ... settings": admins only
        return member.is_admin
    if action == "create_group":  # on Starter "create group [is] denied to everyone"
        return member.is_admin and not world.starter
    if action == "manage_billing":  # "billing and plan: owners only"
        return member.role == "owner"
    if action == "create_space":  # seed 004, "Create data space"; admins "may do everything in every space"
        creators = {"tenant_admin", "data_admin", "space_creator"}
        return member.is_admin or bool(member.security_roles & creators)
    return False


def _invites(world: World, member: Member, action: str) -> bool:
    """Answer an invitation: "001's table; an organization setting `invites: by-role (default) / admins-only`"."""
    if world.invites != "by-role" and not member.is_admin:
        return False
    return member.role in INVITABLE[action]


def member_right(world: World, caller: Member, action: str, target: Member, change: dict[str, object] | None) -> bool:
    """Answer an action on a member; the new role of change_role is in the change."""
    # "Change a role, reset a password, make a magic link, remove: admins; on an owner ...: owners only."
    if not caller.is_admin:
        return False
    if target.role == "owner" and caller.role != "owner":
        return False
    if action == "change_role":
        return _changes_role(world, caller, target, change)
    if action == "remove":  # "Nobody removes or demotes the last owner"
        return not _is_last_owner(world, target)
    return action in ("reset_password", "make_magic_link")


def _changes_role(world: World, caller: Member, target: Member, change: dict[str, object] | None) -> bool:
    """Answer changing a role, for one who is not kept from it by the target's role."""
    if caller.name == target.name:
        return False  # "nor changes their own role (denied)"
    if change is None:
        return True
    role = change.get("role")
    if not isinstance(role, str) or role not in ROLES:
        return False
    if role == "owner":
        return caller.role == "owner"  # "or to make one, owners only"
    return not _is_last_owner(world, target)


def _is_last_owner(world: World, target: Member) -> bool:
    """Tell whether the target is the organization's only owner."""
    owners = [member.name for member in world.members.values() if member.role == "owner"]
    return owners == [target.name]
