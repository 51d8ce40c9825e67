"""Triggers and runs of data marts, reports and pipelines."""

from sqlalchemy import CheckConstraint, Column, ForeignKey, Index, Integer, Table

from headgate.kit.models import METADATA, Id, Word

trigger_table = Table(
    "triggers",
    METADATA,
    Column("id", Id, ForeignKey("resources.id", ondelete="CASCADE"), primary_key=True),
    Column("kind", Word, nullable=False),
    Column("parent_id", Id, ForeignKey("resources.id", ondelete="CASCADE"), nullable=False),
    Column("author_id", Id, ForeignKey("members.id")),
    CheckConstraint("kind IN ('data_mart_trigger', 'report_trigger', 'pipeline_trigger')", name="kind"),
    Index("ix_triggers_parent_id", "parent_id"),
    Index("ix_triggers_author_id", "author_id"),
)
"""What starts its parent; `author_id` is who last saved it."""

run_table = Table(
    "runs",
    METADATA,
    Column("id", Id, ForeignKey("resources.id", ondelete="CASCADE"), primary_key=True),
    Column("parent_id", Id, ForeignKey("resources.id", ondelete="CASCADE"), nullable=False),
    Column("state", Word, nullable=False, server_default="succeeded"),
    Column("fence", Integer, nullable=False, server_default="0"),
    Index("ix_runs_parent_id", "parent_id"),
)
"""One execution of a data mart, report or pipeline. Only while it is running, and only with this fencing number, do
commits for it count."""
