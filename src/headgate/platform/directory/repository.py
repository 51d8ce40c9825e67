"""Names of the organization and its members."""

from collections.abc import Iterable

from sqlalchemy import Connection, select

from headgate.platform.directory.models import member_table, organization_table

_members = member_table.c


def organization_name(connection: Connection) -> str:
    """The name of the organization."""
    name: str = connection.execute(select(organization_table.c.name)).scalar_one()
    return name


def member_names(connection: Connection, ids: Iterable[str | None], *, with_removed: bool = False) -> dict[str, str]:
    """The names of members by id; those of removed members only on request."""
    query = select(_members.id, _members.name).where(_members.id.in_({member for member in ids if member}))
    if not with_removed:
        query = query.where(_members.removed_at.is_(None))
    return {row.id: row.name for row in connection.execute(query)}


def is_member(connection: Connection, member: str) -> bool:
    """Whether someone is a current member."""
    return member in member_names(connection, [member])


def email_of(connection: Connection, member: str) -> str | None:
    """The mail address of a member; None if they have none or were removed."""
    where = (_members.id == member, _members.removed_at.is_(None))
    return connection.execute(select(_members.email).where(*where)).scalar_one_or_none()
