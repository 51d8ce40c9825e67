"""Opens, identifies and ends sessions; creates one-time links."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, delete, insert, or_, select, update

from headgate.access.book import BOOK
from headgate.kit.credentials import Sort, digest, is_well_formed, new_secret
from headgate.kit.database import bound, fetch, instant
from headgate.kit.errors import LinkSpent
from headgate.kit.ids import new_id
from headgate.organization.sessions.models import link_table, session_table
from headgate.platform.authorization.facts import Facts
from headgate.platform.authorization.provenance import CredentialOrigin, of_link
from headgate.platform.directory.models import member_table
from headgate.settings.sign_in import SignInSettings

_sessions, _links = session_table.c, link_table.c
_MADE_BY = {"sign_in": "make_magic_link", "password": "reset_password"}
_SORTS = {"sign_in": Sort.link, "password": Sort.password}
"""The secret type per purpose of a link, so that its page shows the right form."""


@dataclass(frozen=True, slots=True)
class ActiveSession:
    """An active session."""

    id: str
    member: str
    seen: datetime
    tainted: bool = True


@dataclass(frozen=True, slots=True)
class Used:
    """A used link: its member, and the origin of what starts with it."""

    member: str
    origin: CredentialOrigin


@dataclass(frozen=True, slots=True)
class Browser:
    """Recorded facts about a browser, by which its owner can recognize it."""

    agent: str
    address: str


_IDENTIFY = (
    "SELECT s.id, s.member_id, s.last_seen_at, s.tainted FROM sessions s "
    "JOIN members m ON m.id = s.member_id AND m.removed_at IS NULL WHERE s.digest = :digest "
    "AND s.ended_at IS NULL AND s.expires_at > :now AND s.last_seen_at > :idle"
)


def identify(connection: Connection, secret: str, now: datetime, settings: SignInSettings) -> ActiveSession | None:
    """The session of this secret; None if it is malformed, unknown, ended, or of a removed member."""
    if not is_well_formed(secret, Sort.session):
        return None
    idle = now - timedelta(hours=settings.idle_hours)
    parameters = {"digest": digest(secret), "now": bound(connection, now), "idle": bound(connection, idle)}
    rows = fetch(connection, _IDENTIFY, parameters)
    return ActiveSession(rows[0][0], rows[0][1], instant(rows[0][2]), bool(rows[0][3])) if rows else None


def open_session(
    connection: Connection,
    member: str,
    method: str,
    browser: Browser,
    now: datetime,
    settings: SignInSettings,
    origin: CredentialOrigin,
) -> str:
    """Create a session with this `origin`; returns its secret for the cookie, which is not stored."""
    secret = new_secret(Sort.session)
    connection.execute(
        insert(session_table).values(
            id=new_id("session"),
            member_id=member,
            digest=digest(secret),
            method=method,
            created_at=now,
            last_seen_at=now,
            expires_at=now + timedelta(days=settings.session_days),
            agent=browser.agent,
            address=browser.address,
            origin_id=origin.id,
            tainted=origin.tainted,
        )
    )
    connection.execute(update(member_table).where(member_table.c.id == member).values(last_seen_at=now))
    return secret


def alive(connection: Connection, member: str, now: datetime, settings: SignInSettings) -> Sequence[Any]:
    """A member's active sessions, most recently used first."""
    idle = now - timedelta(hours=settings.idle_hours)
    where = (_sessions.member_id == member, _sessions.ended_at.is_(None), _sessions.expires_at > now)
    query = select(session_table).where(*where, _sessions.last_seen_at > idle)
    newest = (_sessions.last_seen_at.desc(), _sessions.id.desc())
    return connection.execute(query.order_by(*newest)).mappings().all()


def end(connection: Connection, member: str, now: datetime, *, only: str | None = None, but: str | None = None) -> int:
    """End one, all but one, or all sessions of a member; returns the number of active ones."""
    where = [_sessions.member_id == member, _sessions.ended_at.is_(None), _sessions.expires_at > now]
    if only is not None:
        where.append(_sessions.id == only)
    if but is not None:
        where.append(_sessions.id != but)
    return connection.execute(update(session_table).where(*where).values(ended_at=now)).rowcount


