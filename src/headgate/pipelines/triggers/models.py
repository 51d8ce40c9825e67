"""What triggers wait for. The triggers themselves, and their fires, stand beside the runs."""

from sqlalchemy import Column, ForeignKey, Index, Integer, Table

from headgate.kit.columns import METADATA, Id

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
"""A pipeline or table that an event trigger waits for. Since its last fire: of a pipeline, `run_id` is a run that
succeeded, and `depth` how many pipelines had started one another by then; of a table, `version` is the last seen."""
