"""Database access to notifications and subscriptions."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, select, tuple_, update

from headgate.access.ownership import ownerships_bound_to_roles
from headgate.kit.paging import Cursor
from headgate.platform.authorization.fact_tables import owner_table
from headgate.platform.authorization.models import resource_table
from headgate.platform.directory.models import member_table
from headgate.platform.notifications.models import notice_table, notification_table, receiver_table

_notices, _told, _receivers, _members = notice_table.c, notification_table.c, receiver_table.c, member_table.c


def told(connection: Connection, member: str, limit: int, before: str | None, *, unread: bool) -> Sequence[Any]:
    """Notices sent to a member, newest first, with the time when each was read."""
    joined = notification_table.join(notice_table, _notices.id == _told.notice_id)
    query = select(notice_table, _told.read_at).select_from(joined).where(_told.member_id == member)
    if before is not None:
        query = query.where(_told.notice_id < before)
    if unread:
        query = query.where(_told.read_at.is_(None))
    return connection.execute(query.order_by(_told.notice_id.desc()).limit(limit)).all()


def mark_read(connection: Connection, member: str, ids: Sequence[str] | None, now: datetime) -> None:
    """Mark some or all notifications of a member as read."""
    change = update(notification_table).where(_told.member_id == member, _told.read_at.is_(None))
    if ids is not None:
        change = change.where(_told.notice_id.in_(ids))
    connection.execute(change.values(read_at=now))


def names(connection: Connection, ids: Iterable[str | None]) -> dict[str, tuple[str, bool]]:
    """Names of members, and whether they are still members."""
    wanted_ids = {identifier for identifier in ids if identifier}
    rows = connection.execute(
        select(_members.id, _members.name, _members.removed_at).where(_members.id.in_(wanted_ids))
    )
    return {row.id: (row.name, row.removed_at is None) for row in rows}


def own_channels(connection: Connection, member: str) -> dict[str, bool]:
    """The channels that a member subscribes to, and whether they include mail."""
    rows = connection.execute(select(_receivers.channel, _receivers.by_mail).where(_receivers.member_id == member))
    return {row.channel: row.by_mail for row in rows}


def receivers(
    connection: Connection, channel: str, limit: int, after: Cursor | None
) -> tuple[Sequence[Any], Cursor | None]:
    """A page of the subscribers of a channel by name, and where the next one starts."""
    joined = receiver_table.join(member_table, _members.id == _receivers.member_id)
    query = select(_members.id, _members.name, _members.name_key, _members.email, _receivers.by_mail)
    query = query.select_from(joined).where(_receivers.channel == channel, _members.removed_at.is_(None))
    if after is not None:
        query = query.where(tuple_(_members.name_key, _members.id) > (after.value, after.id))
    rows = connection.execute(query.order_by(_members.name_key, _members.id).limit(limit + 1)).all()
    last = rows[limit - 1] if len(rows) > limit else None
    return rows[:limit], Cursor(last.name_key, last.id) if last else None


def receiver(connection: Connection, member: str, channel: str) -> bool | None:
    """Whether a member's subscription includes mail; None if they are not subscribed."""
    where = (_receivers.member_id == member, _receivers.channel == channel)
    return connection.execute(select(_receivers.by_mail).where(*where)).scalar_one_or_none()


def full_ownerships(connection: Connection, member: str, limit: int) -> Sequence[Any]:
    """Resources that a member owns with full control: id and kind."""
    owners, resources = owner_table.c, resource_table.c
    sorts = tuple_(resources.kind, owners.ownership).in_(sorted(ownerships_bound_to_roles().items()))
    joined = owner_table.join(resource_table, resources.id == owners.resource_id)
    query = select(resources.id, resources.kind).select_from(joined).where(owners.member_id == member, sorts)
    return connection.execute(query.order_by(resources.kind, resources.name_key, resources.id).limit(limit)).all()
