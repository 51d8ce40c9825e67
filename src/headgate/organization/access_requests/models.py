"""Database table of access requests."""

from sqlalchemy import JSON, CheckConstraint, Column, ForeignKey, Index, Table, Text

from headgate.kit.columns import METADATA, Id, UtcDateTime, Word

request_table = Table(
    "access_requests",
    METADATA,
    Column("id", Id, primary_key=True),
    Column("member_id", Id, ForeignKey("members.id"), nullable=False),
    Column("action", Word, nullable=False),
    Column("kind", Word, nullable=False),
    Column("resource_id", Id, nullable=False),
    Column("reason", Text, nullable=False),
    Column("state", Word, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("answered_at", UtcDateTime),
    Column("answered_by_id", Id, ForeignKey("members.id")),
    Column("comment", Text),
    Column("change", JSON),
    CheckConstraint("state IN ('open', 'approved', 'declined', 'withdrawn')", name="state"),
    Index("ix_access_requests_member_id", "member_id"),
    Index("ix_access_requests_resource_id", "resource_id", "state"),
)
"""A member's request for an action on a visible resource, and its answer; an approval is an ordinary access change."""
