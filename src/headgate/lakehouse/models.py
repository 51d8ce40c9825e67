"""Layers, tables and volumes, their descriptions, and references to them."""

from sqlalchemy import (
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
"""A layer of the lakehouse: raw, trusted, service, or one created by an admin."""

lake_item_table = Table(
    "lake_items",
    METADATA,
    Column("id", Id, ForeignKey("resources.id", ondelete="CASCADE"), primary_key=True),
    Column("kind", Word, nullable=False),
    Column("layer_id", Id, ForeignKey("layers.id"), nullable=False),
    CheckConstraint("kind IN ('table', 'volume')", name="kind"),
    Index("ix_lake_items_layer_id", "layer_id"),
)
"""A table or volume in a layer; both share one namespace."""

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
"""A table, volume or layer referenced by a pipeline (as a stream), mart, integration or saved query.

A missing item has no `item_id` and counts as its layer; one without a layer has neither.
"""

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
