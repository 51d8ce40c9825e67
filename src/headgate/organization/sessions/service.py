"""Opens sessions, finds whose they are, ends them; makes links that are used once."""

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
"""How a link tells what it is for, so that the page it leads to asks for the right things."""


@dataclass(frozen=True, slots=True)
class ActiveSession:
    """A session that is alive."""

    id: str
    member: str
    seen: datetime
    tainted: bool = True


@dataclass(frozen=True, slots=True)
class Used:
    """A link that was used: whose it was, and what begins with it."""

    member: str
    origin: CredentialOrigin


@dataclass(frozen=True, slots=True)
class Browser:
    """What is noted of a browser, for its owner to know it by."""

    agent: str
    address: str


_IDENTIFY = (
    "SELECT s.id, s.member_id, s.last_seen_at, s.tainted FROM sessions s "
    "JOIN members m ON m.id = s.member_id AND m.removed_at IS NULL WHERE s.digest = :digest "
    "AND s.ended_at IS NULL AND s.expires_at > :now AND s.last_seen_at > :idle"
)


def identify(connection: Connection, secret: str, now: datetime, settings: SignInSettings) -> ActiveSession | None:
    """Whose session this is now; None for one that is malformed, unknown, over, or of a removed member."""
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
    """A new session, begun with `origin`; its secret, which goes into a cookie and is not kept."""
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
    """A member's sessions that could still be used, the one used last first."""
    idle = now - timedelta(hours=settings.idle_hours)
    where = (_sessions.member_id == member, _sessions.ended_at.is_(None), _sessions.expires_at > now)
    query = select(session_table).where(*where, _sessions.last_seen_at > idle)
    newest = (_sessions.last_seen_at.desc(), _sessions.id.desc())
    return connection.execute(query.order_by(*newest)).mappings().all()


def end(connection: Connection, member: str, now: datetime, *, only: str | None = None, but: str | None = None) -> int:
    """End a member's sessions: one, all but one, or all; how many were alive."""
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
    """A link's secret, in place of any earlier one for the same purpose. Without `by`, the member asked for it."""
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
    """Whether whoever made a link for a member could still make it; one's own needs nobody."""
    if row.created_by_id is None:
        return True
    maker = facts.subject(row.created_by_id)
    return maker is not None and bool(BOOK.decide(maker, _MADE_BY[purpose], facts.thing(row.member_id)))


def member_of_link(connection: Connection, secret: str, purpose: str, now: datetime) -> str:
    """The member of a link, which stays as it is; LinkSpent for any that cannot be used."""
    return str(_good_link(connection, secret, purpose, now).member_id)


def use_link(connection: Connection, secret: str, purpose: str, now: datetime) -> Used:
    """Spend a link; LinkSpent for any that cannot be used."""
    row = _good_link(connection, secret, purpose, now)
    connection.execute(update(link_table).where(_links.id == row.id).values(used_at=now))
    return Used(row.member_id, of_link(row.id, row.member_id, row.created_by_id, tainted=row.tainted))


def spend_links(connection: Connection, member: str, now: datetime) -> None:
    """Have no link of a member work any more."""
    unused = (_links.member_id == member, _links.used_at.is_(None))
    connection.execute(update(link_table).where(*unused).values(used_at=now))


def set_password(connection: Connection, member: str, stored: str, origin: CredentialOrigin, now: datetime) -> None:
    """Give a member a password, set in or with `origin`; no link of theirs works any more."""
    values = {"password": stored, "password_origin_id": origin.id, "password_tainted": origin.tainted}
    changed = update(member_table).where(member_table.c.id == member)
    connection.execute(changed.values(**values, password_ended_at=None))
    spend_links(connection, member, now)


def forget_password(connection: Connection, member: str, now: datetime) -> None:
    """End a member's password, sessions and links."""
    gone = {"password": None, "password_origin_id": None, "password_tainted": False, "password_ended_at": None}
    connection.execute(update(member_table).where(member_table.c.id == member).values(**gone))
    end(connection, member, now)
    spend_links(connection, member, now)


def purge(connection: Connection, before: datetime) -> None:
    """Forget sessions and links that were over by then."""
    connection.execute(delete(session_table).where(or_(_sessions.expires_at < before, _sessions.ended_at < before)))
    connection.execute(delete(link_table).where(_links.expires_at < before))
