"""Contexts."""

from sqlalchemy import Column, Table

from headgate.kit.columns import METADATA, Id, Name, NameKey, UtcDateTime

context_table = Table(
    "contexts",
    METADATA,
    Column("id", Id, primary_key=True),
    Column("name", Name, nullable=False),
    Column("name_key", NameKey, unique=True, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
)
"""A label that connects members of selected scope with the resources they may reach by sharing."""
