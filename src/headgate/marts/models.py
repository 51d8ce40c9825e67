"""Storages, data marts, destinations and reports."""

from sqlalchemy import Boolean, Column, ForeignKey, Index, Table

from headgate.kit.columns import METADATA, Id, UtcDateTime

storage_table = Table(
    "storages",
    METADATA,
    Column("id", Id, ForeignKey("resources.id", ondelete="CASCADE"), primary_key=True),
    Column("shared_for_use", Boolean, default=False, nullable=False),
    Column("shared_for_maintenance", Boolean, default=False, nullable=False),
)
"""The system in which a data mart stores its data."""

data_mart_table = Table(
    "data_marts",
    METADATA,
    Column("id", Id, ForeignKey("resources.id", ondelete="CASCADE"), primary_key=True),
    Column("shared_for_use", Boolean, default=False, nullable=False),
    Column("shared_for_maintenance", Boolean, default=False, nullable=False),
    Column("storage_id", Id, ForeignKey("storages.id")),
    Column("published", Boolean, default=False, nullable=False),
    Column("acts_for_id", Id, ForeignKey("members.id")),
    Index("ix_data_marts_storage_id", "storage_id"),
    Index("ix_data_marts_acts_for_id", "acts_for_id"),
)
"""A published data set; `acts_for_id` is the member who last saved its definition."""

destination_table = Table(
    "destinations",
    METADATA,
    Column("id", Id, ForeignKey("resources.id", ondelete="CASCADE"), primary_key=True),
    Column("shared_for_use", Boolean, default=False, nullable=False),
    Column("shared_for_maintenance", Boolean, default=False, nullable=False),
    Column("deleted_at", UtcDateTime),
)
"""An endpoint with credentials for reports and deliveries; it is soft-deleted."""

report_table = Table(
    "reports",
    METADATA,
    Column("id", Id, ForeignKey("resources.id", ondelete="CASCADE"), primary_key=True),
    Column("data_mart_id", Id, ForeignKey("data_marts.id"), nullable=False),
    Column("destination_id", Id, ForeignKey("destinations.id")),
    Column("acts_for_id", Id, ForeignKey("members.id")),
    Index("ix_reports_data_mart_id", "data_mart_id"),
    Index("ix_reports_destination_id", "destination_id"),
    Index("ix_reports_acts_for_id", "acts_for_id"),
)
"""A delivery of a mart's data to a destination; `acts_for_id` is the member who last saved what it delivers and
where.
"""