def make_link(
    connection: Connection,
    member: str,
    purpose: str,
    by: str | None,
    now: datetime,
    minutes: float,
    origin: CredentialOrigin,
) -> str:
    """The secret of a new link, which replaces earlier ones for the same purpose. Without `by`, the member requested
    it.
    """
    waiting = (_links.member_id == member, _links.purpose == purpose, _links.used_at.is_(None))
    connection.execute(update(link_table).where(*waiting).values(used_at=now))
    secret = new_secret(_SORTS[purpose])
    connection.execute(
        insert(link_table).values(
            id=new_id("link"),
            member_id=member,
            purpose=purpose,
            digest=digest(secret),
            created_at=now,
            expires_at=now + timedelta(minutes=minutes),
            created_by_id=by,
            origin_id=origin.id,
            tainted=origin.tainted,
        )
    )
    return secret


def _good_link(connection: Connection, secret: str, purpose: str, now: datetime) -> Any:
    if not is_well_formed(secret, _SORTS[purpose]):
        raise LinkSpent
    where = (_links.digest == digest(secret), _links.purpose == purpose, _links.used_at.is_(None))
    joined = link_table.join(member_table, member_table.c.id == _links.member_id)
    query = (
        select(_links.id, _links.member_id, _links.created_by_id, _links.tainted)
        .select_from(joined)
        .where(*where, _links.expires_at > now, member_table.c.removed_at.is_(None))
    )
    row = connection.execute(query).one_or_none()
    if row is None or not _stands(Facts(connection, now), row, purpose):
        raise LinkSpent
    return row


def _stands(facts: Facts, row: Any, purpose: str) -> bool:
    """Whether the creator of a link may still create it; a member's own link is always valid."""
    if row.created_by_id is None:
        return True
    maker = facts.subject(row.created_by_id)
    return maker is not None and bool(BOOK.decide(maker, _MADE_BY[purpose], facts.thing(row.member_id)))


def member_of_link(connection: Connection, secret: str, purpose: str, now: datetime) -> str:
    """The member of a link, without using it; LinkSpent if it cannot be used."""
    return str(_good_link(connection, secret, purpose, now).member_id)


def use_link(connection: Connection, secret: str, purpose: str, now: datetime) -> Used:
    """Use a link; LinkSpent if it cannot be used."""
    row = _good_link(connection, secret, purpose, now)
    connection.execute(update(link_table).where(_links.id == row.id).values(used_at=now))
    return Used(row.member_id, of_link(row.id, row.member_id, row.created_by_id, tainted=row.tainted))


def spend_links(connection: Connection, member: str, now: datetime) -> None:
    """Revoke all links of a member."""
    unused = (_links.member_id == member, _links.used_at.is_(None))
    connection.execute(update(link_table).where(*unused).values(used_at=now))


def set_password(connection: Connection, member: str, stored: str, origin: CredentialOrigin, now: datetime) -> None:
    """Set a member's password with this `origin`; all their links are revoked."""
    values = {"password": stored, "password_origin_id": origin.id, "password_tainted": origin.tainted}
    changed = update(member_table).where(member_table.c.id == member)
    connection.execute(changed.values(**values, password_ended_at=None))
    spend_links(connection, member, now)


def forget_password(connection: Connection, member: str, now: datetime) -> None:
    """Revoke a member's password, sessions and links."""
    gone = {"password": None, "password_origin_id": None, "password_tainted": False, "password_ended_at": None}
    connection.execute(update(member_table).where(member_table.c.id == member).values(**gone))
    end(connection, member, now)
    spend_links(connection, member, now)


def purge(connection: Connection, before: datetime) -> None:
    """Delete sessions and links that ended before `before`."""
    connection.execute(delete(session_table).where(or_(_sessions.expires_at < before, _sessions.ended_at < before)))
    connection.execute(delete(link_table).where(_links.expires_at < before))
