"""Subscriptions to channels, and new notices."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, delete, insert

from headgate.kit.ids import new_id
from headgate.platform.notifications.models import notice_table, receiver_table

CHANNELS = {
    "runs": "Failed or blocked runs, and pipelines that were deactivated because of them",
    "access": "Access requests that you can answer, and answers to yours",
    "members": "Members who joined, left or changed their role",
}
"""The channels and their subjects."""


def subscribe(connection: Connection, member: str) -> None:
    """Subscribe a member to every channel, including mail."""
    rows = [{"member_id": member, "channel": channel, "by_mail": True} for channel in CHANNELS]
    connection.execute(insert(receiver_table), rows)


def set_receiver(connection: Connection, member: str, channel: str, *, receives: bool, by_mail: bool) -> None:
    """Change a member's subscription to a channel."""
    table = receiver_table.c
    connection.execute(delete(receiver_table).where(table.member_id == member, table.channel == channel))
    if receives:
        connection.execute(insert(receiver_table).values(member_id=member, channel=channel, by_mail=by_mail))


@dataclass(frozen=True, slots=True)
class Notice:
    """A notice for `recipients`, or for the subscribers of the channel.

    If it is about a resource, it is sent only to members who then have the action `needs` on it; by default its listing
    action.
    """

    channel: str
    event: str
    actor: str | None = None
    member: str | None = None
    kind: str | None = None
    resource: str | None = None
    needs: str | None = None
    recipients: tuple[str, ...] | None = None
    facts: dict[str, Any] = field(default_factory=dict)


def notify(connection: Connection, notice: Notice, now: datetime) -> None:
    """Queue a notice in this transaction."""
    connection.execute(
        insert(notice_table).values(
            id=new_id("notice"),
            channel=notice.channel,
            event=notice.event,
            actor_id=notice.actor,
            member_id=notice.member,
            kind=notice.kind,
            resource_id=notice.resource,
            needs=notice.needs,
            recipients=None if notice.recipients is None else list(notice.recipients),
            facts=notice.facts,
            created_at=now,
        )
    )
