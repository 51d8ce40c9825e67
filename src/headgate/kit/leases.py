"""Leases: at most one holder of a name at a time, with a fencing number that only grows."""

from datetime import datetime, timedelta

from sqlalchemy import BigInteger, Connection, insert, select, update
from sqlalchemy.orm import Mapped, mapped_column

from headgate.kit.models import Base, UtcDateTime, Word, text_type


class Lease(Base):
    """Who holds what, and until when."""

    __tablename__ = "leases"

    name: Mapped[str] = mapped_column(Word, primary_key=True)
    holder: Mapped[str] = mapped_column(text_type(80))
    fence: Mapped[int] = mapped_column(BigInteger)
    expires_at: Mapped[datetime] = mapped_column(UtcDateTime)


def acquire(connection: Connection, name: str, holder: str, now: datetime, length: timedelta) -> int | None:
    """Take or keep a lease; its fencing number, or None while someone else holds it. Call it in a write."""
    lease = Lease.__table__.c
    found = connection.execute(
        select(lease.holder, lease.fence, lease.expires_at).where(lease.name == name)
    ).one_or_none()
    if found is None:
        connection.execute(insert(Lease).values(name=name, holder=holder, fence=1, expires_at=now + length))
        return 1
    if found.holder != holder and found.expires_at > now:
        return None
    fence: int = found.fence if found.holder == holder and found.expires_at > now else found.fence + 1
    connection.execute(
        update(Lease).where(lease.name == name).values(holder=holder, fence=fence, expires_at=now + length)
    )
    return fence


def is_held(connection: Connection, name: str, holder: str, fence: int) -> bool:
    """Whether a lease is still the one that was acquired: nobody else has taken it since."""
    lease = Lease.__table__.c
    found = connection.execute(select(lease.holder, lease.fence).where(lease.name == name)).one_or_none()
    return found is not None and (found.holder, found.fence) == (holder, fence)


def release(connection: Connection, name: str, holder: str, now: datetime) -> None:
    """Let go of a lease, so that the next holder need not wait for its end."""
    lease = Lease.__table__.c
    connection.execute(update(Lease).where(lease.name == name, lease.holder == holder).values(expires_at=now))
