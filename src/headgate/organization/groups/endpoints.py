"""Group endpoints. Members join and leave by access changes."""

from typing import Annotated, Any

from fastapi import Path

from headgate.kit.errors import Conflict
from headgate.kit.ids import ALL_GROUP
from headgate.kit.paging import DEFAULT_LIMIT
from headgate.organization.groups import repository, service
from headgate.organization.groups.guards import CreatesGroups
from headgate.organization.groups.models import group_table
from headgate.organization.groups.schemas import GroupDeleted, GroupMembers, GroupName, GroupOut, GroupPage
from headgate.organization.members.schemas import Named
from headgate.platform.http.guards import OnOrganization, SignedIn
from headgate.platform.http.paging import After, Limit, Prefix, begins_after
from headgate.platform.http.routes import Audit, GovernedRouter
from headgate.platform.resources.names import one, page, require_names
from headgate.platform.unit_of_work.call import Call

router = GovernedRouter(prefix="/api/groups", tags=["groups"])

GroupId = Annotated[str, Path(pattern="^grp_[0-9a-z]{20}$", examples=["grp_01k6x3v9c2m4n8p0q7rs"])]


def _shown(row: Any, sizes: dict[str, int]) -> GroupOut:
    return GroupOut(
        id=row["id"],
        name=row["name"],
        built_in=row["id"] == ALL_GROUP,
        members=sizes[row["id"]],
        created_at=row["created_at"],
    )


def _group(call: Call, group: str) -> GroupOut:
    row = one(call.connection, group_table, group)
    return _shown(row, repository.sizes(call.connection, [group]))


@router.governed(
    "GET", "", SignedIn("knows the groups, since they can be granted to", operator_too=True), Audit.nothing
)
def list_groups(call: Call, prefix: Prefix = "", limit: Limit = DEFAULT_LIMIT, cursor: After = None) -> GroupPage:
    """List groups by name, each with the number of its members."""
    require_names(call)
    rows, following = page(call, group_table, prefix, limit, cursor)
    sizes = repository.sizes(call.connection, [row["id"] for row in rows])
    return GroupPage(items=[_shown(row, sizes) for row in rows], next_cursor=following)


def _may_see_members(call: Call, group: str) -> bool:
    """Whether the caller may see a group's members: those in the group, and members who manage groups; not the
    operator.
    """
    subject = call.facts.subject(call.caller.member)
    is_inside = subject is not None and group in subject.keys
    return is_inside or bool(call.decide("manage_groups", "organization", "organization"))


@router.governed(
    "GET",
    "/{group_id}",
    SignedIn("knows the group; its members if in it, or with manage_groups", operator_too=True),
    Audit.nothing,
)
def get_group(call: Call, group_id: GroupId, limit: Limit = DEFAULT_LIMIT, cursor: After = None) -> GroupMembers:
    """Get a group, with a page of its members if the caller may see them."""
    require_names(call)
    group, purpose = _group(call, group_id), f"members of {group_id}"
    after = begins_after(cursor, purpose)
    if not _may_see_members(call, group_id):
        return GroupMembers(group=group, members=None, next_cursor=None)
    rows, following = repository.members_page(call.connection, group_id, limit, after, purpose)
    members = [Named(id=row["id"], name=row["name"]) for row in rows]
    return GroupMembers(group=group, members=members, next_cursor=following)


@router.governed("POST", "", CreatesGroups(), Audit.changes, errors=[Conflict])
def create_group(call: Call, body: GroupName) -> GroupOut:
    """Create an empty group."""
    return _group(call, service.create(call, body.name))


@router.governed("PATCH", "/{group_id}", OnOrganization("manage_groups"), Audit.changes, errors=[Conflict])
def rename_group(call: Call, group_id: GroupId, body: GroupName) -> GroupOut:
    """Rename a group; its grants remain."""
    service.rename(call, group_id, body.name)
    return _group(call, group_id)


@router.governed("DELETE", "/{group_id}", OnOrganization("manage_groups"), Audit.changes, errors=[Conflict])
def delete_group(call: Call, group_id: GroupId) -> GroupDeleted:
    """Delete a group; its grants, space roles and memberships end immediately."""
    ended = service.remove(call, group_id)
    counts = {name: len(ended[name]) for name in ("members", "grants", "space_roles")}
    return GroupDeleted(id=group_id, name=ended["name"], **counts)
