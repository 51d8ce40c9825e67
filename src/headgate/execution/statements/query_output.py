"""The statements that write the rows of a member's query into a table.

The query is a part of each statement. It stands in brackets on lines of its own, after it was seen to be one whole
statement by itself: so no bracket, comment or text in it can reach beyond them.
"""

import re
from collections.abc import Sequence

from headgate.contracts.pipelines.fields import literal, quoted
from headgate.contracts.tables.types import Columns, find
from headgate.execution.statements.schema_evolution import value, values

TWICE = "headgate: a key is there twice"
"""What a statement fails with whose keys are not unique."""

_END = re.compile(r"[\s;]+\Z")


def query(text: str) -> str:
    """The query without trailing semicolons."""
    return _END.sub("", text)


def rows_of(text: str, alias: str) -> str:
    """The query as a subquery."""
    return f"(\n{text}\n) AS {alias}"


def insert(table: str, text: str, given: Columns, there: Columns, *, overwrite: bool = False, where: str = "") -> str:
    """INSERT the rows of a query, by column name."""
    listed = ", ".join(
        f"{value} AS {quoted(column.name)}" for value, column in zip(values(given, there, "q"), there, strict=True)
    )
    verb = "INSERT OVERWRITE" if overwrite else "INSERT INTO"
    condition = f"\nWHERE {where}" if where else ""
    return f"{verb} {table} BY NAME\nSELECT {listed}\nFROM {rows_of(text, 'q')}{condition}"


def delete(table: str, where: str) -> str:
    """DELETE rows."""
    return f"DELETE FROM {table} WHERE {where}"


def unique(source: str, keys: Sequence[str], beside: Columns) -> str:
    """The rows of a source; fails with TWICE on duplicate keys, with NULL as a value like any other."""
    by, count = ", ".join(keys), quoted(free("n", beside))
    return (
        f"SELECT * FROM (SELECT *, count(*) OVER (PARTITION BY {by}) AS {count} FROM {source}) "
        f"WHERE CASE WHEN {count} > 1 THEN CAST(raise_error({literal(TWICE)}) AS BOOLEAN) ELSE TRUE END"
    )


def free(name: str, beside: Columns) -> str:
    """A column name that is not taken."""
    while find(beside, name):
        name += "_"
    return name


def merge(table: str, text: str, given: Columns, there: Columns, keys: Sequence[str]) -> str:
    """MERGE the rows of a query by keys. Columns that it does not return keep their values."""
    named = [quoted(name) for name in keys]
    is_key = {name.lower() for name in keys}
    wanted = [column for column in there if find(given, column.name)]
    listed = ", ".join(f"{value(find(given, column.name), column, 'q')} AS {quoted(column.name)}" for column in wanted)
    on = " AND ".join(f"t.{value} <=> s.{value}" for value in named)
    changed = [quoted(column.name) for column in wanted if column.name.lower() not in is_key]
    update = (
        f"\nWHEN MATCHED THEN UPDATE SET {', '.join(f't.{value} = s.{value}' for value in changed)}" if changed else ""
    )
    added = ", ".join(quoted(column.name) for column in there)
    new = ", ".join(f"s.{quoted(column.name)}" if column in wanted else value(None, column, "s") for column in there)
    return (
        f"MERGE INTO {table} AS t\nUSING (\n"
        + unique(f"(SELECT {listed}\nFROM {rows_of(text, 'q')}\n)", named, there)
        + f"\n) AS s\nON {on}{update}\nWHEN NOT MATCHED THEN INSERT ({added}) VALUES ({new})"
    )


def duplicate_keys(text: str, keys: Sequence[str]) -> str:
    """A key that several rows of the query have."""
    by = ", ".join(f"q.{quoted(key)}" for key in keys)
    return f"SELECT {by}\nFROM {rows_of(text, 'q')}\nGROUP BY {by} HAVING count(*) > 1 LIMIT 1"
