"""Triggers and runs of data marts, reports and pipelines."""

from sqlalchemy import CheckConstraint, ForeignKey, Index
from sqlalchemy.orm import Mapped, mapped_column

from headgate.kit.models import Base, Id, Word


class Trigger(Base):
    """What starts its parent; `author_id` is who last saved it."""

    __tablename__ = "triggers"
    __table_args__ = (
        CheckConstraint("kind IN ('data_mart_trigger', 'report_trigger', 'pipeline_trigger')", name="kind"),
        Index("ix_triggers_parent_id", "parent_id"),
        Index("ix_triggers_author_id", "author_id"),
    )

    id: Mapped[str] = mapped_column(Id, ForeignKey("resources.id", ondelete="CASCADE"), primary_key=True)
    kind: Mapped[str] = mapped_column(Word)
    parent_id: Mapped[str] = mapped_column(Id, ForeignKey("resources.id", ondelete="CASCADE"))
    author_id: Mapped[str | None] = mapped_column(Id, ForeignKey("members.id"))


class Run(Base):
    """One execution of a data mart, report or pipeline."""

    __tablename__ = "runs"
    __table_args__ = (Index("ix_runs_parent_id", "parent_id"),)

    id: Mapped[str] = mapped_column(Id, ForeignKey("resources.id", ondelete="CASCADE"), primary_key=True)
    parent_id: Mapped[str] = mapped_column(Id, ForeignKey("resources.id", ondelete="CASCADE"))
