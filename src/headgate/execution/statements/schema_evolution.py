"""Schema evolution: the differences of columns, and the statements that apply them."""

from collections.abc import Iterator, Mapping

from headgate.contracts.pipelines.fields import literal, quoted
from headgate.contracts.tables.types import (
    Array,
    Column,
    Columns,
    Map,
    Struct,
    Type,
    conformed,
    find,
    holds,
    shown,
    sql,
)


def differences(there: Columns, given: Columns) -> list[str]:
    """The differences between given and existing columns, as text, ignoring order."""
    result = []
    for entry in given:
        own = find(there, entry.name)
        if own is None:
            result.append(f"{entry.name} ({shown(entry.type)}) is new")
        elif not (holds(own.type, entry.type) and holds(entry.type, own.type)):
            result.append(f"{entry.name} is {shown(entry.type)}, and the table has {shown(own.type)}")
    return result + [f"{column.name} is missing" for column in there if find(given, column.name) is None]


def statements(table: str, there: Columns, after: Columns) -> list[str]:
    """The ALTER statements that produce the columns of `types.merged`."""
    added, changed = [], []
    for path, old, new in _changes((), there, after):
        name = quoted(*path)
        if old is None:
            added.append(f"{name} {sql(new)}")
        else:
            changed.append(f"ALTER TABLE {table} ALTER COLUMN {name} TYPE {sql(new)}")
    return [f"ALTER TABLE {table} ADD COLUMNS ({', '.join(added)})"] * bool(added) + changed


def create(
    table: str,
    columns: Columns,
    partitioned_by: tuple[str, ...] = (),
    *,
    replace: bool = False,
    properties: Mapping[str, str] | None = None,
) -> str:
    """Create or replace a table with these columns."""
    listed = ", ".join(f"{quoted(column.name)} {sql(column.type)}" for column in columns)
    parts = f" PARTITIONED BY ({', '.join(partitioned_by)})" if partitioned_by else ""
    told = ", ".join(f"{literal(name)} = {literal(text)}" for name, text in (properties or {}).items())
    kept = f" TBLPROPERTIES ({told})" if told else ""
    return f"CREATE {'OR REPLACE ' if replace else ''}TABLE {table} ({listed}){parts}{kept}"


def values(given: Columns, wanted: Columns, alias: str) -> list[str]:
    """A value for each target column; NULL for missing ones."""
    return [value(find(given, column.name), column, alias) for column in wanted]


def value(given: Column | None, wanted: Column, alias: str) -> str:
    """The value of a target column, or NULL."""
    if given is None:
        return f"CAST(NULL AS {sql(wanted.type)})"
    return conformed(f"{alias}.{quoted(given.name)}", given.type, wanted.type)


def _changes(
    path: tuple[str, ...], there: Columns, after: Columns
) -> Iterator[tuple[tuple[str, ...], Type | None, Type]]:
    """The fields that are new (no old type) or have another type, by path."""
    for column in after:
        own, here = find(there, column.name), (*path, column.name)
        if own is None:
            yield here, None, column.type
        else:
            yield from _within((*path, own.name), own.type, column.type)


def _within(path: tuple[str, ...], old: Type, new: Type) -> Iterator[tuple[tuple[str, ...], Type | None, Type]]:
    match old, new:
        case Struct(), Struct():
            yield from _changes(path, old.fields, new.fields)
        case Array(), Array():
            yield from _within((*path, "element"), old.element, new.element)
        case Map(), Map():
            yield from _within((*path, "value"), old.value, new.value)
        case _ if old != new:
            yield path, old, new
