"""What ends when a member is removed: everything they hold, at once. What they made stays."""

from typing import Any

from sqlalchemy import select

from headgate.contexts.models import member_context_table
from headgate.governance.changes.delta import Delta
from headgate.governance.facts import Facts
from headgate.groups.models import group_member_table
from headgate.lakehouse.models import grant_table
from headgate.members.models import member_security_role_table, member_table
from headgate.pipelines.models import pipeline_table
from headgate.resources.models import owner_table
from headgate.spaces.models import connection_table, project_table, space_member_table, space_table
from headgate.tokens.models import token_table

_HOLDINGS = {
    owner_table: "member_id",
    grant_table: "grantee_id",
    group_member_table: "member_id",
    space_member_table: "principal_id",
    member_context_table: "member_id",
    member_security_role_table: "member_id",
}
_OWNED = (space_table, project_table, connection_table, pipeline_table)


def remove_member(facts: Facts, member: str, delta: Delta) -> tuple[dict[str, Any], dict[str, Any]]:
    """Lay down what a removal changes; what there was, and what there will be, for the audit log."""
    connection = facts.connection
    delta.change(connection, member_table, {"id": member}, removed_at=facts.now, name_key=member)
    counts: dict[str, int] = {}
    for table, column in _HOLDINGS.items():
        before = len(delta.drops)
        delta.drop_all(connection, table, {column: member})
        counts[table.name] = len(delta.drops) - before
    for owned in _OWNED:
        rows = connection.execute(select(owned.c.id).where(owned.c.owner_id == member)).scalars().all()
        for identifier in rows:
            delta.change(connection, owned, {"id": identifier}, owner_id=None)
        counts[owned.name] = len(rows)
    tokens = token_table
    alive = select(tokens.c.id).where(tokens.c.member_id == member, tokens.c.revoked_at.is_(None))
    for identifier in connection.execute(alive).scalars().all():
        delta.change(connection, token_table, {"id": identifier}, revoked_at=facts.now)
        counts["tokens"] = counts.get("tokens", 0) + 1
    return {"active": True, **{name: count for name, count in counts.items() if count}}, {"active": False}
