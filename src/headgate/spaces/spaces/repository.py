"""Database access to spaces."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from sqlalchemy import Connection, select

from headgate.organization.members.schemas import Named
from headgate.platform.authorization.schemas import Resource
from headgate.platform.directory.models import member_table
from headgate.spaces.spaces.models import space_table
from headgate.spaces.spaces.schemas import SpaceOut

_spaces, _members = space_table.c, member_table.c


def shown(connection: Connection, result: Sequence[Resource]) -> list[SpaceOut]:
    """Spaces with their owners, in one statement."""
    query = select(_spaces.id, _spaces.personal, _members.id.label("owner"), _members.name).outerjoin(
        member_table, (_members.id == _spaces.owner_id) & _members.removed_at.is_(None)
    )
    rows = {
        row.id: row for row in connection.execute(query.where(_spaces.id.in_([resource.id for resource in result])))
    }
    return [_shown(resource, rows[resource.id]) for resource in result if resource.id in rows]


def _shown(resource: Resource, row: Any) -> SpaceOut:
    fields = {name: value for name, value in asdict(resource).items() if name != "kind"}
    owner = Named(id=row.owner, name=row.name) if row.owner else None
    return SpaceOut(**fields, owner=owner, personal=row.personal)
