"""Removal of a member: everything they hold ends immediately. What they created remains, and what they solely owned
stays listed.
"""

from typing import Any

from sqlalchemy import Table, select

from headgate.organization.access.changes.delta import Delta
from headgate.organization.members.holdings import solely_owned
from headgate.organization.sessions.models import link_table, session_table
from headgate.organization.tokens.models import token_table
from headgate.platform.authorization.fact_tables import (
    former_owner_table,
    grant_table,
    group_member_table,
    member_context_table,
    member_security_role_table,
    owner_table,
    space_member_table,
)
from headgate.platform.authorization.facts import Facts
from headgate.platform.authorization.resource_tables import resource_table_of
from headgate.platform.directory.models import member_table
from headgate.platform.mail.models import mail_table
from headgate.platform.notifications.models import receiver_table

_HOLDINGS = {
    owner_table: "member_id",
    grant_table: "grantee_id",
    group_member_table: "member_id",
    space_member_table: "principal_id",
    member_context_table: "member_id",
    member_security_role_table: "member_id",
    receiver_table: "member_id",
}
_OWNED = ("space", "project", "connection", "pipeline")
_MOST = 200
"""Maximum number of sessions, links and mails updated per row in a removal, because a what-if holds no more rows per
table. The remaining ones are unusable anyway, because they require an active member.
"""
_FORGOTTEN: dict[str, Any] = {"email": None, "email_key": None, "password": None}


def _open(facts: Facts) -> list[tuple[Table, tuple[Any, ...], dict[str, Any]]]:
    """The tables of usable credentials and pending mails, with the values that end them."""
    sessions, links, mails = session_table.c, link_table.c, mail_table.c
    withdrawn = {"due_at": None, "body": None, "error": "the member was removed"}
    return [
        (session_table, (sessions.ended_at.is_(None), sessions.expires_at > facts.now), {"ended_at": facts.now}),
        (link_table, (links.used_at.is_(None), links.expires_at > facts.now), {"used_at": facts.now}),
        (mail_table, (mails.due_at.is_not(None),), withdrawn),
    ]


def _end_open(facts: Facts, member: str, delta: Delta) -> dict[str, int]:
    """Plan the end of a member's sessions, links and pending mails; returns the number of each."""
    counts: dict[str, int] = {}
    for table, is_open, values in _open(facts):
        waiting = select(table.c.id).where(table.c.member_id == member, *is_open).order_by(table.c.id.desc())
        rows = facts.connection.execute(waiting.limit(_MOST)).scalars().all()
        for identifier in rows:
            delta.change(facts.connection, table, {"id": identifier}, **values)
        counts[table.name] = len(rows)
    return counts


def remove_member(facts: Facts, member: str, delta: Delta) -> tuple[dict[str, Any], dict[str, Any]]:
    """Plan a removal; returns the state before and after for the audit log."""
    connection = facts.connection
    delta.change(connection, member_table, {"id": member}, removed_at=facts.now, name_key=member, **_FORGOTTEN)
    for held in solely_owned(connection, member, with_deleted=True):
        delta.put(former_owner_table, {"resource_id": held.id, "ownership": held.holds, "member_id": member})
    counts: dict[str, int] = {}
    for table, column in _HOLDINGS.items():
        before = len(delta.drops)
        delta.drop_all(connection, table, {column: member})
        counts[table.name] = len(delta.drops) - before
    for kind in _OWNED:
        owned = resource_table_of(kind)
        rows = connection.execute(select(owned.c.id).where(owned.c.owner_id == member)).scalars().all()
        for identifier in rows:
            delta.change(connection, owned, {"id": identifier}, owner_id=None)
        counts[owned.name] = len(rows)
    tokens = token_table
    alive = select(tokens.c.id).where(tokens.c.member_id == member, tokens.c.revoked_at.is_(None))
    for identifier in connection.execute(alive).scalars().all():
        delta.change(connection, token_table, {"id": identifier}, revoked_at=facts.now)
        counts["tokens"] = counts.get("tokens", 0) + 1
    counts |= _end_open(facts, member, delta)
    return {"active": True, **{name: count for name, count in counts.items() if count}}, {"active": False}
