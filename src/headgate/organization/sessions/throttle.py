"""Slows guessing and flooding: what was tried of late is counted, for an account, a browser, an address, a member."""

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
    """What failures are counted for, and how many are too many."""

    key: str
    most: int


def _short(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:40]


def of_address(address: str, settings: SignInSettings, purpose: str = "address") -> Counter:
    """For a network address; an IPv6 host owns its whole /64."""
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
    """For an account, whether it exists or not. A browser that signed in before is counted apart from strangers,
    so that nobody is locked out by somebody else's guesses."""
    who = f"{email_key} known" if known_browser else email_key
    return Counter(f"{purpose}:{_short(who)}", settings.failures_per_account)


def of_mails(sender: str, recipient: str | None = None) -> tuple[Counter, ...]:
    """For mails that a member causes: how many in all, and how many to one address."""
    counters = (Counter(f"mails by:{_short(sender)}", MAILS_BY_ONE),)
    return counters if recipient is None else (*counters, Counter(f"mails to:{_short(recipient)}", MAILS_TO_ONE))


def check(connection: Connection, counters: Sequence[Counter], now: datetime) -> None:
    """Refuse an attempt if there were too many."""
    table = failure_table.c
    keys = {counter.key: counter.most for counter in counters}
    rows = connection.execute(select(table.key, table.since, table.count).where(table.key.in_(keys)))
    for key, since, count in rows:
        if since > now - WINDOW and count >= keys[key]:
            wait = int((since + WINDOW - now).total_seconds()) + 1
            raise TooManyAttempts(f"Too many attempts; try again in {wait // 60 + 1} minutes", wait)


def count(connection: Connection, counters: Sequence[Counter], now: datetime) -> None:
    """Count an attempt. Call it in a write."""
    table = failure_table
    connection.execute(delete(table).where(table.c.since <= now - WINDOW))
    for counter in counters:
        added = update(table).where(table.c.key == counter.key).values(count=table.c.count + 1)
        if connection.execute(added).rowcount == 0:
            connection.execute(insert(table).values(key=counter.key, since=now, count=1))


def take(connection: Connection, counters: Sequence[Counter], now: datetime) -> None:
    """Count an attempt before it is made, or refuse it: so that many at once are no way around. Call it in a write."""
    check(connection, counters, now)
    count(connection, counters, now)


def give_back(connection: Connection, counters: Sequence[Counter]) -> None:
    """Count an attempt that was right as none."""
    table = failure_table
    for counter in counters:
        fewer = update(table).where(table.c.key == counter.key, table.c.count > 0)
        connection.execute(fewer.values(count=table.c.count - 1))


def reset(connection: Connection, counters: Sequence[Counter]) -> None:
    """Forget the failures of whoever got in at last."""
    keys = [counter.key for counter in counters]
    connection.execute(delete(failure_table).where(failure_table.c.key.in_(keys)))
