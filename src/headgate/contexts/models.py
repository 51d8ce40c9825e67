"""Contexts, and the members and resources they are attached to."""

from datetime import datetime

from sqlalchemy import ForeignKey, Index
from sqlalchemy.orm import Mapped, mapped_column

from headgate.kit.models import Base, Id, Name, NameKey, UtcDateTime


class Context(Base):
    """A label that ties members of selected scope to the resources they may reach by sharing."""

    __tablename__ = "contexts"

    id: Mapped[str] = mapped_column(Id, primary_key=True)
    name: Mapped[str] = mapped_column(Name)
    name_key: Mapped[str] = mapped_column(NameKey, unique=True)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)


class MemberContext(Base):
    """A context in which a member of selected scope works."""

    __tablename__ = "member_contexts"
    __table_args__ = (Index("ix_member_contexts_context_id", "context_id"),)

    member_id: Mapped[str] = mapped_column(Id, ForeignKey("members.id"), primary_key=True)
    context_id: Mapped[str] = mapped_column(Id, ForeignKey("contexts.id"), primary_key=True)


class ResourceContext(Base):
    """A context to which a storage, data mart or destination belongs."""

    __tablename__ = "resource_contexts"
    __table_args__ = (Index("ix_resource_contexts_context_id", "context_id"),)

    resource_id: Mapped[str] = mapped_column(Id, ForeignKey("resources.id", ondelete="CASCADE"), primary_key=True)
    context_id: Mapped[str] = mapped_column(Id, ForeignKey("contexts.id"), primary_key=True)
