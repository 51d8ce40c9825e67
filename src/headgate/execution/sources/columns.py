"""Columns of a database table, and the dialects of databases."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Column:
    """A column of a database table."""

    name: str
    type: str
    """As the database calls it."""

    select: str
    """How it is selected: as it is, or as a text where Spark has no type for it."""

    order: str | None = None
    """bigint, decimal, double, date, timestamp, timestamp_ntz or string; None for what has no order that we use."""

    decimal: tuple[int, int] | None = None
    """For numbers that come as texts: digits in all, and behind the point."""

    json: str | None = None
    """For lists that come as JSON: their type in Spark."""


@dataclass(frozen=True)
class Dialect:
    """The SQL dialect and driver options of a database."""

    called: str
    home: str | None
    """The schema of tables that name none; None for the connection's database."""

    quoted: Callable[[str], str]
    columns: Callable[[str, str], str]
    """The question for a table's columns."""

    column: Callable[..., Column]
    """A column, by a row of the answer."""

    options: Callable[[dict[str, Any], str], dict[str, str]]
    """The driver, the address, and all that the driver is told, but for user and password."""

    literal: Callable[[Column, Any], str | None]
    """A value to compare a column with; None if it cannot be compared."""

    text: Callable[[str], str]
    """An expression as a text."""
