"""Typed rows: the result of a query as dataclasses, whose fields have the names of its columns."""

from collections.abc import Callable
from dataclasses import fields
from typing import Any, TypeVar

from sqlalchemy import Column, Connection, Executable, Table

Row = TypeVar("Row")


def fetch_all(connection: Connection, query: Executable, row_type: Callable[..., Row]) -> list[Row]:
    """All rows of a query."""
    return [row_type(**row) for row in connection.execute(query).mappings()]


def fetch_one(connection: Connection, query: Executable, row_type: Callable[..., Row]) -> Row | None:
    """The only row of a query, or None."""
    row = connection.execute(query).mappings().one_or_none()
    return None if row is None else row_type(**row)


def columns_of(table: Table, row_type: type[Any]) -> list[Column[Any]]:
    """The columns of a table that a dataclass names, in its order."""
    return [table.c[field.name] for field in fields(row_type)]
