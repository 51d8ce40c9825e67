"""Data spaces, and the projects, connections and gateways in them."""

from sqlalchemy import Boolean, Column, ForeignKey, Index, Table

from headgate.kit.columns import METADATA, Id

space_table = Table(
    "spaces",
    METADATA,
    Column("id", Id, ForeignKey("resources.id", ondelete="CASCADE"), primary_key=True),
    Column("owner_id", Id, ForeignKey("members.id")),
    Column("personal", Boolean, default=False, nullable=False),
    Index("ix_spaces_owner_id", "owner_id"),
)
"""A data space with one owner; a personal one has no members."""

project_table = Table(
    "projects",
    METADATA,
    Column("id", Id, ForeignKey("resources.id", ondelete="CASCADE"), primary_key=True),
    Column("space_id", Id, ForeignKey("spaces.id"), nullable=False),
    Column("owner_id", Id, ForeignKey("members.id")),
    Column("target_id", Id, ForeignKey("connections.id")),
    Index("ix_projects_space_id", "space_id"),
    Index("ix_projects_owner_id", "owner_id"),
    Index("ix_projects_target_id", "target_id"),
)
"""A data project: its tasks run as its owner and write to its target connection."""

gateway_table = Table(
    "gateways",
    METADATA,
    Column("id", Id, ForeignKey("resources.id", ondelete="CASCADE"), primary_key=True),
    Column("space_id", Id, ForeignKey("spaces.id"), nullable=False),
    Index("ix_gateways_space_id", "space_id"),
)
"""A worker in another network through which connections can be routed."""
