"""The impact of a change: the affected audience index entries, and the members who may gain or lose access."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from sqlalchemy import Connection, Table

from headgate.kit.database import among, fetch, many
from headgate.organization.access.changes.delta import Delta
from headgate.platform.authorization.fact_tables import (
    grant_table,
    group_member_table,
    member_context_table,
    member_security_role_table,
    owner_table,
    resource_context_table,
    space_member_table,
)
from headgate.platform.authorization.resource_tables import resource_table_of
from headgate.platform.directory.models import member_table, organization_table

_BY_RESOURCE: dict[Table, str] = {
    owner_table: "resource_id",
    resource_context_table: "resource_id",
    space_member_table: "space_id",
}
_SHAREABLE = ("storage", "data_mart", "destination")
_OWNED = ("space", "project", "connection", "pipeline")
_BY_MEMBER: dict[Table, str] = {
    member_table: "id",
    member_context_table: "member_id",
    member_security_role_table: "member_id",
    group_member_table: "member_id",
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
"""How to get from resources to the resources whose access depends on them."""

_NAMING = (
    "SELECT id FROM data_marts WHERE {acts_for_id}",
    "SELECT id FROM reports WHERE {acts_for_id}",
    "SELECT id FROM pipelines WHERE {acts_for_id}",
    "SELECT id FROM projects WHERE {owner_id}",
    "SELECT id FROM triggers WHERE {author_id}",
)
"""How to get from members to the resources whose access depends on them."""


def _ask(connection: Connection, texts: Iterable[str], ids: Iterable[str]) -> set[str]:
    results: set[str] = set()
    bound = {"ids": many(connection, sorted(ids))}
    for text in texts:
        statement = re.sub(r"\{(\w+)\}", lambda match: among(connection, match[1], "ids"), text)
        results.update(row[0] for row in fetch(connection, statement, bound) if row[0])
    return results


def dependents(connection: Connection, ids: Iterable[str]) -> set[str]:
    """These resources, and all whose access depends on them."""
    results = set(ids)
    fresh = set(results)
    while fresh:
        fresh = _ask(connection, _FOLLOWERS, fresh) - results
        results |= fresh
    return results


@dataclass(slots=True)
class AffectedAccess:
    """Members and resources affected by a change: some members for all resources, and all members for some
    resources.
    """

    members: set[str] = field(default_factory=set)
    resources: set[str] = field(default_factory=set)
    everything: bool = False


def reach(connection: Connection, delta: Delta) -> AffectedAccess:
    """The members and resources affected by a change. The result may include unaffected ones, but never misses one."""
    affected_access = AffectedAccess(everything=bool(delta.rows(organization_table)))
    named = {row[column] for table, column in _BY_RESOURCE.items() for row in delta.rows(table)}
    named |= {row["id"] for kind in (*_SHAREABLE, *_OWNED) for row in delta.rows(resource_table_of(kind))}
    granted = _grant_resources(connection, delta)
    named |= granted
    affected_access.members = {row[column] for table, column in _BY_MEMBER.items() for row in delta.rows(table)}
    affected_access.members |= {
        row["grantee_id"] for row in delta.rows(grant_table) if row.get("grantee_id", "").startswith("mbr_")
    }
    if affected_access.members:
        named |= _ask(connection, _NAMING, affected_access.members)
    if any(True for _ in delta.rows(member_table)):
        named |= set(affected_access.members)
    affected_access.resources = dependents(connection, named)
    affected_access.resources |= _ask(connection, ("SELECT layer_id FROM lake_items WHERE {id}",), granted)
    return affected_access


def _grant_resources(connection: Connection, delta: Delta) -> set[str]:
    known = {row["resource_id"] for row in delta.rows(grant_table) if "resource_id" in row}
    dropped = [row["id"] for row in delta.rows(grant_table) if "resource_id" not in row]
    if dropped:
        text = f"SELECT resource_id FROM grants WHERE {among(connection, 'id', 'ids')}"
        known |= {row[0] for row in fetch(connection, text, {"ids": many(connection, dropped)})}
    return known


_MIXED = (
    "SELECT DISTINCT tr.resource_id FROM grants g JOIN table_refs tr ON tr.item_id = g.resource_id "
    "OR tr.layer_id = g.resource_id WHERE {g.grantee_id}"
)


def stale(connection: Connection, delta: Delta) -> set[str]:
    """The resources whose audience index entries become stale by a change. Call it before and after the change is
    applied.
    """
    results = {row["resource_id"] for table in (owner_table, resource_context_table) for row in delta.rows(table)}
    results |= {row["id"] for kind in _SHAREABLE for row in delta.rows(resource_table_of(kind))}
    moved = {row["id"] for kind in ("project", "connection") for row in delta.rows(resource_table_of(kind))}
    results |= moved | _ask(connection, ("SELECT id FROM pipelines WHERE {project_id}",), moved)
    granted = _grant_resources(connection, delta)
    if granted:
        results |= granted | _ask(
            connection,
            (
                "SELECT layer_id FROM lake_items WHERE {id}",
                "SELECT resource_id FROM table_refs WHERE {item_id} OR {layer_id}",
                "SELECT id FROM pipelines WHERE {output_layer_id}",
            ),
            granted,
        )
    groups = {row["group_id"] for row in delta.rows(group_member_table)}
    if groups:
        bound = {"ids": many(connection, sorted(groups))}
        text = _MIXED.replace("{g.grantee_id}", among(connection, "g.grantee_id", "ids"))
        results |= {row[0] for row in fetch(connection, text, bound)}
    for member in [row["id"] for row in delta.rows(member_table)]:
        rows = fetch(connection, "SELECT id FROM resources WHERE created_by_id = :id", {"id": member})
        results |= {row[0] for row in rows}
    return results
