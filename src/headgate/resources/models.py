"""The row that every resource has, its owners, and the audience index that makes lists fast."""

from datetime import datetime

from sqlalchemy import CheckConstraint, ForeignKey, Index
from sqlalchemy.orm import Mapped, mapped_column

from headgate.kit.models import Base, Id, Name, NameKey, UtcDateTime, Word, text_type


class Resource(Base):
    """What resources of all kinds share. `namespace` and `scope_id` say within what a name is unique."""

    __tablename__ = "resources"
    __table_args__ = (
        Index("uq_resources_name", "namespace", "scope_id", "name_key", unique=True),
        Index("ix_resources_created_by_id", "created_by_id"),
    )

    id: Mapped[str] = mapped_column(Id, primary_key=True)
    kind: Mapped[str] = mapped_column(Word)
    namespace: Mapped[str] = mapped_column(Word)
    scope_id: Mapped[str] = mapped_column(Id)
    name: Mapped[str] = mapped_column(Name)
    name_key: Mapped[str] = mapped_column(NameKey)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    updated_at: Mapped[datetime] = mapped_column(UtcDateTime)
    created_by_id: Mapped[str | None] = mapped_column(Id, ForeignKey("members.id"))


class Owner(Base):
    """An owner of a storage, destination or report, or a technical or business owner of a data mart."""

    __tablename__ = "owners"
    __table_args__ = (
        CheckConstraint("ownership IN ('owner', 'technical', 'business')", name="ownership"),
        Index("ix_owners_member_id", "member_id"),
    )

    resource_id: Mapped[str] = mapped_column(Id, ForeignKey("resources.id", ondelete="CASCADE"), primary_key=True)
    member_id: Mapped[str] = mapped_column(Id, ForeignKey("members.id"), primary_key=True)
    ownership: Mapped[str] = mapped_column(Word, primary_key=True)


class AudienceEntry(Base):
    """One way by which a resource is listed: every member who holds `key` sees it until `expires_at`.

    Derived from the rule tables (headgate.access.audience); the columns to sort by are copied here so that each
    key is a sorted stream. Rebuilt by `headgate access reindex`.
    """

    __tablename__ = "audience"
    __table_args__ = (
        Index("ix_audience_name", "key", "name_key", "resource_id", "expires_at"),
        Index("ix_audience_created", "key", "created_at", "resource_id"),
        Index("ix_audience_updated", "key", "updated_at", "resource_id"),
        Index("ix_audience_creator", "key", "creator_key", "resource_id"),
        {"sqlite_with_rowid": False},
    )

    resource_id: Mapped[str] = mapped_column(Id, ForeignKey("resources.id", ondelete="CASCADE"), primary_key=True)
    key: Mapped[str] = mapped_column(text_type(80), primary_key=True)
    name_key: Mapped[str] = mapped_column(NameKey)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    updated_at: Mapped[datetime] = mapped_column(UtcDateTime)
    creator_key: Mapped[str] = mapped_column(NameKey)
    expires_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
