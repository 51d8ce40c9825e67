"""Maintenance passes and their results per table."""

from sqlalchemy import BigInteger, Boolean, CheckConstraint, Column, ForeignKey, Index, Integer, Table, Text

from headgate.kit.columns import METADATA, Id, UtcDateTime, Word, text_type
from headgate.platform.jobs.models import job_columns

maintenance_pass_table = Table(
    "maintenance_passes",
    METADATA,
    Column("id", Id, primary_key=True),
    Column("state", Word, nullable=False),
    Column("dry_run", Boolean, nullable=False),
    Column("table_id", Id),
    Column("asked_by_id", Id, ForeignKey("members.id")),
    Column("due_at", UtcDateTime),
    Column("asked_at", UtcDateTime, nullable=False),
    Column("started_at", UtcDateTime),
    Column("ended_at", UtcDateTime),
    Column("after_id", Id),
    Column("tables", Integer, nullable=False),
    Column("looked_at", Integer, nullable=False),
    Column("error", Text),
    CheckConstraint("state IN ('queued', 'running', 'compacting', 'succeeded', 'failed')", name="state"),
    Index("uq_maintenance_passes_due_at", "due_at", unique=True),
    Index("ix_maintenance_passes_state", "state", "id"),
)
"""A pass over all tables or one, scheduled or requested. Tables are processed in the order of their ids. `after_id` is
the last processed one, from which the pass continues after a crash.
"""

maintenance_table_table = Table(
    "maintenance_tables",
    METADATA,
    Column("pass_id", Id, ForeignKey("maintenance_passes.id", ondelete="CASCADE"), primary_key=True),
    Column("table_id", Id, primary_key=True),
    Column("outcome", Word, nullable=False),
    Column("note", Text),
    Column("snapshots", Integer, nullable=False),
    Column("files", Integer, nullable=False),
    Column("bytes", BigInteger, nullable=False),
    Column("small_files", Integer),
    Column("planned", Boolean, nullable=False),
    CheckConstraint("outcome IN ('done', 'skipped', 'failed')", name="outcome"),
)
"""Results of a pass for a table: expired snapshots, removed files and bytes. A table without changes has no row.
`planned` means that a dry run would compact the table.
"""

table_rewrite_table = Table(
    "table_rewrites",
    METADATA,
    Column("id", Id, primary_key=True),
    Column("pass_id", Id, ForeignKey("maintenance_passes.id", ondelete="CASCADE"), nullable=False),
    Column("table_id", Id, nullable=False),
    Column("digest", text_type(64)),
    Column("files_before", Integer),
    Column("files_after", Integer),
    *job_columns(),
    Index("uq_table_rewrites_digest", "digest", unique=True),
    Index("ix_table_rewrites_pass_id", "pass_id", "table_id"),
    Index("ix_table_rewrites_state", "state", "id"),
)
"""A job: a worker compacts the small files of a table. `digest` is the hash of its token while it runs."""
