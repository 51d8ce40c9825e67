"""Leases: at most one holder of a name at a time, with a fencing number that only grows."""

import time
from collections.abc import Callable
from datetime import datetime, timedelta

from sqlalchemy import BigInteger, Column, ColumnElement, Connection, Table, insert, or_, select, update

from headgate.kit.columns import METADATA, UtcDateTime, Word, text_type
from headgate.kit.log import get_logger

lease_table = Table(
    "leases",
    METADATA,
    Column("name", Word, primary_key=True),
    Column("holder", text_type(80), nullable=False),
    Column("fence", BigInteger, nullable=False),
    Column("expires_at", UtcDateTime, nullable=False),
)
"""Who holds what, and until when."""

CLOCKS_APART = timedelta(minutes=2)
"""How far the clocks of holders may be apart. A lease that lasts longer than this allows was taken by a wrong clock."""

SET_SECONDS = 5.0
"""A clock that is off by more than this, by what has passed since the last look, was set."""
_log = get_logger("headgate.leases")


def is_over(until: ColumnElement[datetime], now: datetime, length: timedelta) -> ColumnElement[bool]:
    """SQL: a lease of this length has run out; or it lasts longer than any: a clock gave it that was set back since."""
    return or_(until < now, until > now + length + CLOCKS_APART)


class LeaseGrace:
    """When leases that are over by the clock may be taken from their holders. After the clock was set, those that live
    have the time of a lease, by ticks that nobody sets, to renew theirs.
    """

    def __init__(self, length: timedelta, ticks: Callable[[], float] = time.monotonic) -> None:
        self._length, self._ticks = length, ticks
        self._seen: tuple[datetime, float] | None = None
        self._until = ticks()

    def look(self, now: datetime) -> float | None:
        """Compare the clock with the ticks; by how many seconds it was set since the last look, None at the first."""
        ticks, last_seen = self._ticks(), self._seen
        self._seen = now, ticks
        if last_seen is None:
            return None
        off = (now - last_seen[0]).total_seconds() - (ticks - last_seen[1])
        if abs(off) <= SET_SECONDS:
            return 0.0
        _log.warning("the system clock was changed", seconds=round(off))
        self._until = ticks + self._length.total_seconds()
        return off

    @property
    def is_over(self) -> bool:
        """Whether what is over by the clock may be taken now."""
        return self._ticks() >= self._until


def acquire(connection: Connection, name: str, holder: str, now: datetime, length: timedelta) -> int | None:
    """Take or keep a lease; its fencing number, or None while someone else holds it. Call it in a write."""
    lease = lease_table.c
    row = connection.execute(
        select(lease.holder, lease.fence, lease.expires_at).where(lease.name == name)
    ).one_or_none()
    if row is None:
        connection.execute(insert(lease_table).values(name=name, holder=holder, fence=1, expires_at=now + length))
        return 1
    if row.holder != holder and now < row.expires_at < now + length + CLOCKS_APART:
        return None
    fence: int = row.fence if row.holder == holder and row.expires_at > now else row.fence + 1
    connection.execute(
        update(lease_table).where(lease.name == name).values(holder=holder, fence=fence, expires_at=now + length)
    )
    return fence


def is_held(connection: Connection, name: str, holder: str, fence: int) -> bool:
    """Whether a lease is still the one that was acquired: nobody else has taken it since."""
    lease = lease_table.c
    row = connection.execute(select(lease.holder, lease.fence).where(lease.name == name)).one_or_none()
    return row is not None and (row.holder, row.fence) == (holder, fence)


def release(connection: Connection, name: str, holder: str, now: datetime) -> None:
    """Let go of a lease, so that the next holder need not wait for its end."""
    lease = lease_table.c
    connection.execute(update(lease_table).where(lease.name == name, lease.holder == holder).values(expires_at=now))
