"""Database tables of pipelines. A pipeline with a data project is a data task."""

from sqlalchemy import JSON, Boolean, CheckConstraint, Column, ForeignKey, Index, Integer, Table, Text

from headgate.kit.columns import METADATA, Id, UtcDateTime, Word

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
"""A source, query, notebook, history or delivery. Its table references are its inputs and outputs."""

pipeline_definition_table = Table(
    "pipeline_definitions",
    METADATA,
    Column("pipeline_id", Id, ForeignKey("pipelines.id", ondelete="CASCADE"), primary_key=True),
    Column("definition", JSON, nullable=False),
    Column("version", Integer, nullable=False),
    Column("description", Text),
    Column("unresolved", Text),
    Column("active", Boolean, nullable=False),
    Column("inactive_because", Text),
    Column("deactivate_after", Integer),
    Column("failures", Integer, nullable=False),
    Column("told_causes", JSON(none_as_null=True)),
    Column("saved_at", UtcDateTime, nullable=False),
    Column("saved_by_id", Id, ForeignKey("members.id")),
    Column("place_versions", JSON, nullable=False),
    Column("origins", JSON),
)
"""The definition of a pipeline. `unresolved` says why its inputs are not known yet; the pipeline cannot start until
they are. `failures` counts consecutive failed runs. `told_causes` are the failure causes notified since the last
success. `place_versions` are the endpoint versions of its connections and destination at the last confirmation.
`origins` is the column lineage of its outputs.
"""
