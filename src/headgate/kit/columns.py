"""The metadata of all tables, and column types that behave the same on both databases."""

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Boolean, Column, DateTime, Dialect, MetaData, String, true
from sqlalchemy.types import TypeDecorator

NAMING = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_name)s",
    "pk": "pk_%(table_name)s",
}


class UtcDateTime(TypeDecorator[datetime]):
    """An aware instant in UTC: timestamptz on PostgreSQL, sortable text on SQLite."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("a time without a time zone cannot be stored")
        utc = value.astimezone(UTC)
        return utc.replace(tzinfo=None) if dialect.name == "sqlite" else utc

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        return value.replace(tzinfo=UTC) if value is not None and value.tzinfo is None else value


def text_type(length: int) -> Any:
    """A text type that both databases sort and compare by code point."""
    return String(length).with_variant(String(length, collation="C"), "postgresql")


Id = text_type(32)
Name = text_type(200)
NameKey = text_type(800)
Word = text_type(40)
Email = text_type(320)


def provenance(prefix: str = "") -> tuple[Column[Any], Column[Any]]:
    """The columns of a credential that say what it was made in or with, and whether somebody else may know it.

    Every table of credentials has them. A row that does not say where it comes from counts as tainted.
    """
    return Column(f"{prefix}origin_id", Id), Column(f"{prefix}tainted", Boolean, nullable=False, server_default=true())


METADATA = MetaData(naming_convention=NAMING)
"""Every table of the database, once headgate.schema is imported."""
