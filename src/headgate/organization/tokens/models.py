"""API tokens (hashed) and their limits."""

from sqlalchemy import Boolean, Column, ForeignKey, Index, Table

from headgate.kit.columns import METADATA, Id, Name, UtcDateTime, provenance, text_type

token_table = Table(
    "tokens",
    METADATA,
    Column("id", Id, primary_key=True),
    Column("member_id", Id, ForeignKey("members.id"), nullable=False),
    Column("name", Name, nullable=False),
    Column("digest", text_type(64), unique=True, nullable=False),
    Column("hint", text_type(12)),
    Column("read_only", Boolean, default=False, nullable=False),
    Column("listed", Boolean, default=False, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("expires_at", UtcDateTime),
    Column("last_used_at", UtcDateTime),
    Column("revoked_at", UtcDateTime),
    *provenance(),
    Index("ix_tokens_member_id", "member_id"),
)
"""A bearer token: acts with its creator's current rights, limited to what it is narrowed to."""

token_reach_table = Table(
    "token_reach",
    METADATA,
    Column("token_id", Id, ForeignKey("tokens.id", ondelete="CASCADE"), primary_key=True),
    Column("resource_id", Id, ForeignKey("resources.id", ondelete="CASCADE"), primary_key=True),
)
"""A layer, table or volume that a narrowed token reaches."""
