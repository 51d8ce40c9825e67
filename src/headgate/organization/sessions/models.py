"""Sessions, one-time links, and failed attempts."""

from sqlalchemy import CheckConstraint, Column, ForeignKey, Index, Integer, Table

from headgate.kit.columns import METADATA, Id, Name, UtcDateTime, Word, provenance, text_type

session_table = Table(
    "sessions",
    METADATA,
    Column("id", Id, primary_key=True),
    Column("member_id", Id, ForeignKey("members.id"), nullable=False),
    Column("digest", text_type(64), unique=True, nullable=False),
    Column("method", Word, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("last_seen_at", UtcDateTime, nullable=False),
    Column("expires_at", UtcDateTime, nullable=False),
    Column("ended_at", UtcDateTime),
    Column("agent", Name, nullable=False),
    Column("address", text_type(64), nullable=False),
    *provenance(),
    CheckConstraint("method IN ('password', 'link', 'invitation')", name="method"),
    Index("ix_sessions_member_id", "member_id"),
    Index("ix_sessions_expires_at", "expires_at"),
)
"""A signed-in browser. The session ends after inactivity, at its expiry, or when it is revoked."""

link_table = Table(
    "links",
    METADATA,
    Column("id", Id, primary_key=True),
    Column("member_id", Id, ForeignKey("members.id"), nullable=False),
    Column("purpose", Word, nullable=False),
    Column("digest", text_type(64), unique=True, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("expires_at", UtcDateTime, nullable=False),
    Column("used_at", UtcDateTime),
    Column("created_by_id", Id, ForeignKey("members.id")),
    *provenance(),
    CheckConstraint("purpose IN ('sign_in', 'password')", name="purpose"),
    Index("ix_links_member_id", "member_id"),
    Index("ix_links_expires_at", "expires_at"),
)
"""A one-time link to sign in or choose a password. Without a creator, the member requested it."""

failure_table = Table(
    "sign_in_failures",
    METADATA,
    Column("key", text_type(80), primary_key=True),
    Column("since", UtcDateTime, nullable=False),
    Column("count", Integer, nullable=False),
    Index("ix_sign_in_failures_since", "since"),
)
"""Recent failed attempts for an account, a browser or an address."""
