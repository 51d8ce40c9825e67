"""Groups. The group All is a row without listed members; everyone belongs to it."""

from sqlalchemy import Column, ForeignKey, Table

from headgate.kit.columns import METADATA, Id, Name, NameKey, UtcDateTime

group_table = Table(
    "groups",
    METADATA,
    Column("id", Id, ForeignKey("principals.id", ondelete="CASCADE"), primary_key=True),
    Column("name", Name, nullable=False),
    Column("name_key", NameKey, unique=True, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
)
"""A named set of members, to which grants and space roles can be given."""
