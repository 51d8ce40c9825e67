"""The audience index in the database: filled from the rule tables, kept in the transaction of each change."""

from collections.abc import Iterable
from functools import cache

from sqlalchemy import Connection

from headgate.access.audience import audience, fill, order
from headgate.access.kinds import KINDS
from headgate.kit.db import among, execute, fetch, many

CHUNK = 1000


@cache
def _children() -> tuple[tuple[str, str], ...]:
    """The tables of resources that are listed with a parent, and the column that names it."""
    return tuple((KINDS[kind].table, one.column) for kind in order() for one in audience(kind).inherited)


def rebuild(connection: Connection) -> int:
    """Write the whole index anew; how many entries it has."""
    execute(connection, "DELETE FROM audience", {})
    return sum(execute(connection, fill(kind), {}) for kind in order())


def refresh(connection: Connection, ids: Iterable[str]) -> None:
    """Write the entries of these resources anew, and of all that inherit from them."""
    remaining = sorted(with_children(connection, ids))
    for start in range(0, len(remaining), CHUNK):
        bound = {"ids": many(connection, remaining[start : start + CHUNK])}
        execute(connection, f"DELETE FROM audience WHERE {among(connection, 'resource_id', 'ids')}", bound)
    for kind in order():
        statement = fill(kind, among(connection, "{id}", "ids"))
        for start in range(0, len(remaining), CHUNK):
            execute(connection, statement, {"ids": many(connection, remaining[start : start + CHUNK])})


def with_children(connection: Connection, ids: Iterable[str]) -> set[str]:
    """These resources, and those that are listed with them."""
    found: set[str] = set(ids)
    fresh = set(found)
    while fresh:
        bound = {"ids": many(connection, sorted(fresh))}
        children: set[str] = set()
        for table, column in _children():
            text = f"SELECT id FROM {table} WHERE {among(connection, column, 'ids')}"
            children.update(row[0] for row in fetch(connection, text, bound))
        fresh = children - found
        found |= fresh
    return found
