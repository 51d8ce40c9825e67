"""Subscriptions, notices and notifications."""

from sqlalchemy import JSON, Boolean, Column, ForeignKey, Index, Table

from headgate.kit.columns import METADATA, Id, UtcDateTime, Word

receiver_table = Table(
    "notification_receivers",
    METADATA,
    Column("member_id", Id, ForeignKey("members.id"), primary_key=True),
    Column("channel", Word, primary_key=True),
    Column("by_mail", Boolean, nullable=False),
    Index("ix_notification_receivers_channel", "channel"),
)
"""A member's subscription to a channel, and whether it includes mail."""

notice_table = Table(
    "notices",
    METADATA,
    Column("id", Id, primary_key=True),
    Column("channel", Word, nullable=False),
    Column("event", Word, nullable=False),
    Column("actor_id", Id, ForeignKey("members.id")),
    Column("member_id", Id, ForeignKey("members.id")),
    Column("kind", Word),
    Column("resource_id", Id),
    Column("needs", Word),
    Column("recipients", JSON),
    Column("facts", JSON, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("told_at", UtcDateTime),
    Index("ix_notices_told_at", "told_at", "created_at"),
)
"""A notice for `recipients`, or for the subscribers of the channel, if they may see its subject when it is sent."""

notification_table = Table(
    "notifications",
    METADATA,
    Column("notice_id", Id, ForeignKey("notices.id", ondelete="CASCADE"), primary_key=True),
    Column("member_id", Id, ForeignKey("members.id"), primary_key=True),
    Column("created_at", UtcDateTime, nullable=False),
    Column("read_at", UtcDateTime),
    Index("ix_notifications_member_id", "member_id", "notice_id"),
)
"""A notice sent to a member."""
