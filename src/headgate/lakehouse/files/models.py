"""Files in volumes."""

from sqlalchemy import BigInteger, Column, ForeignKey, Index, Table

from headgate.kit.columns import METADATA, Id, UtcDateTime, text_type

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
"""A file of a volume. Its bytes are stored under its id, so names never become storage paths, and replacing a file
changes one row.

Paths that look alike share a `path_key`, a hash, because the path may exceed the size limit of an index.
"""
