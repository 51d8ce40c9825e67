"""Layers, tables and volumes, the grants on them, and what names them: references, integrations, saved queries."""

from datetime import datetime

from sqlalchemy import CheckConstraint, ForeignKey, Index, SmallInteger
from sqlalchemy.orm import Mapped, mapped_column

from headgate.kit.models import Base, Id, UtcDateTime, Word, text_type


class Layer(Base):
    """A layer of the lakehouse: raw, trusted, service, or one that an admin made."""

    __tablename__ = "layers"

    id: Mapped[str] = mapped_column(Id, ForeignKey("resources.id", ondelete="CASCADE"), primary_key=True)


class LakeItem(Base):
    """A table or a volume in a layer; the two share names."""

    __tablename__ = "lake_items"
    __table_args__ = (
        CheckConstraint("kind IN ('table', 'volume')", name="kind"),
        Index("ix_lake_items_layer_id", "layer_id"),
    )

    id: Mapped[str] = mapped_column(Id, ForeignKey("resources.id", ondelete="CASCADE"), primary_key=True)
    kind: Mapped[str] = mapped_column(Word)
    layer_id: Mapped[str] = mapped_column(Id, ForeignKey("layers.id"))


class Grant(Base):
    """A level (1 Viewer, 2 Editor, 3 Manager) on a layer, table or volume, for a member or group, until its end."""

    __tablename__ = "grants"
    __table_args__ = (
        CheckConstraint("level BETWEEN 1 AND 3", name="level"),
        Index("uq_grants", "resource_id", "grantee_id", "level", unique=True),
        Index("ix_grants_grantee_id", "grantee_id", "resource_id"),
        Index("ix_grants_expires_at", "expires_at"),
    )

    id: Mapped[str] = mapped_column(Id, primary_key=True)
    resource_id: Mapped[str] = mapped_column(Id, ForeignKey("resources.id", ondelete="CASCADE"))
    grantee_id: Mapped[str] = mapped_column(Id, ForeignKey("principals.id", ondelete="CASCADE"))
    level: Mapped[int] = mapped_column(SmallInteger)
    expires_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    created_by_id: Mapped[str | None] = mapped_column(Id, ForeignKey("members.id"))


class TableRef(Base):
    """A table, volume or layer that a pipeline (as a stream), mart, integration or saved query names.

    One that does not exist has no `item_id` and counts as its layer; one in no layer has neither.
    """

    __tablename__ = "table_refs"
    __table_args__ = (
        CheckConstraint("mode IN ('read', 'write')", name="mode"),
        Index("ix_table_refs_item_id", "item_id"),
        Index("ix_table_refs_layer_id", "layer_id"),
    )

    resource_id: Mapped[str] = mapped_column(Id, ForeignKey("resources.id", ondelete="CASCADE"), primary_key=True)
    mode: Mapped[str] = mapped_column(Word, primary_key=True)
    ref: Mapped[str] = mapped_column(text_type(300), primary_key=True)
    item_id: Mapped[str | None] = mapped_column(Id, ForeignKey("lake_items.id", ondelete="SET NULL"))
    layer_id: Mapped[str | None] = mapped_column(Id, ForeignKey("layers.id", ondelete="SET NULL"))
    enabled: Mapped[bool] = mapped_column(default=True)


class Integration(Base):
    """A consumer's standing connection, such as a BI tool."""

    __tablename__ = "integrations"

    id: Mapped[str] = mapped_column(Id, ForeignKey("resources.id", ondelete="CASCADE"), primary_key=True)


class SavedQuery(Base):
    """A query that its author keeps; nobody else sees it."""

    __tablename__ = "saved_queries"
    __table_args__ = (Index("ix_saved_queries_author_id", "author_id"),)

    id: Mapped[str] = mapped_column(Id, ForeignKey("resources.id", ondelete="CASCADE"), primary_key=True)
    author_id: Mapped[str | None] = mapped_column(Id, ForeignKey("members.id"))
