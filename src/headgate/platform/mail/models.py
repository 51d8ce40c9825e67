"""Database table of queued and sent mail."""

from sqlalchemy import Column, ForeignKey, Index, Integer, Table, Text

from headgate.kit.columns import METADATA, Email, Id, Name, UtcDateTime, Word, text_type
from headgate.platform.secrets.rotation import register

mail_table = Table(
    "mails",
    METADATA,
    Column("id", Id, primary_key=True),
    Column("purpose", Word, nullable=False),
    Column("member_id", Id, ForeignKey("members.id")),
    Column("recipient", Email, nullable=False),
    Column("subject", Name, nullable=False),
    Column("body", Text),
    Column("created_at", UtcDateTime, nullable=False),
    Column("expires_at", UtcDateTime, nullable=False),
    Column("due_at", UtcDateTime),
    Column("attempts", Integer, nullable=False),
    Column("sent_at", UtcDateTime),
    Column("error", text_type(400)),
    Index("ix_mails_due_at", "due_at"),
)
"""A mail. Its body is sealed, because it may contain a link, and deleted after sending; `due_at` is null when done."""

register(mail_table, "body")
