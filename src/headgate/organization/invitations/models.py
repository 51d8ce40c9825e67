"""Invitations."""

from sqlalchemy import CheckConstraint, Column, ForeignKey, Index, Table

from headgate.kit.columns import METADATA, Email, Id, UtcDateTime, Word, provenance, text_type

invitation_table = Table(
    "invitations",
    METADATA,
    Column("id", Id, primary_key=True),
    Column("email", Email, nullable=False),
    Column("email_key", Email, nullable=False),
    Column("role", Word, nullable=False),
    Column("scope", Word, nullable=False),
    Column("digest", text_type(64), unique=True, nullable=False),
    Column("invited_by_id", Id, ForeignKey("members.id")),
    Column("created_at", UtcDateTime, nullable=False),
    Column("expires_at", UtcDateTime, nullable=False),
    Column("accepted_at", UtcDateTime),
    Column("revoked_at", UtcDateTime),
    Column("member_id", Id, ForeignKey("members.id")),
    *provenance(),
    CheckConstraint("role IN ('owner', 'admin', 'technical', 'business')", name="role"),
    CheckConstraint("scope IN ('entire', 'selected')", name="scope"),
    Index("ix_invitations_email_key", "email_key"),
    Index("ix_invitations_invited_by_id", "invited_by_id"),
)
"""A pending membership in the organization. The first owner's invitation has no inviter, because the operator creates
it.
"""

invitation_context_table = Table(
    "invitation_contexts",
    METADATA,
    Column("invitation_id", Id, ForeignKey("invitations.id", ondelete="CASCADE"), primary_key=True),
    Column("context_id", Id, ForeignKey("contexts.id"), primary_key=True),
    Index("ix_invitation_contexts_context_id", "context_id"),
)
"""A context assigned to an invited member of selected scope."""
