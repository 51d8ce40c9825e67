"""Revokes tainted credentials when a member becomes an owner: every credential that somebody else may know, and what
was created with it.

An admin can create a link for any member except an owner, and can keep credentials created in the session that it
opens. None of these may act for an owner.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Table, and_, or_, select, update

from headgate.organization.invitations.models import invitation_table
from headgate.organization.sessions.models import link_table, session_table
from headgate.organization.tokens.models import token_table
from headgate.platform.directory.models import member_table
from headgate.platform.directory.repository import organization_name
from headgate.platform.jobs import queue
from headgate.platform.jobs.kinds import JobKind, all_kinds
from headgate.platform.mail import templates
from headgate.platform.mail.outbox import enqueue
from headgate.platform.unit_of_work.call import Call

_members, _sessions, _tokens, _links = member_table.c, session_table.c, token_table.c, link_table.c
_invitations = invitation_table.c

MAIL = "new_owner"
Condition = Callable[[str, datetime], ColumnElement[bool]]


@dataclass(frozen=True, slots=True)
class CredentialKind:
    """A kind of credential: its table, its end column, and the condition for a member's credentials to revoke."""

    table: Table
    ended: str
    which: Condition


def _alive_session(member: str, now: datetime) -> ColumnElement[bool]:
    return and_(
        _sessions.member_id == member, _sessions.tainted, _sessions.ended_at.is_(None), _sessions.expires_at > now
    )


def _alive_token(member: str, now: datetime) -> ColumnElement[bool]:
    return and_(_tokens.member_id == member, _tokens.tainted, _tokens.revoked_at.is_(None))


def _waiting_link(member: str, now: datetime) -> ColumnElement[bool]:
    """A link created in a tainted session, for any member, or a link for the member that somebody else requested."""
    made_in = and_(_links.created_by_id == member, _links.tainted)
    for_member = and_(_links.member_id == member, _links.created_by_id != member)
    return and_(or_(made_in, for_member), _links.used_at.is_(None), _links.expires_at > now)


def _waiting_invitation(member: str, now: datetime) -> ColumnElement[bool]:
    return and_(
        _invitations.invited_by_id == member,
        _invitations.tainted,
        _invitations.accepted_at.is_(None),
        _invitations.revoked_at.is_(None),
        _invitations.expires_at > now,
    )


KINDS = (
    CredentialKind(session_table, "ended_at", _alive_session),
    CredentialKind(token_table, "revoked_at", _alive_token),
    CredentialKind(link_table, "used_at", _waiting_link),
    CredentialKind(invitation_table, "revoked_at", _waiting_invitation),
)
"""All kinds of credentials. A new kind has the columns of `kit.models.provenance` and an entry here."""


NAMED = ("session", "token", "link", "invitation", "statement")
"""The names of the kinds, in the singular, in messages about revoked credentials."""


def promote(call: Call, member: str) -> dict[str, Any]:
    """Revoke the tainted credentials of a member who became an owner, and mail them an explanation; returns what was
    revoked.
    """
    ended = end_tainted(call.connection, member, call.now)
    email = call.connection.execute(select(_members.email).where(_members.id == member)).scalar_one()
    if call.settings.mail.host is not None and email is not None:
        organization = organization_name(call.connection)
        subject, body = templates.new_owner(call.settings, organization, told(ended), password="password" in ended)
        enqueue(call.connection, call.services.sealer, MAIL, email, subject, body, call.now, member=member)
    return ended


def told(ended: dict[str, Any]) -> str:
    """The number of revoked credentials in words; empty for none."""
    counts = {word: ended[f"{word}s"] for word in NAMED if f"{word}s" in ended}
    *most, last = [f"{count} {word}{'' if count == 1 else 's'}" for word, count in counts.items()] or [""]
    return f"{', '.join(most)} and {last}" if most else last


def end_tainted(connection: Connection, member: str, now: datetime) -> dict[str, Any]:
    """Revoke the tainted credentials of a member who becomes an owner; returns the number per kind for the
    audit log.
    """
    ended: dict[str, Any] = {}
    for kind in KINDS:
        change = update(kind.table).where(kind.which(member, now)).values({kind.ended: now})
        ended[kind.table.name] = connection.execute(change).rowcount
    ended |= {f"{kind.name}s": _cancel_tainted(kind, connection, member, now) for kind in all_kinds()}
    ended["password"] = _end_password(connection, member, now)
    return {name: count for name, count in ended.items() if count}


def _cancel_tainted(kind: JobKind, connection: Connection, member: str, now: datetime) -> int:
    """Cancel queued and running jobs, which would continue with an owner's rights."""
    rows = kind.tainted(connection, member)
    for row in rows:
        queue.cancel(kind, connection, now, row)
    return len(rows)


def _end_password(connection: Connection, member: str, now: datetime) -> bool:
    tainted = (_members.id == member, _members.password_tainted, _members.password.is_not(None))
    waiting = (*tainted, _members.password_ended_at.is_(None))
    return connection.execute(update(member_table).where(*waiting).values(password_ended_at=now)).rowcount > 0
