"""Pipelines; one with a data project is a data task."""

from sqlalchemy import CheckConstraint, Column, ForeignKey, Index, Table

from headgate.kit.models import METADATA, Id, Word

pipeline_table = Table(
    "pipelines",
    METADATA,
    Column("id", Id, ForeignKey("resources.id", ondelete="CASCADE"), primary_key=True),
    Column("pipeline_kind", Word, nullable=False),
    Column("project_id", Id, ForeignKey("projects.id")),
    Column("output_layer_id", Id, ForeignKey("layers.id")),
    Column("destination_id", Id, ForeignKey("destinations.id")),
    Column("acts_for_id", Id, ForeignKey("members.id")),
    Column("owner_id", Id, ForeignKey("members.id")),
    CheckConstraint("pipeline_kind IN ('source', 'query', 'notebook', 'history', 'delivery')", name="pipeline_kind"),
    Index("ix_pipelines_project_id", "project_id"),
    Index("ix_pipelines_output_layer_id", "output_layer_id"),
    Index("ix_pipelines_destination_id", "destination_id"),
    Index("ix_pipelines_acts_for_id", "acts_for_id"),
)
"""A source, query, notebook, history or delivery; its streams are its table references."""

pipeline_connection_table = Table(
    "pipeline_connections",
    METADATA,
    Column("pipeline_id", Id, ForeignKey("pipelines.id", ondelete="CASCADE"), primary_key=True),
    Column("connection_id", Id, ForeignKey("connections.id"), primary_key=True),
    Index("ix_pipeline_connections_connection_id", "connection_id"),
)
"""A connection through which a pipeline reads or writes."""
