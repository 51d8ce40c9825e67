"""Pipelines; one with a data project is a data task."""

from sqlalchemy import CheckConstraint, ForeignKey, Index
from sqlalchemy.orm import Mapped, mapped_column

from headgate.kit.models import Base, Id, Word


class Pipeline(Base):
    """A source, query, notebook, history or delivery; its streams are its table references."""

    __tablename__ = "pipelines"
    __table_args__ = (
        CheckConstraint(
            "pipeline_kind IN ('source', 'query', 'notebook', 'history', 'delivery')", name="pipeline_kind"
        ),
        Index("ix_pipelines_project_id", "project_id"),
        Index("ix_pipelines_output_layer_id", "output_layer_id"),
        Index("ix_pipelines_destination_id", "destination_id"),
        Index("ix_pipelines_acts_for_id", "acts_for_id"),
    )

    id: Mapped[str] = mapped_column(Id, ForeignKey("resources.id", ondelete="CASCADE"), primary_key=True)
    pipeline_kind: Mapped[str] = mapped_column(Word)
    project_id: Mapped[str | None] = mapped_column(Id, ForeignKey("projects.id"))
    output_layer_id: Mapped[str | None] = mapped_column(Id, ForeignKey("layers.id"))
    destination_id: Mapped[str | None] = mapped_column(Id, ForeignKey("destinations.id"))
    acts_for_id: Mapped[str | None] = mapped_column(Id, ForeignKey("members.id"))
    owner_id: Mapped[str | None] = mapped_column(Id, ForeignKey("members.id"))


class PipelineConnection(Base):
    """A connection through which a pipeline reads or writes."""

    __tablename__ = "pipeline_connections"
    __table_args__ = (Index("ix_pipeline_connections_connection_id", "connection_id"),)

    pipeline_id: Mapped[str] = mapped_column(Id, ForeignKey("pipelines.id", ondelete="CASCADE"), primary_key=True)
    connection_id: Mapped[str] = mapped_column(Id, ForeignKey("connections.id"), primary_key=True)
