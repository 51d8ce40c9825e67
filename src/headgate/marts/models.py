"""Storages, data marts, destinations and reports."""

from datetime import datetime

from sqlalchemy import ForeignKey, Index
from sqlalchemy.orm import Mapped, mapped_column

from headgate.kit.models import Base, Id, UtcDateTime


class Shareable:
    """The two sharing toggles; on a data mart the first is called *for reporting*."""

    shared_for_use: Mapped[bool] = mapped_column(default=False)
    shared_for_maintenance: Mapped[bool] = mapped_column(default=False)


class Storage(Shareable, Base):
    """Where a data mart keeps its data."""

    __tablename__ = "storages"

    id: Mapped[str] = mapped_column(Id, ForeignKey("resources.id", ondelete="CASCADE"), primary_key=True)


class DataMart(Shareable, Base):
    """A published set of data; `acts_for_id` is who last saved its definition."""

    __tablename__ = "data_marts"
    __table_args__ = (
        Index("ix_data_marts_storage_id", "storage_id"),
        Index("ix_data_marts_acts_for_id", "acts_for_id"),
    )

    id: Mapped[str] = mapped_column(Id, ForeignKey("resources.id", ondelete="CASCADE"), primary_key=True)
    storage_id: Mapped[str | None] = mapped_column(Id, ForeignKey("storages.id"))
    published: Mapped[bool] = mapped_column(default=False)
    acts_for_id: Mapped[str | None] = mapped_column(Id, ForeignKey("members.id"))


class Destination(Shareable, Base):
    """An endpoint with credentials to which reports and deliveries go; deleting one is soft."""

    __tablename__ = "destinations"

    id: Mapped[str] = mapped_column(Id, ForeignKey("resources.id", ondelete="CASCADE"), primary_key=True)
    deleted_at: Mapped[datetime | None] = mapped_column(UtcDateTime)


class Report(Base):
    """Data of a mart on its way to a destination; `acts_for_id` last saved what it delivers and where."""

    __tablename__ = "reports"
    __table_args__ = (
        Index("ix_reports_data_mart_id", "data_mart_id"),
        Index("ix_reports_destination_id", "destination_id"),
        Index("ix_reports_acts_for_id", "acts_for_id"),
    )

    id: Mapped[str] = mapped_column(Id, ForeignKey("resources.id", ondelete="CASCADE"), primary_key=True)
    data_mart_id: Mapped[str] = mapped_column(Id, ForeignKey("data_marts.id"))
    destination_id: Mapped[str | None] = mapped_column(Id, ForeignKey("destinations.id"))
    acts_for_id: Mapped[str | None] = mapped_column(Id, ForeignKey("members.id"))
