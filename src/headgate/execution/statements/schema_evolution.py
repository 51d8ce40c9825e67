"""Tables whose columns change: what differs, and the statements that bring a table to where it holds what is given."""

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
    """How the columns that are given differ from a table's, in words; their order does not matter."""
    found = []
    for one in given:
        own = find(there, one.name)
        if own is None:
            found.append(f"{one.name} ({shown(one.type)}) is new")
        elif not (holds(own.type, one.type) and holds(one.type, own.type)):
            found.append(f"{one.name} is {shown(one.type)}, and the table has {shown(own.type)}")
    return found + [f"{one.name} is missing" for one in there if find(given, one.name) is None]


def statements(table: str, there: Columns, after: Columns) -> list[str]:
    """What turns a table's columns into those that `types.merged` gave."""
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
    """Create a table of these columns, or begin it anew."""
    listed = ", ".join(f"{quoted(one.name)} {sql(one.type)}" for one in columns)
    parts = f" PARTITIONED BY ({', '.join(partitioned_by)})" if partitioned_by else ""
    told = ", ".join(f"{literal(name)} = {literal(text)}" for name, text in (properties or {}).items())
    kept = f" TBLPROPERTIES ({told})" if told else ""
    return f"CREATE {'OR REPLACE ' if replace else ''}TABLE {table} ({listed}){parts}{kept}"


def values(given: Columns, wanted: Columns, alias: str) -> list[str]:
    """For each wanted column its value, from a row with the given ones; NULL for those that are missing."""
    return [value(find(given, one.name), one, alias) for one in wanted]


def value(given: Column | None, wanted: Column, alias: str) -> str:
    """A wanted column's value, from a row with the given one, or NULL."""
    if given is None:
        return f"CAST(NULL AS {sql(wanted.type)})"
    return conformed(f"{alias}.{quoted(given.name)}", given.type, wanted.type)


def _changes(
    path: tuple[str, ...], there: Columns, after: Columns
) -> Iterator[tuple[tuple[str, ...], Type | None, Type]]:
    """Each field that is new (no old type) or of another type, by its path."""
    for one in after:
        own, here = find(there, one.name), (*path, one.name)
        if own is None:
            yield here, None, one.type
        else:
            yield from _within((*path, own.name), own.type, one.type)


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
