"""What ends when a member is removed: everything they hold, at once. What they made stays."""

from typing import Any

from sqlalchemy import select

from headgate.contexts.models import MemberContext
from headgate.governance.changes.delta import Delta
from headgate.governance.facts import Facts
from headgate.groups.models import GroupMember
from headgate.lakehouse.models import Grant
from headgate.members.models import Member, MemberSecurityRole
from headgate.pipelines.models import Pipeline
from headgate.resources.models import Owner
from headgate.spaces.models import Connection, Project, Space, SpaceMember
from headgate.tokens.models import Token

_HOLDINGS = {
    Owner: "member_id",
    Grant: "grantee_id",
    GroupMember: "member_id",
    SpaceMember: "principal_id",
    MemberContext: "member_id",
    MemberSecurityRole: "member_id",
}
_OWNED = (Space, Project, Connection, Pipeline)


def remove_member(facts: Facts, member: str, delta: Delta) -> tuple[dict[str, Any], dict[str, Any]]:
    """Lay down what a removal changes; what there was, and what there will be, for the audit log."""
    connection = facts.connection
    delta.change(connection, Member, {"id": member}, removed_at=facts.now)
    counts: dict[str, int] = {}
    for model, column in _HOLDINGS.items():
        before = len(delta.drops)
        delta.drop_all(connection, model, {column: member})
        counts[model.__tablename__] = len(delta.drops) - before
    for owned in _OWNED:
        rows = (
            connection.execute(select(owned.__table__.c.id).where(owned.__table__.c.owner_id == member)).scalars().all()
        )
        for identifier in rows:
            delta.change(connection, owned, {"id": identifier}, owner_id=None)
        counts[owned.__tablename__] = len(rows)
    tokens = Token.__table__
    alive = select(tokens.c.id).where(tokens.c.member_id == member, tokens.c.revoked_at.is_(None))
    for identifier in connection.execute(alive).scalars().all():
        delta.change(connection, Token, {"id": identifier}, revoked_at=facts.now)
        counts["tokens"] = counts.get("tokens", 0) + 1
    return {"active": True, **{name: count for name, count in counts.items() if count}}, {"active": False}
