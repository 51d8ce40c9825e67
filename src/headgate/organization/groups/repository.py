"""Database access to groups: sizes, members and holdings."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, func, select

from headgate.access.actions import LEVEL_NAMES
from headgate.kit.clock import iso
from headgate.kit.ids import ALL_GROUP
from headgate.kit.paging import Cursor
from headgate.platform.authorization.fact_tables import grant_table, group_member_table, space_member_table
from headgate.platform.directory.models import member_table
from headgate.platform.resources.names import paged

_inside, _members = group_member_table.c, member_table.c
_PRESENT = _members.removed_at.is_(None)
_JOINED = group_member_table.join(member_table, _members.id == _inside.member_id)


def sizes(connection: Connection, ids: Sequence[str]) -> dict[str, int]:
    """The number of members of each group, in two statements."""
    counted = select(_inside.group_id, func.count()).select_from(_JOINED).where(_inside.group_id.in_(ids), _PRESENT)
    counts: dict[str, int] = dict.fromkeys(ids, 0)
    counts.update(connection.execute(counted.group_by(_inside.group_id)).all())
    if ALL_GROUP in counts:
        everyone = select(func.count()).select_from(member_table).where(_PRESENT)
        counts[ALL_GROUP] = connection.execute(everyone).scalar_one()
    return counts


def members_page(
    connection: Connection, group: str, limit: int, after: Cursor | None, purpose: str
) -> tuple[Sequence[Any], str | None]:
    """A page of a group's members by name, and the next cursor."""
    query = select(_members.id, _members.name, _members.name_key).where(_PRESENT)
    if group != ALL_GROUP:
        query = query.select_from(_JOINED).where(_inside.group_id == group)
    return paged(connection, query, member_table, limit, after, purpose)


def holdings(connection: Connection, group: str) -> dict[str, list[Any]]:
    """The members, grants and space roles of a group, for the audit log."""
    grants, roles = grant_table.c, space_member_table.c
    members = select(_inside.member_id).where(_inside.group_id == group).order_by(_inside.member_id)
    levels = select(grants.resource_id, grants.level, grants.expires_at).where(grants.grantee_id == group)
    spaces = select(roles.space_id, roles.space_role).where(roles.principal_id == group)
    return {
        "members": list(connection.execute(members).scalars()),
        "grants": [
            {"resource": resource, "level": LEVEL_NAMES[level], "expires": iso(ends) if ends else None}
            for resource, level, ends in connection.execute(levels.order_by(grants.resource_id, grants.level))
        ],
        "space_roles": [
            {"space": space, "space_role": role}
            for space, role in connection.execute(spaces.order_by(roles.space_id, roles.space_role))
        ],
    }
