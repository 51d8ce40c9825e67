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
"""The permanent connection of a consumer, such as a BI tool, with its current token: read-only, for the listed
tables.
"""

integration_token_table = Table(
    "integration_tokens",
    METADATA,
    Column("token_id", Id, primary_key=True),
    Column("integration_id", Id, ForeignKey("integrations.id", ondelete="CASCADE"), nullable=False),
    Index("ix_integration_tokens_integration_id", "integration_id"),
)
"""Current and former tokens of an integration; reads by any of them count as its reads."""
