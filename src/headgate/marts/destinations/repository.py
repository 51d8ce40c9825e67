"""Database access to destinations."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from sqlalchemy import Connection, func, select

from headgate.marts.destinations.schemas import DestinationItem, Users
from headgate.marts.models import destination_table, report_table
from headgate.organization.members.schemas import Named
from headgate.pipelines.models import pipeline_table
from headgate.platform.authorization.fact_tables import owner_table
from headgate.platform.authorization.schemas import Resource
from headgate.platform.directory.models import member_table
from headgate.platform.external_systems.models import place_table

_destinations, _members = destination_table.c, member_table.c


def shown(connection: Connection, result: Sequence[Resource]) -> list[DestinationItem]:
    """Destinations with their owners, in two statements."""
    ids = [resource.id for resource in result]
    query = select(destination_table, place_table.c.place_kind).outerjoin(
        place_table, place_table.c.id == _destinations.id
    )
    rows = {row["id"]: row for row in connection.execute(query.where(_destinations.id.in_(ids))).mappings()}
    owners: dict[str, list[Named]] = {}
    named = select(owner_table.c.resource_id, _members.id, _members.name).join(
        member_table, _members.id == owner_table.c.member_id
    )
    for resource, member, name in connection.execute(
        named.where(owner_table.c.resource_id.in_(ids)).order_by(_members.name_key)
    ):
        owners.setdefault(resource, []).append(Named(id=member, name=name))
    return [
        _shown(resource, rows[resource.id], owners.get(resource.id, [])) for resource in result if resource.id in rows
    ]


def _shown(resource: Resource, row: Any, owners: list[Named]) -> DestinationItem:
    fields = {name: value for name, value in asdict(resource).items() if name != "kind"}
    stored = ("place_kind", "shared_for_use", "shared_for_maintenance", "deleted_at")
    return DestinationItem(**fields, **{name: row[name] for name in stored}, owners=owners)


def users(connection: Connection, identifier: str) -> Users:
    """The number of reports and pipelines that send to a destination."""
    reports = select(func.count()).where(report_table.c.destination_id == identifier)
    pipelines = select(func.count()).where(pipeline_table.c.destination_id == identifier)
    return Users(reports=connection.execute(reports).scalar_one(), pipelines=connection.execute(pipelines).scalar_one())
