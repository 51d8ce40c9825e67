"""The organization's webhook and its deliveries."""

from sqlalchemy import Column, ForeignKey, Index, Integer, Table, Text

from headgate.kit.columns import METADATA, Id, UtcDateTime, text_type
from headgate.platform.secrets.rotation import register

webhook_table = Table(
    "webhooks",
    METADATA,
    Column("id", Id, primary_key=True),
    Column("url", Text, nullable=False),
    Column("host", text_type(300), nullable=False),
    Column("secret", Text, nullable=False),
    Column("set_by_id", Id, ForeignKey("members.id"), nullable=False),
    Column("set_at", UtcDateTime, nullable=False),
)
"""At most one row. The URL is sealed, because chat URLs are secrets; `secret` is the sealed signing key. For each
delivery, the member who set the webhook must be an admin and see the subject.
"""

register(webhook_table, "url")
register(webhook_table, "secret")

webhook_delivery_table = Table(
    "webhook_deliveries",
    METADATA,
    Column("notice_id", Id, ForeignKey("notices.id", ondelete="CASCADE"), primary_key=True),
    Column("webhook_id", Id, ForeignKey("webhooks.id", ondelete="CASCADE"), primary_key=True),
    Column("created_at", UtcDateTime, nullable=False),
    Column("due_at", UtcDateTime),
    Column("expires_at", UtcDateTime, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("sent_at", UtcDateTime),
    Column("error", text_type(400)),
    Index("ix_webhook_deliveries_due_at", "due_at"),
    Index("ix_webhook_deliveries_webhook_id", "webhook_id", "created_at"),
)
"""A delivery to the webhook; `due_at` is null when done."""
