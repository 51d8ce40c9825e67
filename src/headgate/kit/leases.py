"""Leases: at most one holder of a name at a time, with a fencing number that only grows."""

from datetime import datetime, timedelta

from sqlalchemy import BigInteger, Column, Connection, Table, insert, select, update

from headgate.kit.models import METADATA, UtcDateTime, Word, text_type

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


def acquire(connection: Connection, name: str, holder: str, now: datetime, length: timedelta) -> int | None:
    """Take or keep a lease; its fencing number, or None while someone else holds it. Call it in a write."""
    lease = lease_table.c
    found = connection.execute(
        select(lease.holder, lease.fence, lease.expires_at).where(lease.name == name)
    ).one_or_none()
    if found is None:
        connection.execute(insert(lease_table).values(name=name, holder=holder, fence=1, expires_at=now + length))
        return 1
    if found.holder != holder and now < found.expires_at < now + length + CLOCKS_APART:
        return None
    fence: int = found.fence if found.holder == holder and found.expires_at > now else found.fence + 1
    connection.execute(
        update(lease_table).where(lease.name == name).values(holder=holder, fence=fence, expires_at=now + length)
    )
    return fence


def is_held(connection: Connection, name: str, holder: str, fence: int) -> bool:
    """Whether a lease is still the one that was acquired: nobody else has taken it since."""
    lease = lease_table.c
    found = connection.execute(select(lease.holder, lease.fence).where(lease.name == name)).one_or_none()
    return found is not None and (found.holder, found.fence) == (holder, fence)


def release(connection: Connection, name: str, holder: str, now: datetime) -> None:
    """Let go of a lease, so that the next holder need not wait for its end."""
    lease = lease_table.c
    connection.execute(update(lease_table).where(lease.name == name, lease.holder == holder).values(expires_at=now))
