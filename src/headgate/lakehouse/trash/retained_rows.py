"""What is kept of a deleted layer, table or volume: every row that goes with it, and every link that it had.

Which rows those are is read from the foreign keys, so that a new table of the database is kept without a word here.
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
"""The tables in which a layer, table or volume has its own row, under its id."""
_LEFT_OUT = frozenset({audience_table.name, "uploads"})
"""What is not kept: the index is derived, and an upload under way ends with its volume."""


@cache
def _pointing(ondelete: str | None) -> tuple[tuple[Table, str], ...]:
    """The columns that name a layer, table or volume, and do this when it goes; parents first."""
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
    """A kept row as the database takes it; a column that the table no longer has is left out."""
    values: Row = {}
    for name, value in row.items():
        column = table.columns.get(name)
        if column is not None:
            is_instant = isinstance(column.type, UtcDateTime) and value is not None
            values[name] = datetime.fromisoformat(value) if is_instant else value
    return values


def keep(connection: Connection, identifier: str) -> Kept:
    """The rows that go with a layer, table or volume, and the links to it that end."""
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
    """How many rows of which tables keep a layer, table or volume from being deleted."""
    values: dict[str, int] = {}
    for table, column in _pointing(None):
        count = select(func.count()).select_from(table).where(table.c[column] == identifier)
        values[table.name] = connection.execute(count).scalar_one()
    return {name: count for name, count in values.items() if count}


def restore_rows(connection: Connection, identifier: str, kept: Kept, now: datetime) -> None:
    """Write the kept rows again, but for those whose time or whose other end is over, and link what was linked."""
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
    """Without the grants of members who were removed since: returning restores nothing, and this does not either."""
    text = f"SELECT id FROM members WHERE removed_at IS NOT NULL AND {among(connection, 'id', 'ids')}"
    bound_ids = {"ids": many(connection, [row["grantee_id"] for row in grants])}
    gone = {row[0] for row in fetch(connection, text, bound_ids)} if grants else set()
    return [row for row in grants if row["grantee_id"] not in gone]


def _whole(connection: Connection, table: Table, rows: list[Row], identifier: str) -> list[Row]:
    """The rows whose foreign keys still hold; where a column may be empty, it is emptied instead."""
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
