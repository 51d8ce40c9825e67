"""Lists of resources: the sorted streams of the member's keys, merged. The cost does not depend on the total number."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from functools import cache
from typing import Any

from sqlalchemy import Connection

from headgate.access.audience import keys as keys_statement
from headgate.access.audience import sort_name, whole_key
from headgate.access.book import BOOK
from headgate.access.kinds import KINDS, rule_kinds
from headgate.access.narrowing import UNLIMITED, Narrowing
from headgate.access.sql import condition, mask, rows, where
from headgate.kit.database import among, bound, fetch, instant, many
from headgate.kit.ids import kind_of
from headgate.kit.names import name_key
from headgate.kit.paging import MAX_TOTAL, BadCursor, Cursor
from headgate.platform.authorization.schemas import Creator, Resource

MAX_STREAMS = 200
"""Maximum number of streams per statement; SQLite allows 500 parts in a compound SELECT."""


class ResourceSort(StrEnum):
    """The sort orders of a list; a leading minus reverses one."""

    name = "name"
    created = "created"
    updated = "updated"
    created_by = "created_by"
    name_desc = "-name"
    created_desc = "-created"
    updated_desc = "-updated"
    created_by_desc = "-created_by"

    @property
    def descending(self) -> bool:
        return self.value.startswith("-")

    @property
    def column(self) -> str:
        """The column of the audience index."""
        columns = {"name": "name_key", "created": "created_at", "updated": "updated_at", "created_by": "creator_key"}
        return columns[self.value.removeprefix("-")]


@dataclass(frozen=True, slots=True)
class Query:
    """The filter and the position of a list."""

    member: str
    kind: str
    now: datetime
    sort: ResourceSort = ResourceSort.name
    prefix: str = ""
    limit: int = 50
    after: Cursor | None = None
    action: str | None = None
    narrowing: Narrowing = UNLIMITED

    @property
    def kinds(self) -> tuple[str, ...]:
        """The rule kinds in the list: those that have the action."""
        kinds = rule_kinds(self.kind)
        return kinds if self.action is None else tuple(kind for kind in kinds if self.action in BOOK.actions(kind))

    @property
    def uses_index(self) -> bool:
        """Whether the audience index covers this list; other actions are decided by the rule tables for each row."""
        by_default = all(self.action in {None, BOOK.tables[kind].listed_by} for kind in self.kinds)
        return by_default and self.narrowing.only is None


def held_keys(connection: Connection, query: Query) -> tuple[str, ...]:
    """The keys that put resources on the member's list."""
    parameters = {"member": query.member, "now": bound(connection, query.now)}
    results: list[str] = []
    for kind in query.kinds:
        statement, whole = _keys(kind)
        keys = dict.fromkeys(row[0] for row in fetch(connection, statement, parameters))
        results += [whole] if whole and whole in keys else keys
    return tuple(results)


@cache
def _keys(kind: str) -> tuple[str, str | None]:
    return keys_statement(kind), whole_key(kind)


def page(connection: Connection, query: Query) -> tuple[list[Resource], Cursor | None]:
    """A page, and where the next one starts."""
    entries, next_page = names(connection, query)
    rows = details(connection, query.member, [row[0] for row in entries], query.now, query.narrowing)
    if query.uses_index:
        # Statements may see different states; this one is the newest and therefore decides.
        listed_by = {BOOK.tables[kind].listed_by for kind in query.kinds}
        rows = [row for row in rows if not listed_by.isdisjoint(row.allowed)]
    return rows, next_page


def names(connection: Connection, query: Query) -> tuple[Sequence[Any], Cursor | None]:
    """A page of (id, sort value) without details, for long lists, and where the next one starts. Call it within one
    snapshot, because rows are not authorized again.
    """
    result = _from_index(connection, query) if query.uses_index else _from_rules(connection, query)
    if len(result) <= query.limit:
        return result, None
    last = result[query.limit - 1]
    return result[: query.limit], Cursor(_text(last[1]), last[0])


def total(connection: Connection, query: Query) -> int:
    """The total number, exact up to MAX_TOTAL; one more means that there are more."""
    if not query.uses_index:
        return _count_from_rules(connection, query)
    keys = held_keys(connection, query)
    if not keys:
        return 0
    most = MAX_TOTAL + 1
    if len(keys) > MAX_STREAMS:
        return _count_of_many_keys(connection, query, keys, most)
    value = f"SELECT resource_id FROM audience WHERE key = :{{key}} AND {_ALIVE} AND {_prefixed(query)} LIMIT {most}"
    named = {f"k{n}": key for n, key in enumerate(keys)}
    parameters = {**_common(connection, query), **named}
    columns = ", ".join(f"(SELECT COUNT(*) FROM ({value.format(key=name)}) {name})" for name in named)
    counts = [count for count in fetch(connection, f"SELECT {columns}", parameters)[0] if count]
    if len(counts) <= 1 or max(counts) == most:
        return int(max(counts, default=0))
    together = " UNION ".join(f"SELECT * FROM ({value.format(key=name)}) {name}" for name in named)
    return min(most, int(fetch(connection, f"SELECT COUNT(*) FROM ({together}) counted", parameters)[0][0]))


