"""The retained rows of a deleted layer, table or volume: its dependent rows and its references.

The rows are determined from the foreign keys, so a new database table is included without changes here.
"""

from collections.abc import Iterator
from datetime import datetime
from functools import cache
from typing import Any

from sqlalchemy import Column, Connection, Table, and_, func, insert, select, update

from headgate.kit.columns import METADATA, UtcDateTime
from headgate.kit.database import among, fetch, many
from headgate.platform.authorization.fact_tables import grant_table
from headgate.platform.authorization.models import audience_table, resource_table

Row = dict[str, Any]
Kept = dict[str, Any]
ITSELF = frozenset({"resources", "layers", "lake_items"})
"""The database tables that hold the item's own row."""
_LEFT_OUT = frozenset({audience_table.name, "uploads"})
"""Not retained: the index is derived, and uploads in progress end with their volume."""


@cache
def _pointing(ondelete: str | None) -> tuple[tuple[Table, str], ...]:
    """The columns that reference a lakehouse item with this ON DELETE rule; parents first."""
    return tuple(
        (table, key.parent.name)
        for table in METADATA.sorted_tables
        if table.name not in _LEFT_OUT
        for key in sorted(table.foreign_keys, key=lambda foreign_key: str(foreign_key.parent.name))
        if key.column.table.name in ITSELF and key.ondelete == ondelete
    )


def _plain(row: Any) -> Row:
    return {name: value.isoformat() if isinstance(value, datetime) else value for name, value in row.items()}


def _stored(table: Table, row: Row) -> Row:
    """A retained row as the database accepts it, without columns that no longer exist."""
    values: Row = {}
    for name, value in row.items():
        column = table.columns.get(name)
        if column is not None:
            is_instant = isinstance(column.type, UtcDateTime) and value is not None
            values[name] = datetime.fromisoformat(value) if is_instant else value
    return values


def keep(connection: Connection, identifier: str) -> Kept:
    """Collect the dependent rows of an item and the references that end."""
    rows: dict[str, list[Row]] = {}
    for table, column in ((resource_table, "id"), *_pointing("CASCADE")):
        result = connection.execute(select(table).where(table.c[column] == identifier)).mappings().all()
        if result:
            rows.setdefault(table.name, []).extend(_plain(row) for row in result)
    links: list[Row] = []
    for table, column in _pointing("SET NULL"):
        keys = connection.execute(select(*table.primary_key).where(table.c[column] == identifier)).mappings()
        links += [{"table": table.name, "column": column, "key": _plain(key)} for key in keys]
    return {"rows": rows, "links": links}


def users(connection: Connection, identifier: str) -> dict[str, int]:
    """The number of rows per database table that prevent a deletion."""
    values: dict[str, int] = {}
    for table, column in _pointing(None):
        count = select(func.count()).select_from(table).where(table.c[column] == identifier)
        values[table.name] = connection.execute(count).scalar_one()
    return {name: count for name, count in values.items() if count}


def restore_rows(connection: Connection, identifier: str, kept: Kept, now: datetime) -> None:
    """Insert the retained rows again, except expired ones and those whose other end is gone, and restore references."""
    for table in METADATA.sorted_tables:
        rows = [_stored(table, row) for row in kept["rows"].get(table.name, ())]
        rows = _whole(connection, table, rows, identifier)
        if table is grant_table:
            rows = _of_present(connection, [row for row in rows if not _is_over(row, now)])
        if rows:
            connection.execute(insert(table), rows)
    for link in kept["links"]:
        table = METADATA.tables[link["table"]]
        key = and_(*(table.c[name] == value for name, value in link["key"].items()))
        free = table.c[link["column"]].is_(None)
        connection.execute(update(table).where(key, free).values({link["column"]: identifier}))


def _is_over(row: Row, now: datetime) -> bool:
    ends = row["expires_at"]
    return ends is not None and ends <= now


def _of_present(connection: Connection, grants: list[Row]) -> list[Row]:
    """The grants without those of removed members: restoring must not bring them back."""
    text = f"SELECT id FROM members WHERE removed_at IS NOT NULL AND {among(connection, 'id', 'ids')}"
    bound_ids = {"ids": many(connection, [row["grantee_id"] for row in grants])}
    gone = {row[0] for row in fetch(connection, text, bound_ids)} if grants else set()
    return [row for row in grants if row["grantee_id"] not in gone]


def _whole(connection: Connection, table: Table, rows: list[Row], identifier: str) -> list[Row]:
    """The rows whose foreign keys still hold; nullable columns are set to null instead."""
    for column, target in _foreign(table):
        named = sorted({row[column.name] for row in rows if row.get(column.name)} - {identifier})
        if not named:
            continue
        text = f"SELECT {target.name} FROM {target.table.name} WHERE {among(connection, target.name, 'ids')}"
        there = {row[0] for row in fetch(connection, text, {"ids": many(connection, named)})} | {identifier, None}
        if column.nullable:
            rows = [row if row[column.name] in there else {**row, column.name: None} for row in rows]
        else:
            rows = [row for row in rows if row[column.name] in there]
    return rows


def _foreign(table: Table) -> Iterator[tuple[Column[Any], Column[Any]]]:
    for key in table.foreign_keys:
        yield key.parent, key.column
