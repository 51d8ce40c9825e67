"""Database access to connections."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from sqlalchemy import Connection, func, select, update

from headgate.kit.names import name_key
from headgate.organization.members.schemas import Named
from headgate.platform.authorization.models import resource_table
from headgate.platform.authorization.schemas import Resource
from headgate.platform.directory.models import member_table
from headgate.platform.external_systems.models import place_table
from headgate.spaces.connections.models import connection_table, pipeline_connection_table
from headgate.spaces.connections.schemas import ConnectionItem
from headgate.spaces.spaces.models import project_table

_connections, _resources, _members = connection_table.c, resource_table.c, member_table.c


def shown(connection: Connection, result: Sequence[Resource]) -> list[ConnectionItem]:
    """Connections with their spaces and owners, in one statement."""
    spaces = resource_table.alias()
    query = (
        select(
            _connections.id,
            place_table.c.place_kind,
            spaces.c.id.label("space"),
            spaces.c.name.label("space_name"),
            _members.id.label("owner"),
            _members.name.label("owner_name"),
            _connections.code_allowed_by_id,
        )
        .join(spaces, spaces.c.id == _connections.space_id)
        .outerjoin(place_table, place_table.c.id == _connections.id)
        .outerjoin(member_table, (_members.id == _connections.owner_id) & _members.removed_at.is_(None))
        .where(_connections.id.in_([resource.id for resource in result]))
    )
    rows = {row.id: row for row in connection.execute(query)}
    return [_shown(resource, rows[resource.id]) for resource in result if resource.id in rows]


def _shown(resource: Resource, row: Any) -> ConnectionItem:
    fields = {name: value for name, value in asdict(resource).items() if name != "kind"}
    return ConnectionItem(
        **fields,
        place_kind=row.place_kind,
        space=Named(id=row.space, name=row.space_name),
        owner=Named(id=row.owner, name=row.owner_name) if row.owner else None,
        allows_code=row.owner is not None and row.code_allowed_by_id == row.owner,
    )


def gateway_of(connection: Connection, identifier: str) -> Named | None:
    """The gateway of a connection."""
    query = select(_resources.id, _resources.name).join(connection_table, _connections.gateway_id == _resources.id)
    row = connection.execute(query.where(_connections.id == identifier)).one_or_none()
    return Named(id=row.id, name=row.name) if row else None


def same_name(connection: Connection, space: str, name: str, but: str = "") -> str | None:
    """The name of another connection in a space that looks the same, or None."""
    query = select(_resources.name).join(connection_table, _connections.id == _resources.id)
    same = query.where(_connections.space_id == space, _resources.name_key == name_key(name), _resources.id != but)
    return connection.execute(same.limit(1)).scalar()


def allow_code(connection: Connection, identifier: str, owner: str | None) -> None:
    """Allow notebook code to read the secrets of a connection while this member owns it; None forbids it."""
    values = {"code_allowed_by_id": owner}
    connection.execute(update(connection_table).where(_connections.id == identifier).values(values))


def space_of(connection: Connection, identifier: str) -> str:
    """The id of a connection's space."""
    query = select(_connections.space_id).where(_connections.id == identifier)
    return str(connection.execute(query).scalar_one())


def users(connection: Connection, identifier: str) -> dict[str, int]:
    """The number of pipelines that use a connection, and of projects whose target it is."""
    used, projects = pipeline_connection_table.c, project_table.c
    counts = {
        "pipeline": select(func.count()).where(used.connection_id == identifier),
        "data project": select(func.count()).where(projects.target_id == identifier),
    }
    return {noun: int(connection.execute(query).scalar_one()) for noun, query in counts.items()}
