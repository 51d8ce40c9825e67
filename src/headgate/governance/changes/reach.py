"""How far a change reaches: whose entries in the audience index it touches, and who might gain or lose by it."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from sqlalchemy import Connection

from headgate.contexts.models import MemberContext, ResourceContext
from headgate.governance.changes.delta import Delta
from headgate.groups.models import GroupMember
from headgate.kit.db import among, fetch, many
from headgate.kit.models import Base
from headgate.lakehouse.models import Grant
from headgate.marts.models import DataMart, Destination, Storage
from headgate.members.models import Member, MemberSecurityRole, Organization
from headgate.pipelines.models import Pipeline
from headgate.resources.models import Owner
from headgate.spaces.models import Connection as SpaceConnection
from headgate.spaces.models import Project, Space, SpaceMember

_BY_RESOURCE: dict[type[Base], str] = {Owner: "resource_id", ResourceContext: "resource_id", SpaceMember: "space_id"}
_THEMSELVES: tuple[type[Base], ...] = (Storage, DataMart, Destination, Space, Project, SpaceConnection, Pipeline)
_BY_MEMBER: dict[type[Base], str] = {
    Member: "id",
    MemberContext: "member_id",
    MemberSecurityRole: "member_id",
    GroupMember: "member_id",
}

_FOLLOWERS = (
    "SELECT id FROM reports WHERE {data_mart_id} OR {destination_id}",
    "SELECT id FROM triggers WHERE {parent_id}",
    "SELECT id FROM runs WHERE {parent_id}",
    "SELECT id FROM lake_items WHERE {layer_id}",
    "SELECT resource_id FROM table_refs WHERE {item_id} OR {layer_id}",
    "SELECT id FROM pipelines WHERE {output_layer_id} OR {destination_id} OR {project_id}",
    "SELECT pipeline_id FROM pipeline_connections WHERE {connection_id}",
    "SELECT id FROM projects WHERE {space_id} OR {target_id}",
    "SELECT id FROM connections WHERE {space_id} OR {gateway_id}",
    "SELECT id FROM gateways WHERE {space_id}",
)
"""How to get from resources to those whose access depends on theirs."""

_NAMING = (
    "SELECT id FROM data_marts WHERE {acts_for_id}",
    "SELECT id FROM reports WHERE {acts_for_id}",
    "SELECT id FROM pipelines WHERE {acts_for_id}",
    "SELECT id FROM projects WHERE {owner_id}",
    "SELECT id FROM triggers WHERE {author_id}",
)
"""How to get from members to the resources whose access depends on theirs."""


def _ask(connection: Connection, texts: Iterable[str], ids: Iterable[str]) -> set[str]:
    found: set[str] = set()
    bound = {"ids": many(connection, sorted(ids))}
    for text in texts:
        statement = re.sub(r"\{(\w+)\}", lambda match: among(connection, match[1], "ids"), text)
        found.update(row[0] for row in fetch(connection, statement, bound) if row[0])
    return found


def dependents(connection: Connection, ids: Iterable[str]) -> set[str]:
    """These resources, and all whose access depends on theirs."""
    found = set(ids)
    fresh = set(found)
    while fresh:
        fresh = _ask(connection, _FOLLOWERS, fresh) - found
        found |= fresh
    return found


@dataclass(slots=True)
class Reach:
    """Whom a change may concern: some members on everything, and everyone on some resources."""

    members: set[str] = field(default_factory=set)
    resources: set[str] = field(default_factory=set)
    everything: bool = False


def reach(connection: Connection, delta: Delta) -> Reach:
    """Whom a change may concern. It may name more than do gain or lose, never fewer."""
    found = Reach(everything=bool(delta.rows(Organization)))
    named = {row[column] for model, column in _BY_RESOURCE.items() for row in delta.rows(model)}
    named |= {row["id"] for model in _THEMSELVES for row in delta.rows(model)}
    granted = _grant_resources(connection, delta)
    named |= granted
    found.members = {row[column] for model, column in _BY_MEMBER.items() for row in delta.rows(model)}
    found.members |= {row["grantee_id"] for row in delta.rows(Grant) if row.get("grantee_id", "").startswith("mbr_")}
    if found.members:
        named |= _ask(connection, _NAMING, found.members)
    if any(True for _ in delta.rows(Member)):
        named |= set(found.members)
    found.resources = dependents(connection, named)
    found.resources |= _ask(connection, ("SELECT layer_id FROM lake_items WHERE {id}",), granted)
    return found


def _grant_resources(connection: Connection, delta: Delta) -> set[str]:
    known = {row["resource_id"] for row in delta.rows(Grant) if "resource_id" in row}
    dropped = [row["id"] for row in delta.rows(Grant) if "resource_id" not in row]
    if dropped:
        text = f"SELECT resource_id FROM grants WHERE {among(connection, 'id', 'ids')}"
        known |= {row[0] for row in fetch(connection, text, {"ids": many(connection, dropped)})}
    return known


_MIXED = (
    "SELECT DISTINCT tr.resource_id FROM grants g JOIN table_refs tr ON tr.item_id = g.resource_id "
    "OR tr.layer_id = g.resource_id WHERE {g.grantee_id}"
)


def stale(connection: Connection, delta: Delta) -> set[str]:
    """The resources whose entries in the audience index a change makes stale. Ask before it is applied, and after."""
    found = {row["resource_id"] for model in (Owner, ResourceContext) for row in delta.rows(model)}
    found |= {row["id"] for model in (Storage, DataMart, Destination) for row in delta.rows(model)}
    moved = {row["id"] for model in (Project, SpaceConnection) for row in delta.rows(model)}
    found |= moved | _ask(connection, ("SELECT id FROM pipelines WHERE {project_id}",), moved)
    granted = _grant_resources(connection, delta)
    if granted:
        found |= granted | _ask(
            connection,
            (
                "SELECT layer_id FROM lake_items WHERE {id}",
                "SELECT resource_id FROM table_refs WHERE {item_id} OR {layer_id}",
                "SELECT id FROM pipelines WHERE {output_layer_id}",
            ),
            granted,
        )
    groups = {row["group_id"] for row in delta.rows(GroupMember)}
    if groups:
        bound = {"ids": many(connection, sorted(groups))}
        text = _MIXED.replace("{g.grantee_id}", among(connection, "g.grantee_id", "ids"))
        found |= {row[0] for row in fetch(connection, text, bound)}
    for member in [row["id"] for row in delta.rows(Member)]:
        rows = fetch(connection, "SELECT id FROM resources WHERE created_by_id = :id", {"id": member})
        found |= {row[0] for row in rows}
    return found