def _count_of_many_keys(connection: Connection, query: Query, keys: Sequence[str], most: int) -> int:
    """Count for a member of very many groups, in one statement that may scan more rows."""
    chosen = f"{among(connection, 'key', 'keys')} AND {_ALIVE} AND {_prefixed(query)}"
    text = f"SELECT COUNT(*) FROM (SELECT DISTINCT resource_id FROM audience WHERE {chosen} LIMIT {most}) counted"
    parameters = {**_common(connection, query), "keys": many(connection, keys)}
    return int(fetch(connection, text, parameters)[0][0])


_ALIVE = "(expires_at IS NULL OR expires_at > :now)"


def _prefixed(query: Query, column: str = "name_key") -> str:
    return f"{column} >= :prefix AND {column} < :prefix_end" if query.prefix else "TRUE"


def _common(connection: Connection, query: Query) -> dict[str, Any]:
    parameters: dict[str, Any] = {"now": bound(connection, query.now), "limit": query.limit + 1}
    if query.prefix:
        key = name_key(query.prefix)
        parameters |= {"prefix": key, "prefix_end": key + "\U0010ffff"}
    if query.after:
        parameters |= {"after_value": _after_value(connection, query.sort, query.after), "after_id": query.after.id}
    return parameters


def _after_value(connection: Connection, sort: ResourceSort, after: Cursor) -> Any:
    if sort.column not in {"created_at", "updated_at"}:
        return after.value
    try:
        moment = datetime.fromisoformat(after.value)
        return bound(connection, moment if moment.tzinfo else moment.replace(tzinfo=UTC))
    except (ValueError, OverflowError):
        raise BadCursor("invalid cursor; omit it to start from the first page") from None


def _order(query: Query, column: str, identifier: str) -> tuple[str, str]:
    """SQL for the position after the cursor, and for the order."""
    direction, compare = ("DESC", "<") if query.sort.descending else ("ASC", ">")
    after = f"({column}, {identifier}) {compare} (:after_value, :after_id)" if query.after else "TRUE"
    return after, f"{column} {direction}, {identifier} {direction}"


def _from_index(connection: Connection, query: Query) -> Sequence[Any]:
    """The first (id, sort value) rows of all the member's streams."""
    after, order = _order(query, query.sort.column, "resource_id")
    stream = (
        f"SELECT resource_id, {query.sort.column} AS v FROM audience WHERE key = {{key}} AND {after} AND {_ALIVE} "
        f"AND {_prefixed(query)} ORDER BY {order} LIMIT :limit"
    )
    merged_order = order.replace(query.sort.column, "v")
    if connection.dialect.name == "sqlite":
        return _merged(connection, query, stream, merged_order)
    keys = " UNION ALL ".join(_keys(kind)[0] for kind in query.kinds)
    text = (
        f"SELECT DISTINCT s.resource_id, s.v FROM ({keys}) k CROSS JOIN LATERAL ({stream.format(key='k.key')}) s "
        f"ORDER BY {merged_order} LIMIT :limit"
    )
    return fetch(connection, text, {**_common(connection, query), "member": query.member})


def _merged(connection: Connection, query: Query, stream: str, order: str) -> Sequence[Any]:
    """The same for SQLite, which lacks LATERAL."""
    keys = held_keys(connection, query)
    values: dict[str, Any] = {}
    for start in range(0, len(keys), MAX_STREAMS):
        named = {f"k{n}": key for n, key in enumerate(keys[start : start + MAX_STREAMS])}
        streams = " UNION ".join(f"SELECT * FROM ({stream.format(key=f':{name}')})" for name in named)
        parameters = {**_common(connection, query), **named}
        for row in fetch(connection, f"{streams} ORDER BY {order} LIMIT :limit", parameters):
            values[row[0]] = row
    ordered = sorted(values.values(), key=lambda row: (row[1], row[0]), reverse=query.sort.descending)
    return ordered[: query.limit + 1]


