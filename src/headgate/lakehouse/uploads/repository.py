"""Database access to uploads in progress."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, delete, func, insert, select, update

from headgate.lakehouse.uploads.models import upload_table

MOST = 100
"""Maximum number of uploads in progress per member."""

_uploads = upload_table.c


def one(connection: Connection, identifier: str, now: datetime) -> Any:
    """An upload that can be continued, or None."""
    query = select(upload_table).where(_uploads.id == identifier, _uploads.expires_at > now)
    return connection.execute(query).mappings().one_or_none()


def of_member(connection: Connection, volume: str, member: str, now: datetime) -> Sequence[Any]:
    """A member's uploads to a volume, newest first."""
    query = select(upload_table).where(
        _uploads.volume_id == volume, _uploads.created_by_id == member, _uploads.expires_at > now
    )
    return connection.execute(query.order_by(_uploads.id.desc()).limit(MOST)).mappings().all()


def count(connection: Connection, member: str, now: datetime) -> int:
    """The number of a member's uploads in progress."""
    query = select(func.count()).select_from(upload_table)
    mine = query.where(_uploads.created_by_id == member, _uploads.expires_at > now)
    return int(connection.execute(mine).scalar_one())


def add(connection: Connection, row: dict[str, Any]) -> None:
    """Insert an upload."""
    connection.execute(insert(upload_table).values(row))


def advance(connection: Connection, identifier: str, received: int, expires: datetime) -> None:
    """Update the number of durable bytes."""
    values = {"received": received, "expires_at": expires}
    connection.execute(update(upload_table).where(_uploads.id == identifier).values(values))


def remove(connection: Connection, identifier: str) -> None:
    """Delete an upload."""
    connection.execute(delete(upload_table).where(_uploads.id == identifier))


def take_expired(connection: Connection, now: datetime, limit: int) -> list[str]:
    """Delete expired uploads, up to a limit; returns their ids."""
    ids = select(_uploads.id).where(_uploads.expires_at <= now).order_by(_uploads.expires_at).limit(limit)
    results = list(connection.execute(ids).scalars())
    connection.execute(delete(upload_table).where(_uploads.id.in_(results)))
    return results
