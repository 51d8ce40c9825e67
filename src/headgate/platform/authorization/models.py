"""The row that every resource has, and the audience index for fast lists."""

from sqlalchemy import Column, ForeignKey, Index, Table

from headgate.kit.columns import METADATA, Id, Name, NameKey, UtcDateTime, Word, text_type

resource_table = Table(
    "resources",
    METADATA,
    Column("id", Id, primary_key=True),
    Column("kind", Word, nullable=False),
    Column("namespace", Word, nullable=False),
    Column("scope_id", Id, nullable=False),
    Column("name", Name, nullable=False),
    Column("name_key", NameKey, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
    Column("created_by_id", Id, ForeignKey("members.id")),
    Index("uq_resources_name", "namespace", "scope_id", "name_key", unique=True),
    Index("ix_resources_name", "namespace", "name_key"),
    Index("ix_resources_created_by_id", "created_by_id"),
)
"""The columns shared by resources of all kinds. `namespace` and `scope_id` define where a name is unique.

If members may not see every resource in a scope, the scope is the resource itself: a conflict would confirm the name of
a hidden one.
"""

audience_table = Table(
    "audience",
    METADATA,
    Column("resource_id", Id, ForeignKey("resources.id", ondelete="CASCADE"), primary_key=True),
    Column("key", text_type(80), primary_key=True),
    Column("name_key", NameKey, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
    Column("creator_key", NameKey, nullable=False),
    Column("expires_at", UtcDateTime),
    Index("ix_audience_name", "key", "name_key", "resource_id", "expires_at"),
    Index("ix_audience_created", "key", "created_at", "resource_id", "expires_at"),
    Index("ix_audience_updated", "key", "updated_at", "resource_id", "expires_at"),
    Index("ix_audience_creator", "key", "creator_key", "resource_id", "expires_at"),
    sqlite_with_rowid=False,
)
"""One way by which a resource is listed: every member who holds `key` sees it until `expires_at`.

Derived from the rule tables (headgate.access.audience). The sort columns are copied here, so that each key is a sorted
stream. Rebuilt by `headgate access reindex`.
"""
