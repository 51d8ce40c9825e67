"""Rate limits for guessing and flooding: counts recent attempts per account, browser, address and member."""

import hashlib
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection, delete, insert, select, update

from headgate.kit.errors import TooManyAttempts
from headgate.organization.sessions.models import failure_table
from headgate.settings.sign_in import SignInSettings

WINDOW = timedelta(minutes=15)
MAILS_BY_ONE, MAILS_TO_ONE = 100, 5


@dataclass(frozen=True, slots=True)
class Counter:
    """A counter of failures and its limit."""

    key: str
    most: int


def _short(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:40]


def of_address(address: str, settings: SignInSettings, purpose: str = "address") -> Counter:
    """Counter of a network address; for IPv6, of its /64 network."""
    try:
        parsed = ipaddress.ip_address(address)
        mapped = parsed.ipv4_mapped if parsed.version == 6 else None
        if mapped is not None:
            address = str(mapped)
        elif parsed.version == 6:
            address = str(ipaddress.ip_network((parsed, 64), strict=False))
    except ValueError:
        address = "unknown"
    return Counter(f"{purpose}:{_short(address)}", settings.failures_per_address)


def of_account(email_key: str, settings: SignInSettings, *, known_browser: bool, purpose: str = "account") -> Counter:
    """Counter of an account, whether it exists or not. Browsers that signed in before are counted separately, so that
    another person's guesses cannot lock a member out.
    """
    who = f"{email_key} known" if known_browser else email_key
    return Counter(f"{purpose}:{_short(who)}", settings.failures_per_account)


def of_mails(sender: str, recipient: str | None = None) -> tuple[Counter, ...]:
    """Counters of mails caused by a member: in total, and per recipient."""
    counters = (Counter(f"mails by:{_short(sender)}", MAILS_BY_ONE),)
    return counters if recipient is None else (*counters, Counter(f"mails to:{_short(recipient)}", MAILS_TO_ONE))


def check(connection: Connection, counters: Sequence[Counter], now: datetime) -> None:
    """Refuse an attempt if a limit is reached."""
    table = failure_table.c
    keys = {counter.key: counter.most for counter in counters}
    rows = connection.execute(select(table.key, table.since, table.count).where(table.key.in_(keys)))
    for key, since, count in rows:
        if since > now - WINDOW and count >= keys[key]:
            wait = int((since + WINDOW - now).total_seconds()) + 1
            raise TooManyAttempts(f"Too many attempts; try again in {wait // 60 + 1} minutes", wait)


def count(connection: Connection, counters: Sequence[Counter], now: datetime) -> None:
    """Count an attempt; requires a write transaction."""
    table = failure_table
    connection.execute(delete(table).where(table.c.since <= now - WINDOW))
    for counter in counters:
        added = update(table).where(table.c.key == counter.key).values(count=table.c.count + 1)
        if connection.execute(added).rowcount == 0:
            connection.execute(insert(table).values(key=counter.key, since=now, count=1))


def take(connection: Connection, counters: Sequence[Counter], now: datetime) -> None:
    """Count an attempt before it is made, or refuse it, so that concurrent attempts cannot exceed the limit; requires a
    write transaction.
    """
    check(connection, counters, now)
    count(connection, counters, now)


def give_back(connection: Connection, counters: Sequence[Counter]) -> None:
    """Undo the count of a successful attempt."""
    table = failure_table
    for counter in counters:
        fewer = update(table).where(table.c.key == counter.key, table.c.count > 0)
        connection.execute(fewer.values(count=table.c.count - 1))


def reset(connection: Connection, counters: Sequence[Counter]) -> None:
    """Delete the failures after a successful sign-in."""
    keys = [counter.key for counter in counters]
    connection.execute(delete(failure_table).where(failure_table.c.key.in_(keys)))
