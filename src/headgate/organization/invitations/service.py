"""Invitations: authorized when they are created and again when they are accepted."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, insert, select, update

from headgate.access.facts import Subject
from headgate.access.invitations import MemberScope, is_subscribed_on_joining, may_invite
from headgate.kit.credentials import Sort, digest, is_well_formed, new_secret
from headgate.kit.errors import Conflict, LinkSpent
from headgate.kit.ids import new_id
from headgate.kit.names import email_key, name_key
from headgate.organization.contexts.models import context_table
from headgate.organization.invitations.models import invitation_context_table, invitation_table
from headgate.organization.sessions.accounts import by_email
from headgate.platform.authorization.fact_tables import member_context_table
from headgate.platform.authorization.facts import Facts
from headgate.platform.authorization.provenance import BY_OPERATOR, CredentialOrigin, of_invitation
from headgate.platform.directory.models import member_table, principal_table
from headgate.platform.notifications.service import subscribe

_invitations = invitation_table.c


@dataclass(frozen=True, slots=True)
class Invitation:
    """A stored invitation, with the related names."""

    id: str
    email: str
    role: str
    reach: MemberScope
    invited_by: str | None
    created_at: datetime
    expires_at: datetime
    accepted_at: datetime | None
    revoked_at: datetime | None
    tainted: bool = True

    @property
    def origin(self) -> CredentialOrigin:
        """The origin of credentials that start with it."""
        return of_invitation(self.id, self.invited_by, tainted=self.tainted)

    def state(self, now: datetime) -> str:
        """Its state."""
        if self.accepted_at:
            return "accepted"
        if self.revoked_at:
            return "revoked"
        return "waiting" if self.expires_at > now else "expired"


def has_owner(connection: Connection) -> bool:
    """Whether the organization has an owner; once it has one, it always has."""
    where = (member_table.c.role == "owner", member_table.c.removed_at.is_(None))
    return connection.execute(select(member_table.c.id).where(*where)).first() is not None


def make(
    connection: Connection,
    email: str,
    role: str,
    reach: MemberScope,
    by: str | None,
    now: datetime,
    days: float,
    origin: CredentialOrigin = BY_OPERATOR,
) -> tuple[str, str]:
    """Create an invitation; returns its id and its secret. Without `by`, the operator invites."""
    _refuse_if_known(connection, email, now)
    identifier, secret = new_id("invitation"), new_secret(Sort.invitation)
    connection.execute(
        insert(invitation_table).values(
            id=identifier,
            email=email,
            email_key=email_key(email),
            role=role,
            scope=reach.scope,
            digest=digest(secret),
            invited_by_id=by,
            created_at=now,
            expires_at=now + timedelta(days=days),
            origin_id=origin.id,
            tainted=origin.tainted,
        )
    )
    rows = [{"invitation_id": identifier, "context_id": context} for context in sorted(reach.contexts)]
    if rows:
        connection.execute(insert(invitation_context_table), rows)
    return identifier, secret


def _refuse_if_known(connection: Connection, email: str, now: datetime) -> None:
    if by_email(connection, email) is not None:
        raise Conflict(f"{email} is already the address of a member")
    waiting = (_invitations.accepted_at.is_(None), _invitations.revoked_at.is_(None), _invitations.expires_at > now)
    pending = select(_invitations.id).where(_invitations.email_key == email_key(email), *waiting)
    if connection.execute(pending).first() is not None:
        raise Conflict(f"{email} is already invited; resend the invitation, or revoke it first")


def renew(
    connection: Connection, invitation: Invitation, by: str, now: datetime, days: float, origin: CredentialOrigin
) -> str:
    """Give an invitation a new secret and expiry; the old link is revoked. The caller becomes the inviter."""
    secret = new_secret(Sort.invitation)
    values = {"digest": digest(secret), "expires_at": now + timedelta(days=days), "invited_by_id": by}
    made_in = {"origin_id": origin.id, "tainted": origin.tainted}
    connection.execute(update(invitation_table).where(_invitations.id == invitation.id).values(**values, **made_in))
    return secret


def revoke(connection: Connection, invitation: str, now: datetime) -> None:
    """Revoke an invitation."""
    connection.execute(update(invitation_table).where(_invitations.id == invitation).values(revoked_at=now))


def find(connection: Connection, where: Any) -> list[Invitation]:
    """Invitations, newest first, with their contexts, in two statements."""
    rows = connection.execute(select(invitation_table).where(where).order_by(_invitations.id.desc())).mappings().all()
    contexts: dict[str, set[str]] = {}
    inner = invitation_context_table.c
    ids = [row["id"] for row in rows]
    for invitation, context in connection.execute(
        select(inner.invitation_id, inner.context_id).where(inner.invitation_id.in_(ids))
    ):
        contexts.setdefault(invitation, set()).add(context)
    return [
        Invitation(
            row["id"],
            row["email"],
            row["role"],
            MemberScope(entire=row["scope"] == "entire", contexts=frozenset(contexts.get(row["id"], ()))),
            row["invited_by_id"],
            row["created_at"],
            row["expires_at"],
            row["accepted_at"],
            row["revoked_at"],
            row["tainted"],
        )
        for row in rows
    ]


def by_id(connection: Connection, identifier: str) -> Invitation | None:
    """The invitation with this id."""
    invitation = find(connection, _invitations.id == identifier)
    return invitation[0] if invitation else None


def by_secret(connection: Connection, secret: str, now: datetime) -> Invitation:
    """The invitation of a link; LinkSpent if it cannot be accepted."""
    if not is_well_formed(secret, Sort.invitation):
        raise LinkSpent
    invitation = find(connection, _invitations.digest == digest(secret))
    if not invitation or invitation[0].state(now) != "waiting":
        raise LinkSpent
    return invitation[0]


def known(connection: Connection, member: str | None, limit: int, after: str | None) -> Sequence[Invitation]:
    """Invitations that were not accepted: all, or those of one inviter; by page."""
    where: Any = _invitations.accepted_at.is_(None)
    if member is not None:
        where &= _invitations.invited_by_id == member
    if after is not None:
        where &= _invitations.id < after
    ids = select(_invitations.id).where(where).order_by(_invitations.id.desc()).limit(limit)
    chosen = connection.execute(ids).scalars().all()
    return find(connection, _invitations.id.in_(chosen)) if chosen else []


def accept(facts: Facts, invitation: Invitation, name: str, password: str | None) -> str:
    """Create the member of an invitation; returns their id."""
    connection, now = facts.connection, facts.now
    if invitation.invited_by is None and has_owner(connection):
        raise LinkSpent
    if invitation.invited_by is not None:
        inviter: Subject | None = facts.subject(invitation.invited_by)
        if not may_invite(inviter, invitation.role, invitation.reach, facts.organization()):
            raise Conflict("The member who invited you may no longer do so; ask an admin for a new invitation")
    if by_email(connection, invitation.email) is not None:
        raise Conflict(f"{invitation.email} is already the address of a member; sign in instead")
    member = new_member(
        connection,
        name,
        invitation.email,
        invitation.role,
        invitation.reach,
        password=password,
        now=now,
        origin=invitation.origin,
    )
    values = {"accepted_at": now, "member_id": member}
    connection.execute(update(invitation_table).where(_invitations.id == invitation.id).values(**values))
    return member


def new_member(
    connection: Connection,
    name: str,
    email: str | None,
    role: str,
    reach: MemberScope,
    *,
    password: str | None,
    now: datetime,
    origin: CredentialOrigin = BY_OPERATOR,
) -> str:
    """Create a member with the subscriptions of their role; returns their id. `origin` is the origin of their
    password.
    """
    table = member_table.c
    if connection.execute(select(table.id).where(table.name_key == name_key(name))).first() is not None:
        raise Conflict(f"A member called {name!r} already exists; add a second name")
    identifier = new_id("member")
    connection.execute(insert(principal_table).values(id=identifier))
    connection.execute(
        insert(member_table).values(
            id=identifier,
            name=name,
            name_key=name_key(name),
            role=role,
            scope=reach.scope,
            created_at=now,
            email=email,
            email_key=email_key(email) if email else None,
            password=password,
            password_origin_id=origin.id,
            password_tainted=origin.tainted,
        )
    )
    rows = [{"member_id": identifier, "context_id": context} for context in _existing(connection, reach.contexts)]
    if rows:
        connection.execute(insert(member_context_table), rows)
    if is_subscribed_on_joining(role):
        subscribe(connection, identifier)
    return identifier


def _existing(connection: Connection, contexts: Iterable[str]) -> list[str]:
    """The contexts that still exist."""
    query = select(context_table.c.id).where(context_table.c.id.in_(list(contexts)))
    return sorted(connection.execute(query).scalars())
