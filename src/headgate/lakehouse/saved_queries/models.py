"""Saved queries."""

from sqlalchemy import Column, ForeignKey, Index, Table, Text

from headgate.kit.columns import METADATA, Id

saved_query_table = Table(
    "saved_queries",
    METADATA,
    Column("id", Id, ForeignKey("resources.id", ondelete="CASCADE"), primary_key=True),
    Column("author_id", Id, ForeignKey("members.id")),
    Column("sql", Text),
    Index("ix_saved_queries_author_id", "author_id"),
)
"""A query saved by its author; nobody else sees it."""
