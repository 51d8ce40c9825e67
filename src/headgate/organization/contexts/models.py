"""Contexts, and the members and resources they are attached to."""

from sqlalchemy import Column, ForeignKey, Index, Table

from headgate.kit.columns import METADATA, Id, Name, NameKey, UtcDateTime

context_table = Table(
    "contexts",
    METADATA,
    Column("id", Id, primary_key=True),
    Column("name", Name, nullable=False),
    Column("name_key", NameKey, unique=True, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
)
"""A label that ties members of selected scope to the resources they may reach by sharing."""

member_context_table = Table(
    "member_contexts",
    METADATA,
    Column("member_id", Id, ForeignKey("members.id"), primary_key=True),
    Column("context_id", Id, ForeignKey("contexts.id"), primary_key=True),
    Index("ix_member_contexts_context_id", "context_id"),
)
"""A context in which a member of selected scope works."""

resource_context_table = Table(
    "resource_contexts",
    METADATA,
    Column("resource_id", Id, ForeignKey("resources.id", ondelete="CASCADE"), primary_key=True),
    Column("context_id", Id, ForeignKey("contexts.id"), primary_key=True),
    Index("ix_resource_contexts_context_id", "context_id"),
)
"""A context to which a storage, data mart or destination belongs."""
