"""The organization, principals (members and groups), and members."""

from sqlalchemy import CheckConstraint, Column, ForeignKey, Index, Integer, Table

from headgate.kit.columns import METADATA, Email, Id, Name, NameKey, UtcDateTime, Word, provenance, text_type

organization_table = Table(
    "organization",
    METADATA,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("name", Name, nullable=False),
    Column("plan", Word, nullable=False),
    Column("invites", Word, nullable=False),
    CheckConstraint("id = 1", name="one_row"),
    CheckConstraint("plan IN ('starter', 'growth', 'custom')", name="plan"),
    CheckConstraint("invites IN ('by-role', 'admins-only')", name="invites"),
)
"""The one organization of this deployment."""

principal_table = Table(
    "principals",
    METADATA,
    Column("id", Id, primary_key=True),
)
"""A principal: a member or group, to whom a grant or a space role can be given."""

member_table = Table(
    "members",
    METADATA,
    Column("id", Id, ForeignKey("principals.id"), primary_key=True),
    Column("name", Name, nullable=False),
    Column("name_key", NameKey, nullable=False),
    Column("role", Word, nullable=False),
    Column("scope", Word, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("removed_at", UtcDateTime),
    Column("email", Email),
    Column("email_key", Email),
    Column("password", text_type(200)),
    *provenance("password_"),
    Column("password_ended_at", UtcDateTime),
    Column("last_seen_at", UtcDateTime),
    CheckConstraint("role IN ('owner', 'admin', 'technical', 'business')", name="role"),
    CheckConstraint("scope IN ('entire', 'selected')", name="scope"),
    Index("uq_members_name_key", "name_key", unique=True),
    Index("uq_members_email_key", "email_key", unique=True),
    Index("ix_members_role", "role"),
)
"""A person. The row of a removed member remains as the creator of their resources, without name key, address and
password. An expired password cannot be used to sign in and must be set again.
"""
