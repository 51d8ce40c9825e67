"""The audience index in the database: derived from the rule tables and updated in the transaction of each change."""

from collections.abc import Iterable, Iterator, Sequence
from functools import cache

from sqlalchemy import Connection

from headgate.access.audience import audience, fill, order
from headgate.access.kinds import KINDS, stored_kind
from headgate.kit.database import among, execute, fetch, many
from headgate.kit.ids import kind_of

CHUNK = 1000


@cache
def _children() -> tuple[tuple[str, str, str], ...]:
    """The kinds that are listed with a parent: each with its table and the column that refers to the parent."""
    return tuple(
        (stored_kind(inherited.kind), KINDS[kind].table, inherited.column)
        for kind in order()
        for inherited in audience(kind).inherited
    )


@cache
def _statements(only: str) -> tuple[tuple[str, str], ...]:
    """The kinds with lists, and the statement that indexes resources of each, optionally limited."""
    return tuple((stored_kind(kind), fill(kind, only)) for kind in order())


def rebuild(connection: Connection) -> int:
    """Rebuild the whole index; returns the number of entries."""
    execute(connection, "DELETE FROM audience", {})
    return sum(execute(connection, statement, {}) for _, statement in _statements("TRUE"))


def file_new(connection: Connection, ids: Iterable[str]) -> None:
    """Index new resources, which have no children yet."""
    _file(connection, _by_kind(ids))


def refresh(connection: Connection, ids: Iterable[str]) -> None:
    """Reindex these resources and all that inherit from them."""
    remaining = _by_kind(with_children(connection, ids))
    text = f"DELETE FROM audience WHERE {among(connection, 'resource_id', 'ids')}"
    for some in remaining.values():
        for chunk in _chunks(some):
            execute(connection, text, {"ids": many(connection, chunk)})
    _file(connection, remaining)


def _file(connection: Connection, by_kind: dict[str, list[str]]) -> None:
    for kind, statement in _statements(among(connection, "{id}", "ids")):
        for chunk in _chunks(by_kind.get(kind, ())):
            execute(connection, statement, {"ids": many(connection, chunk)})


def _by_kind(ids: Iterable[str]) -> dict[str, list[str]]:
    values: dict[str, list[str]] = {}
    for id_ in sorted(ids):
        values.setdefault(kind_of(id_) or "", []).append(id_)
    return values


def _chunks(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    return (ids[start : start + CHUNK] for start in range(0, len(ids), CHUNK))


def with_children(connection: Connection, ids: Iterable[str]) -> set[str]:
    """These resources, and those that are listed with them."""
    results: set[str] = set(ids)
    fresh = set(results)
    while fresh:
        by_kind = _by_kind(fresh)
        children: set[str] = set()
        for kind, table, column in _children():
            if kind in by_kind:
                text = f"SELECT id FROM {table} WHERE {among(connection, column, 'ids')}"
                rows = fetch(connection, text, {"ids": many(connection, by_kind[kind])})
                children.update(row[0] for row in rows)
        fresh = children - results
        results |= fresh
    return results
