"""Triggers, their fires, and the sources that event triggers wait for."""

from sqlalchemy import JSON, Boolean, CheckConstraint, Column, ForeignKey, Index, Integer, Table, Text

from headgate.kit.columns import METADATA, Id, UtcDateTime, Word

trigger_table = Table(
    "triggers",
    METADATA,
    Column("id", Id, ForeignKey("resources.id", ondelete="CASCADE"), primary_key=True),
    Column("kind", Word, nullable=False),
    Column("parent_id", Id, ForeignKey("resources.id", ondelete="CASCADE"), nullable=False),
    Column("author_id", Id, ForeignKey("members.id")),
    Column("sort", Word),
    Column("spec", JSON),
    Column("enabled", Boolean, nullable=False, server_default="1"),
    Column("paused_because", Text),
    Column("next_at", UtcDateTime),
    Column("saved_at", UtcDateTime),
    CheckConstraint("kind IN ('data_mart_trigger', 'report_trigger', 'pipeline_trigger')", name="kind"),
    Index("ix_triggers_parent_id", "parent_id"),
    Index("ix_triggers_author_id", "author_id"),
    Index("ix_triggers_next_at", "next_at"),
)
"""A trigger of its parent pipeline. `author_id` is the member who last saved it. `sort` is cron or event, `spec` holds
the condition. `next_at` is the next fire time, empty while there is none.
"""

trigger_fire_table = Table(
    "trigger_fires",
    METADATA,
    Column("trigger_id", Id, ForeignKey("triggers.id", ondelete="CASCADE"), primary_key=True),
    Column("due_at", UtcDateTime, primary_key=True),
    Column("at", UtcDateTime, nullable=False),
    Column("run_id", Id),
)
"""A fire: one row per trigger and due time, so that no fire happens twice."""

trigger_source_table = Table(
    "trigger_sources",
    METADATA,
    Column("trigger_id", Id, ForeignKey("triggers.id", ondelete="CASCADE"), primary_key=True),
    Column("source_id", Id, primary_key=True),
    Column("version", Integer),
    Column("run_id", Id),
    Column("depth", Integer),
    Index("ix_trigger_sources_source_id", "source_id"),
)
"""A pipeline or table that an event trigger waits for, with the event since its last fire. For a pipeline: `run_id` is
the successful run, and `depth` the length of the trigger chain. For a table: `version` is the last version seen.
"""