def _rule_rows(connection: Connection, query: Query, kind: str) -> str:
    """SELECT of (id, sort value) by the rule tables, for actions without an index."""
    columns = {"creator_key": "COALESCE(cr.name_key, '')", "name_key": sort_name(kind)}
    column = columns.get(query.sort.column, f"rs.{query.sort.column}")
    after, order = _order(query, column, "rs.id")
    wanted = query.action or BOOK.tables[kind].listed_by
    return (
        f"SELECT rs.id, {column} AS v FROM {rows(kind)} JOIN resources rs ON rs.id = r.id "
        f"LEFT JOIN members cr ON cr.id = rs.created_by_id AND cr.removed_at IS NULL WHERE m.id = :member "
        f"AND {where(kind)} AND {narrowed(connection, query.narrowing, wanted, kind)} "
        f"AND {_prefixed(query, sort_name(kind))} AND {after} "
        f"AND {condition(wanted, kind)} ORDER BY {order} LIMIT :limit"
    )


def narrowed(connection: Connection, narrowing: Narrowing, action: str, kind: str) -> str:
    """SQL on `r` for the resources within a token's limits; needs the parameters of `limits`."""
    text = narrowing.condition(action, kind)
    for name in ("only", "layers", "writes"):
        for row in ("r.id", "r.layer_id"):
            text = text.replace(f"{{{name}:{row}}}", among(connection, row, name))
    return text


def limits(connection: Connection, narrowing: Narrowing) -> dict[str, Any]:
    """The parameters of `narrowed`."""
    if narrowing.only is None:
        return {}
    return {
        "only": many(connection, sorted(narrowing.only)),
        "layers": many(connection, sorted(narrowing.layers)),
        "writes": many(connection, sorted(narrowing.writes or ())),
    }


def _rule_parameters(connection: Connection, query: Query) -> dict[str, Any]:
    return {**_common(connection, query), "member": query.member, **limits(connection, query.narrowing)}


def _from_rules(connection: Connection, query: Query) -> list[Any]:
    results: list[Any] = []
    for kind in query.kinds:
        results += fetch(connection, _rule_rows(connection, query, kind), _rule_parameters(connection, query))
    results.sort(key=lambda row: (row[1], row[0]), reverse=query.sort.descending)
    return results[: query.limit + 1]


def _count_from_rules(connection: Connection, query: Query) -> int:
    count = 0
    parameters = {**_rule_parameters(connection, query), "limit": MAX_TOTAL + 1}
    for kind in query.kinds:
        text = f"SELECT COUNT(*) FROM ({_rule_rows(connection, query, kind)}) counted"
        count += fetch(connection, text, parameters)[0][0]
    return min(count, MAX_TOTAL + 1)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else value.isoformat()


@cache
def _details_statement(kind: str, dialect: str) -> str:
    """Rows of resources of one rule kind, each with the paths open to the member."""
    chosen = "r.id IN (SELECT je.value FROM json_each(:ids) je)" if dialect == "sqlite" else "r.id = ANY(:ids)"
    in_layer = kind in {"table", "volume"}
    layer = "JOIN resources ly ON ly.id = r.layer_id" if in_layer else ""
    name, layer_id = ("ly.name || '.' || rs.name", "r.layer_id") if in_layer else ("rs.name", "NULL")
    return (
        f"SELECT rs.id, rs.kind, {name}, rs.created_at, rs.updated_at, cr.id, cr.name, {layer_id}, {mask(kind)} "
        f"FROM {KINDS[kind].table} r CROSS JOIN members m JOIN resources rs ON rs.id = r.id {layer} "
        "LEFT JOIN members cr ON cr.id = rs.created_by_id AND cr.removed_at IS NULL "
        f"WHERE {chosen} AND m.id = :member AND {where(kind)}"
    )


def details(
    connection: Connection, member: str, ids: Sequence[str], now: datetime, narrowing: Narrowing = UNLIMITED
) -> list[Resource]:
    """These resources in this order, each with the member's actions within a token's limits."""
    if not ids:
        return []
    stored = kind_of(ids[0]) or ""
    parameters = {"member": member, "ids": many(connection, ids), "now": bound(connection, now)}
    values: dict[str, Resource] = {}
    for kind in rule_kinds(stored):
        for row in fetch(connection, _details_statement(kind, connection.dialect.name), parameters):
            identifier, own_kind, name, created, updated, creator, creator_name, layer, bits = row
            allowed = narrowing.within(BOOK.allowed_actions(kind, bits), now, kind, identifier, layer)
            author = Creator(creator, creator_name) if creator else None
            times, via = (instant(created), instant(updated)), BOOK.open_paths(kind, bits)
            values[identifier] = Resource(identifier, own_kind, name, *times, author, allowed, via)
    return [values[id_] for id_ in ids if id_ in values]
