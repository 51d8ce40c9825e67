"""Database access to the organization and its usage, in a fixed number of statements."""

from datetime import datetime
from typing import Any

from sqlalchemy import Connection, func, or_, select, update

from headgate.access.actions import ROLES
from headgate.kit.ids import ALL_GROUP
from headgate.organization.contexts.models import context_table
from headgate.organization.groups.models import group_table
from headgate.organization.invitations.models import invitation_table
from headgate.organization.tokens.models import token_table
from headgate.platform.authorization.models import resource_table
from headgate.platform.authorization.resource_tables import resource_table_of
from headgate.platform.directory.models import member_table, organization_table

_members, _resources, _tokens = member_table.c, resource_table.c, token_table.c


def organization(connection: Connection) -> Any:
    """The organization's row."""
    return connection.execute(select(organization_table)).mappings().one()


def rename(connection: Connection, name: str) -> None:
    """Rename the organization."""
    connection.execute(update(organization_table).values(name=name))


def is_waiting(now: datetime) -> Any:
    """SQL condition: the invitation can still be accepted."""
    columns = invitation_table.c
    return columns.accepted_at.is_(None) & columns.revoked_at.is_(None) & (columns.expires_at > now)


def members_by_role(connection: Connection) -> dict[str, int]:
    """The number of members per role."""
    counted = select(_members.role, func.count()).where(_members.removed_at.is_(None)).group_by(_members.role)
    counts: dict[str, int] = dict(connection.execute(counted).all())
    return {role: counts.get(role, 0) for role in ROLES}


def resources_by_kind(connection: Connection) -> dict[str, int]:
    """The number of resources per kind, without saved queries, which are private, and without deleted resources."""
    destinations = resource_table_of("destination").c
    deleted = select(destinations.id).where(destinations.deleted_at.is_not(None))
    counted = select(_resources.kind, func.count()).where(_resources.id.not_in(deleted)).group_by(_resources.kind)
    rows = connection.execute(counted.where(_resources.kind != "saved_query").order_by(_resources.kind))
    return dict(rows.all())


def counts(connection: Connection, now: datetime) -> dict[str, int]:
    """The other totals."""
    lasts = or_(_tokens.expires_at.is_(None), _tokens.expires_at > now)
    alive = _tokens.revoked_at.is_(None) & lasts & _members.removed_at.is_(None)
    owned = token_table.join(member_table, _members.id == _tokens.member_id)
    queries = {
        "invitations": select(func.count()).select_from(invitation_table).where(is_waiting(now)),
        "groups": select(func.count()).select_from(group_table).where(group_table.c.id != ALL_GROUP),
        "contexts": select(func.count()).select_from(context_table),
        "tokens": select(func.count()).select_from(owned).where(alive),
    }
    together = select(*(query.scalar_subquery().label(name) for name, query in queries.items()))
    return dict(connection.execute(together).mappings().one())
