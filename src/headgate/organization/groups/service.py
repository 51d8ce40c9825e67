"""Creates, renames and deletes groups in the transaction of the call, with audit events."""

from typing import Any

from sqlalchemy import Table, delete, insert, update

from headgate.kit.errors import Conflict
from headgate.kit.ids import ALL_GROUP, new_id
from headgate.kit.names import name_key
from headgate.organization.access.changes.delta import Delta
from headgate.organization.access.changes.reach import stale
from headgate.organization.groups import repository
from headgate.organization.groups.models import group_table
from headgate.platform.authorization import writer
from headgate.platform.authorization.fact_tables import grant_table, group_member_table, space_member_table
from headgate.platform.directory.models import principal_table
from headgate.platform.resources.names import one, uniquely
from headgate.platform.unit_of_work.call import Call

_ENDS: dict[Table, str] = {
    grant_table: "grantee_id",
    space_member_table: "principal_id",
    group_member_table: "group_id",
    group_table: "id",
    principal_table: "id",
}
"""The tables whose rows end with a group, and the column that refers to it."""


def _changeable(call: Call, group: str) -> Any:
    """The group's row; refuses the group All, which cannot be changed."""
    row = one(call.connection, group_table, group)
    if group == ALL_GROUP:
        raise Conflict("The built-in group All contains every member; it cannot be renamed or deleted")
    return row


def create(call: Call, name: str) -> str:
    """Create an empty group and return its id."""
    decision = call.require("create_group", "organization", "organization")
    group = new_id("group")
    with uniquely(call.connection, group_table, "group", name):
        call.connection.execute(insert(principal_table).values(id=group))
        row = {"id": group, "name": name, "name_key": name_key(name), "created_at": call.now}
        call.connection.execute(insert(group_table).values(row))
    call.record_change(
        decision, "create_group", "group", group, before={}, after={"change": "create_group", "name": name}
    )
    return group


def rename(call: Call, group: str, name: str) -> None:
    """Rename a group; its grants remain, because they refer to the id."""
    decision = call.require("manage_groups", "organization", "organization")
    before = {"name": _changeable(call, group)["name"]}
    with uniquely(call.connection, group_table, "group", name, own=group):
        values = {"name": name, "name_key": name_key(name)}
        call.connection.execute(update(group_table).where(group_table.c.id == group).values(values))
    call.record_change(
        decision, "manage_groups", "group", group, before=before, after={"change": "rename_group", "name": name}
    )


def remove(call: Call, group: str) -> dict[str, Any]:
    """Delete a group; its grants, space roles and memberships end immediately. Returns what it held."""
    decision = call.require("manage_groups", "organization", "organization")
    row = _changeable(call, group)
    before = {"name": row["name"], **repository.holdings(call.connection, group)}
    delta = Delta()
    for table, column in _ENDS.items():
        delta.drop_all(call.connection, table, {column: group})
    with writer.access_change(call.connection, lambda: stale(call.connection, delta)):
        for table, column in _ENDS.items():
            call.connection.execute(delete(table).where(table.c[column] == group))
    call.record_change(decision, "manage_groups", "group", group, before=before, after={"change": "delete_group"})
    return before
