"""Resumable uploads."""

from sqlalchemy import BigInteger, Boolean, Column, ForeignKey, Index, Table

from headgate.kit.columns import METADATA, Id, UtcDateTime, text_type

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
"""A resumable upload in progress; `received` bytes are durable."""
