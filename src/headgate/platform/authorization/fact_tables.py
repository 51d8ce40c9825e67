"""The facts behind decisions: owners, grants, memberships, security roles and contexts.

An import contract in pyproject.toml lists the modules that may read or write these tables.
"""

from sqlalchemy import CheckConstraint, Column, ForeignKey, Index, SmallInteger, Table

from headgate.kit.columns import METADATA, Id, UtcDateTime, Word

owner_table = Table(
    "owners",
    METADATA,
    Column("resource_id", Id, ForeignKey("resources.id", ondelete="CASCADE"), primary_key=True),
    Column("member_id", Id, ForeignKey("members.id"), primary_key=True),
    Column("ownership", Word, primary_key=True),
    CheckConstraint("ownership IN ('owner', 'technical', 'business')", name="ownership"),
    Index("ix_owners_member_id", "member_id"),
)
"""An owner of a storage, destination or report, or a technical or business owner of a data mart."""

former_owner_table = Table(
    "former_owners",
    METADATA,
    Column("resource_id", Id, ForeignKey("resources.id", ondelete="CASCADE"), primary_key=True),
    Column("ownership", Word, primary_key=True),
    Column("member_id", Id, ForeignKey("members.id"), nullable=False),
    Index("ix_former_owners_member_id", "member_id"),
)
"""The sole owner of a resource at the time of their removal. It applies until the resource has an owner again."""

member_security_role_table = Table(
    "member_security_roles",
    METADATA,
    Column("member_id", Id, ForeignKey("members.id"), primary_key=True),
    Column("security_role", Word, primary_key=True),
    CheckConstraint("security_role IN ('tenant_admin', 'data_admin', 'space_creator')", name="security_role"),
)
"""A security role that a member holds in addition to their role."""

member_context_table = Table(
    "member_contexts",
    METADATA,
    Column("member_id", Id, ForeignKey("members.id"), primary_key=True),
    Column("context_id", Id, ForeignKey("contexts.id"), primary_key=True),
    Index("ix_member_contexts_context_id", "context_id"),
)
"""A context assigned to a member of selected scope."""

resource_context_table = Table(
    "resource_contexts",
    METADATA,
    Column("resource_id", Id, ForeignKey("resources.id", ondelete="CASCADE"), primary_key=True),
    Column("context_id", Id, ForeignKey("contexts.id"), primary_key=True),
    Index("ix_resource_contexts_context_id", "context_id"),
)
"""A context to which a storage, data mart or destination belongs."""

group_member_table = Table(
    "group_members",
    METADATA,
    Column("group_id", Id, ForeignKey("groups.id", ondelete="CASCADE"), primary_key=True),
    Column("member_id", Id, ForeignKey("members.id"), primary_key=True),
    Index("ix_group_members_member_id", "member_id", "group_id"),
)
"""A member of a group."""

space_member_table = Table(
    "space_members",
    METADATA,
    Column("space_id", Id, ForeignKey("spaces.id", ondelete="CASCADE"), primary_key=True),
    Column("principal_id", Id, ForeignKey("principals.id", ondelete="CASCADE"), primary_key=True),
    Column("space_role", Word, primary_key=True),
    CheckConstraint(
        "space_role IN ('can_view', 'can_view_data', 'can_consume_data', 'can_manage', 'can_operate', 'can_edit')",
        name="space_role",
    ),
    Index("ix_space_members_principal_id", "principal_id", "space_id"),
)
"""A role that a member or group holds in a space."""

grant_table = Table(
    "grants",
    METADATA,
    Column("id", Id, primary_key=True),
    Column("resource_id", Id, ForeignKey("resources.id", ondelete="CASCADE"), nullable=False),
    Column("grantee_id", Id, ForeignKey("principals.id", ondelete="CASCADE"), nullable=False),
    Column("level", SmallInteger, nullable=False),
    Column("expires_at", UtcDateTime),
    Column("created_at", UtcDateTime, nullable=False),
    Column("created_by_id", Id, ForeignKey("members.id")),
    CheckConstraint("level BETWEEN 1 AND 3", name="level"),
    Index("uq_grants", "resource_id", "grantee_id", "level", unique=True),
    Index("ix_grants_grantee_id", "grantee_id", "resource_id"),
    Index("ix_grants_expires_at", "expires_at"),
)
"""A level (1 Viewer, 2 Editor, 3 Manager) on a layer, table or volume for a member or group, until it expires."""
