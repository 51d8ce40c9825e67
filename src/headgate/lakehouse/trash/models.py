"""Deleted layers, tables and volumes."""

from sqlalchemy import JSON, CheckConstraint, Column, ForeignKey, Index, Table

from headgate.kit.columns import METADATA, Id, Name, UtcDateTime, Word

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
"""A deleted layer, table or volume that can be restored until `purge_at`.

Its rows are deleted, so it is invisible. `kept` holds them: the resource, pointer, grants, texts, files and references.
For a layer, `layer_id` is its own id.
"""
