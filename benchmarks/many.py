"""Many data marts in a database: members of every sort, and marts that they see all, some or almost none of."""

from datetime import timedelta
from random import Random
from typing import Any

from sqlalchemy import Connection, insert, text

from headgate.kit.clock import now
from headgate.kit.database import Database
from headgate.kit.ids import ALL_GROUP
from headgate.marts.models import data_mart_table
from headgate.organization.contexts.models import context_table
from headgate.organization.groups.models import group_table
from headgate.platform.authorization.fact_tables import member_context_table, owner_table, resource_context_table
from headgate.platform.authorization.list_index import rebuild
from headgate.platform.authorization.models import resource_table
from headgate.platform.directory.models import member_table, organization_table, principal_table
from headgate.schema import METADATA

MEMBERS: dict[str, dict[str, Any]] = {
    "admin": {"role": "admin", "scope": "entire"},
    "technical, entire": {"role": "technical", "scope": "entire"},
    "business, entire": {"role": "business", "scope": "entire"},
    "technical, one context": {"role": "technical", "scope": "selected"},
    "owner of a hundred": {"role": "business", "scope": "selected"},
    "sees almost nothing": {"role": "business", "scope": "selected"},
}
CONTEXTS = 20


def member_id(name: str) -> str:
    return f"mbr_{list(MEMBERS).index(name):020d}"


def mart_id(number: int) -> str:
    return f"dm_{number:020d}"


def fill(database: Database, count: int) -> None:
    """Make the members, and this many marts."""
    METADATA.create_all(database.engine)
    database.write(lambda connection: _fill(connection, count))
    if database.dialect == "postgresql":
        with database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.execute(text("VACUUM ANALYZE"))
    else:
        with database.engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")


def _fill(connection: Connection, count: int) -> None:
    rng, moment = Random(1), now()
    others = [f"mbr_{number:020d}" for number in range(len(MEMBERS), len(MEMBERS) + 200)]
    people = [{"id": member_id(name), "name": name, **fields} for name, fields in MEMBERS.items()]
    people += [{"id": one, "name": one, "role": "technical", "scope": "entire"} for one in others]
    connection.execute(insert(organization_table), [{"id": 1, "name": "Many", "plan": "growth", "invites": "by-role"}])
    connection.execute(insert(principal_table), [{"id": one["id"]} for one in people] + [{"id": ALL_GROUP}])
    connection.execute(
        insert(member_table),
        [{**one, "name_key": one["name"], "created_at": moment, "removed_at": None} for one in people],
    )
    connection.execute(insert(group_table), [{"id": ALL_GROUP, "name": "All", "name_key": "all", "created_at": moment}])
    contexts = [f"ctx_{number:020d}" for number in range(CONTEXTS)]
    connection.execute(
        insert(context_table), [{"id": one, "name": one, "name_key": one, "created_at": moment} for one in contexts]
    )
    connection.execute(
        insert(member_context_table),
        [{"member_id": member_id("technical, one context"), "context_id": contexts[0]}],
    )
    step = 20_000
    for start in range(0, count, step):
        numbers = range(start, min(count, start + step))
        _marts(connection, rng, numbers, others, contexts, count)
    rebuild(connection)


def _marts(
    connection: Connection, rng: Random, numbers: range, others: list[str], contexts: list[str], count: int
) -> None:
    moment = now()
    resources, marts, owners, inside = [], [], [], []
    for number in numbers:
        identifier, creator = mart_id(number), others[number % len(others)]
        shuffled = number * 7919 % count
        resources.append(
            {
                "id": identifier,
                "kind": "data_mart",
                "namespace": "data_mart",
                "scope_id": "",
                "name": f"Mart {shuffled:08d}",
                "name_key": f"mart {shuffled:08d} {number}",
                "created_at": moment - timedelta(seconds=number),
                "updated_at": moment - timedelta(seconds=shuffled),
                "created_by_id": creator,
            }
        )
        marts.append(
            {
                "id": identifier,
                "shared_for_use": rng.random() < 0.3,
                "shared_for_maintenance": rng.random() < 0.2,
                "published": True,
                "storage_id": None,
                "acts_for_id": None,
            }
        )
        owners.append({"resource_id": identifier, "member_id": creator, "ownership": "technical"})
        if number % (count // 100) == 0:
            owners.append(
                {"resource_id": identifier, "member_id": member_id("owner of a hundred"), "ownership": "business"}
            )
        if number in (count // 3, count // 2):
            owners.append(
                {"resource_id": identifier, "member_id": member_id("sees almost nothing"), "ownership": "business"}
            )
        if rng.random() < 0.3:
            inside.append({"resource_id": identifier, "context_id": rng.choice(contexts)})
    for model, rows in (
        (resource_table, resources),
        (data_mart_table, marts),
        (owner_table, owners),
        (resource_context_table, inside),
    ):
        connection.execute(insert(model), rows)
