"""Groups and who is in them; the group All is a row to which everyone belongs without being listed."""

from sqlalchemy import Column, ForeignKey, Index, Table

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

group_member_table = Table(
    "group_members",
    METADATA,
    Column("group_id", Id, ForeignKey("groups.id", ondelete="CASCADE"), primary_key=True),
    Column("member_id", Id, ForeignKey("members.id"), primary_key=True),
    Index("ix_group_members_member_id", "member_id", "group_id"),
)
"""A member of a group."""
