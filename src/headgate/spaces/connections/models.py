"""Connections, and the pipelines that use them."""

from sqlalchemy import Column, ForeignKey, Index, Table

from headgate.kit.columns import METADATA, Id

connection_table = Table(
    "connections",
    METADATA,
    Column("id", Id, ForeignKey("resources.id", ondelete="CASCADE"), primary_key=True),
    Column("space_id", Id, ForeignKey("spaces.id"), nullable=False),
    Column("owner_id", Id, ForeignKey("members.id")),
    Column("gateway_id", Id, ForeignKey("gateways.id")),
    Column("code_allowed_by_id", Id),
    Index("ix_connections_space_id", "space_id"),
    Index("ix_connections_owner_id", "owner_id"),
    Index("ix_connections_gateway_id", "gateway_id"),
)
"""A connection to a source or target; only its owner edits it. `code_allowed_by_id` is the owner who allowed notebook
code to read its secrets; it is valid only while that member owns the connection.
"""

pipeline_connection_table = Table(
    "pipeline_connections",
    METADATA,
    Column("pipeline_id", Id, ForeignKey("pipelines.id", ondelete="CASCADE"), primary_key=True),
    Column("connection_id", Id, ForeignKey("connections.id"), primary_key=True),
    Index("ix_pipeline_connections_connection_id", "connection_id"),
)
"""A connection through which a pipeline reads or writes."""
