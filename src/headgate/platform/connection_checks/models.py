"""Connection checks and their results."""

from sqlalchemy import JSON, CheckConstraint, Column, ForeignKey, Index, Integer, Table, Text

from headgate.kit.columns import METADATA, Id, UtcDateTime, Word
from headgate.platform.jobs.models import job_columns
from headgate.platform.secrets.rotation import register

connection_check_table = Table(
    "connection_checks",
    METADATA,
    Column("id", Id, primary_key=True),
    Column("member_id", Id, ForeignKey("members.id"), nullable=False),
    Column("place_id", Id, ForeignKey("places.id", ondelete="CASCADE"), nullable=False),
    Column("place_version", Integer, nullable=False),
    Column("operation", Word, nullable=False),
    Column("question", JSON, nullable=False),
    Column("place", JSON(none_as_null=True)),
    Column("sealed", Text),
    Column("result", JSON),
    Column("expires_at", UtcDateTime, nullable=False),
    *job_columns(),
    CheckConstraint("operation IN ('test', 'discover')", name="operation"),
    CheckConstraint("state IN ('queued', 'running', 'cancelling', 'succeeded', 'failed', 'cancelled')", name="state"),
    Index("ix_connection_checks_member_id", "member_id", "id"),
    Index("ix_connection_checks_place_id", "place_id"),
    Index("ix_connection_checks_state", "state", "id"),
    Index("ix_connection_checks_expires_at", "expires_at"),
)
"""A connection check by a member, for the endpoint version at that time; deleted when it expires. `place` is an unsaved
configuration with its kind, and `sealed` holds its unsaved secrets until the check ends.
"""

register(connection_check_table, "sealed")
