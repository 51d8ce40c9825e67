"""Layers, tables and volumes, and what names them: references, integrations, saved queries."""

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    Integer,
    Table,
    Text,
)

from headgate.kit.columns import METADATA, Id, Name, UtcDateTime, Word, text_type

layer_table = Table(
    "layers",
    METADATA,
    Column("id", Id, ForeignKey("resources.id", ondelete="CASCADE"), primary_key=True),
)
"""A layer of the lakehouse: raw, trusted, service, or one that an admin made."""

lake_item_table = Table(
    "lake_items",
    METADATA,
    Column("id", Id, ForeignKey("resources.id", ondelete="CASCADE"), primary_key=True),
    Column("kind", Word, nullable=False),
    Column("layer_id", Id, ForeignKey("layers.id"), nullable=False),
    CheckConstraint("kind IN ('table', 'volume')", name="kind"),
    Index("ix_lake_items_layer_id", "layer_id"),
)
"""A table or a volume in a layer; the two share names."""

table_ref_table = Table(
    "table_refs",
    METADATA,
    Column("resource_id", Id, ForeignKey("resources.id", ondelete="CASCADE"), primary_key=True),
    Column("mode", Word, primary_key=True),
    Column("ref", text_type(300), primary_key=True),
    Column("item_id", Id, ForeignKey("lake_items.id", ondelete="SET NULL")),
    Column("layer_id", Id, ForeignKey("layers.id", ondelete="SET NULL")),
    Column("enabled", Boolean, default=True, nullable=False),
    CheckConstraint("mode IN ('read', 'write')", name="mode"),
    Index("ix_table_refs_item_id", "item_id"),
    Index("ix_table_refs_layer_id", "layer_id"),
)
"""A table, volume or layer that a pipeline (as a stream), mart, integration or saved query names.

One that does not exist has no `item_id` and counts as its layer; one in no layer has neither."""

integration_table = Table(
    "integrations",
    METADATA,
    Column("id", Id, ForeignKey("resources.id", ondelete="CASCADE"), primary_key=True),
    Column("description", Text),
    Column("token_id", Id),
)
"""A consumer's standing connection, such as a BI tool, and the token that it has now: read-only, for what it lists."""

integration_token_table = Table(
    "integration_tokens",
    METADATA,
    Column("token_id", Id, primary_key=True),
    Column("integration_id", Id, ForeignKey("integrations.id", ondelete="CASCADE"), nullable=False),
    Index("ix_integration_tokens_integration_id", "integration_id"),
)
"""The tokens that an integration has or had: what was read by each was read by it."""

saved_query_table = Table(
    "saved_queries",
    METADATA,
    Column("id", Id, ForeignKey("resources.id", ondelete="CASCADE"), primary_key=True),
    Column("author_id", Id, ForeignKey("members.id")),
    Column("sql", Text),
    Index("ix_saved_queries_author_id", "author_id"),
)
"""A query that its author keeps; nobody else sees it."""

lake_text_table = Table(
    "lake_texts",
    METADATA,
    Column("resource_id", Id, ForeignKey("resources.id", ondelete="CASCADE"), primary_key=True),
    Column("field_id", Integer, primary_key=True, autoincrement=False),
    Column("title", Name),
    Column("description", Text),
    Column("updated_at", UtcDateTime, nullable=False),
    Column("updated_by_id", Id, ForeignKey("members.id")),
)
"""The title and description of a layer, table or volume (field 0), or of a table's field by its Iceberg id."""

deleted_item_table = Table(
    "deleted_items",
    METADATA,
    Column("id", Id, primary_key=True),
    Column("kind", Word, nullable=False),
    Column("layer_id", Id, nullable=False),
    Column("name", Name, nullable=False),
    Column("kept", JSON, nullable=False),
    Column("deleted_at", UtcDateTime, nullable=False),
    Column("deleted_by_id", Id, ForeignKey("members.id")),
    Column("purge_at", UtcDateTime, nullable=False),
    CheckConstraint("kind IN ('layer', 'table', 'volume')", name="kind"),
    Index("ix_deleted_items_layer_id", "layer_id"),
    Index("ix_deleted_items_purge_at", "purge_at"),
)
"""A layer, table or volume that was deleted and can be restored until `purge_at`.

Its rows are gone, so that nothing sees it; `kept` holds them: the resource, pointer, grants, texts, files, and what
named it. A layer's own id stands in its `layer_id`."""

volume_file_table = Table(
    "volume_files",
    METADATA,
    Column("id", Id, primary_key=True),
    Column("volume_id", Id, ForeignKey("lake_items.id", ondelete="CASCADE"), nullable=False),
    Column("path", text_type(1000), nullable=False),
    Column("path_key", text_type(64), nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("sha256", text_type(64), nullable=False),
    Column("media_type", text_type(200), nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("created_by_id", Id, ForeignKey("members.id")),
    Index("uq_volume_files", "volume_id", "path_key", unique=True),
    Index("ix_volume_files_path", "volume_id", "path"),
)
"""A file of a volume. Its bytes lie under its id, so that no name ever becomes a path, and replacing one is one row.

Paths that look alike share a `path_key`: a sum, since what it sums may be longer than an index takes."""

upload_table = Table(
    "uploads",
    METADATA,
    Column("id", Id, primary_key=True),
    Column("volume_id", Id, ForeignKey("lake_items.id", ondelete="CASCADE"), nullable=False),
    Column("path", text_type(1000), nullable=False),
    Column("media_type", text_type(200), nullable=False),
    Column("overwrite", Boolean, nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("received", BigInteger, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("expires_at", UtcDateTime, nullable=False),
    Column("created_by_id", Id, ForeignKey("members.id"), nullable=False),
    Index("ix_uploads_volume_id", "volume_id"),
    Index("ix_uploads_expires_at", "expires_at"),
)
"""A resumable upload under way; `received` bytes of it are safe."""
