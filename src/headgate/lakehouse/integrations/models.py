"""Integrations and their tokens."""

from sqlalchemy import Column, ForeignKey, Index, Table, Text

from headgate.kit.columns import METADATA, Id

integration_table = Table(
    "integrations",
    METADATA,
    Column("id", Id, ForeignKey("resources.id", ondelete="CASCADE"), primary_key=True),
    Column("description", Text),
    Column("token_id", Id),
)
"""A consumer's standing connection, such as a BI tool, and the token that it has now: read-only, for what it lists."""

integration_token_table = Table(
    "integration_tokens",
    METADATA,
    Column("token_id", Id, primary_key=True),
    Column("integration_id", Id, ForeignKey("integrations.id", ondelete="CASCADE"), nullable=False),
    Index("ix_integration_tokens_integration_id", "integration_id"),
)
"""The tokens that an integration has or had: what was read by each was read by it."""
