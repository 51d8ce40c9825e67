"""Members and the organization: the bullet on members (section 3) and the table of seed 001."""

from .world import ROLES, Member, World

INVITABLE = {
    # Seed 001, "Who Can Invite Whom"; owners are invited by owners (section 3).
    "invite_owner": ("owner",),
    "invite_admin": ("owner", "admin"),
    "invite_technical": ("owner", "admin", "technical"),
    "invite_business": ("owner", "admin", "technical", "business"),
}


def organization_right(world: World, member: Member, action: str) -> bool:
    """Answer an action on the organization."""
    if action in INVITABLE:
        return _invites(world, member, action)
    if action in ("create_layer", "see_settings"):  # for admins (section 4)
        return member.is_admin
    if action == "create_group":  # for admins, but for nobody on Starter (section 4)
        return member.is_admin and not world.starter
    if action == "manage_billing":  # for owners (section 4)
        return member.role == "owner"
    if action == "create_space":  # seed 004, "Create data space"; and admins (section 5)
        creators = {"tenant_admin", "data_admin", "space_creator"}
        return member.is_admin or bool(member.security_roles & creators)
    return False


def _invites(world: World, member: Member, action: str) -> bool:
    """Answer an invitation, by role or for admins alone as the organization has set (section 8)."""
    if world.invites != "by-role" and not member.is_admin:
        return False
    return member.role in INVITABLE[action]


def member_right(world: World, caller: Member, action: str, target: Member, change: dict[str, object] | None) -> bool:
    """Answer an action on a member; the new role of change_role is in the change."""
    # admins manage members, and owners manage owners (section 3)
    if not caller.is_admin:
        return False
    if target.role == "owner" and caller.role != "owner":
        return False
    if action == "change_role":
        return _changes_role(world, caller, target, change)
    if action == "remove":  # one owner must stay
        return not _is_last_owner(world, target)
    return action in ("reset_password", "make_magic_link")


def _changes_role(world: World, caller: Member, target: Member, change: dict[str, object] | None) -> bool:
    """Answer changing a role, for one who is not kept from it by the target's role."""
    if caller.name == target.name:
        return False  # nobody promotes or demotes themselves
    if change is None:
        return True
    role = change.get("role")
    if not isinstance(role, str) or role not in ROLES:
        return False
    if role == "owner":
        return caller.role == "owner"  # owners make owners
    return not _is_last_owner(world, target)


def _is_last_owner(world: World, target: Member) -> bool:
    """Tell whether the target is the organization's only owner."""
    owners = [member.name for member in world.members.values() if member.role == "owner"]
    return owners == [target.name]
