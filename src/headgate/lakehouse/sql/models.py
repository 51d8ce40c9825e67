"""Statements that members run."""

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    Table,
    Text,
)

from headgate.kit.columns import METADATA, Id, UtcDateTime, Word, provenance
from headgate.platform.jobs.models import job_columns

STATES = ("queued", "running", "succeeded", "failed", "cancelling", "cancelled")

statement_table = Table(
    "statements",
    METADATA,
    Column("id", Id, primary_key=True),
    Column("member_id", Id, ForeignKey("members.id"), nullable=False),
    Column("token_id", Id, ForeignKey("tokens.id")),
    Column("purpose", Word, nullable=False),
    Column("sql", Text, nullable=False),
    Column("columns", JSON),
    Column("rows", BigInteger),
    Column("bytes", BigInteger),
    Column("pages", Integer),
    Column("truncated", Boolean),
    Column("max_rows", Integer, nullable=False),
    Column("first_page", LargeBinary),
    Column("results_expire_at", UtcDateTime),
    Column("save", JSON),
    Column("saved_query_id", Id),
    Column("writes", JSON),
    *provenance(),
    *job_columns(),
    CheckConstraint("purpose IN ('statement', 'probe')", name="purpose"),
    CheckConstraint("state IN ('queued', 'running', 'succeeded', 'failed', 'cancelling', 'cancelled')", name="state"),
    Index("ix_statements_member_id", "member_id", "id"),
    Index("ix_statements_state", "state", "id"),
    Index("ix_statements_results_expire_at", "results_expire_at"),
)
"""A job: one SQL statement of a member and its result. The first page of rows is in the row, the others are Arrow files
in the warehouse's results folder. A probe only analyses a query: `save` says what to save afterwards, and
`saved_query_id` what was saved. `writes` are its commits according to the ledger.
"""

statement_read_table = Table(
    "statement_reads",
    METADATA,
    Column("statement_id", Id, ForeignKey("statements.id", ondelete="CASCADE"), primary_key=True),
    Column("table_id", Id, primary_key=True),
)
"""A table that a statement read. Opening its results still requires access to the table."""
