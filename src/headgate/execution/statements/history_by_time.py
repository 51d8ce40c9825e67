"""A history whose rows say themselves when they changed: versions lie by that time, in whatever order rows come.

What is known of a key is a set of facts: what its row was at a time (an observation), and when it was gone or back. The
history holds all of them: the first observation of a version is the version's own time, the others with the same values
are in SEEN; a version whose end is not the beginning of another ended because the row was gone; one that begins at
another time than its row's began because the row was back. A snapshot adds facts, and the versions of the keys that it
adds something to are made anew from all facts. So neither order nor repetition matters.
"""

from collections.abc import Callable
from datetime import datetime

from headgate.contracts.pipelines.fields import literal, quoted
from headgate.contracts.tables.history import CURRENT, FROM, SEEN, TO
from headgate.contracts.tables.types import sql
from headgate.execution.statements.history_by_snapshot import Shape
from headgate.execution.statements.windows import timestamp

AMBIGUOUS = "headgate: two rows of a key have the same time"
UNTIMED = "headgate: a row has no time"
"""What the statement fails with."""

_GONE, _SEEN, _BACK, _OLD = range(4)
"""Kinds of facts, in the order in which they count at the same time; the last are the versions that were there."""


def by_time(shape: Shape, at: datetime) -> str:
    """Take up a snapshot whose rows hold from their own times on."""
    keys = [f"k{n}" for n in range(len(shape.keys))]
    by = ", ".join(keys)
    parts = {
        "facts": f"{_of_history(shape)}\n  UNION ALL\n  {_of_source(shape)}",
        "judged": _judged(shape, by),
        "touched": _touched(shape, by),
        "events": _events(by),
        "timeline": _timeline(by),
        "begun": _begun(shape, by),
        "bounds": _bounds(by),
        "ended": _ended(by, timestamp(at), closes=shape.closes),
        "versions": _versions(shape),
    }
    written = ",\n".join(f"{name} AS (\n  {text}\n)" for name, text in parts.items())
    columns = [quoted(column.name) for column in shape.columns]
    names = [*columns, *(quoted(name) for name in (FROM, TO, CURRENT, SEEN))]
    values = [_value(shape, n) for n in range(len(columns))] + ["e.begins", "e.ends", "e.ends IS NULL", "e.seen"]
    on = " AND ".join(f"h.{quoted(name)} <=> e.{value}" for name, value in zip(shape.keys, keys, strict=True))
    changed = ", ".join(f"h.{name} = {value}" for name, value in zip(names, values, strict=True))
    return f"""\
MERGE INTO {shape.table} AS h
USING (
WITH {written}
SELECT * FROM versions
) AS e
ON {on} AND h.{quoted(FROM)} = e.begins
WHEN MATCHED AND e.vanishes THEN DELETE
WHEN MATCHED THEN UPDATE SET {changed}
WHEN NOT MATCHED THEN INSERT ({", ".join(names)}) VALUES ({", ".join(values)})"""


def _value(shape: Shape, n: int) -> str:
    is_time = shape.time is not None and n == shape.number(shape.time)
    return "e.t" if is_time else f"e.r.c{n}"


def _row(shape: Shape, value: Callable[[int], str]) -> str:
    return "named_struct(" + ", ".join(f"'c{n}', {value(n)}" for n in range(len(shape.columns))) + ")"


def _of_history(shape: Shape) -> str:
    """Each observation that a version holds; `is_main` marks the first, which stands for the version itself."""
    names = [quoted(column.name) for column in shape.columns]
    keys = ", ".join(f"{quoted(name)} AS k{n}" for n, name in enumerate(shape.keys))
    time = shape.columns[shape.number(shape.time or "")]
    own, none = quoted(time.name), f"CAST(array() AS ARRAY<{sql(time.type)}>)"
    return (
        f"SELECT {keys}, t, CAST(t AS TIMESTAMP) AS at, {_row(shape, lambda n: names[n])} AS r, FALSE AS given, "
        f"place = 0 AS is_main, {quoted(FROM)} AS old_from, {quoted(TO)} AS old_to, {quoted(CURRENT)} AS is_open, "
        f"coalesce({quoted(SEEN)}, {none}) AS old_seen FROM {shape.table} "
        f"LATERAL VIEW posexplode(concat(array({own}), coalesce({quoted(SEEN)}, {none}))) AS place, t"
    )


def _of_source(shape: Shape) -> str:
    """Each observation of the snapshot."""
    keys = ", ".join(f"c{number} AS k{n}" for n, number in enumerate(shape.key_numbers))
    time = shape.number(shape.time or "")
    none = f"CAST(NULL AS ARRAY<{sql(shape.columns[time].type)}>)"
    return (
        f"SELECT {keys}, c{time}, CAST(c{time} AS TIMESTAMP), {_row(shape, lambda n: f'c{n}')}, TRUE, FALSE, "
        f"CAST(NULL AS TIMESTAMP), CAST(NULL AS TIMESTAMP), FALSE, {none} FROM ({shape.rows()}) "
        f"WHERE {_unless(f'c{time} IS NULL', UNTIMED)}"
    )


def _unless(wrong: str, told: str) -> str:
    return f"CASE WHEN {wrong} THEN CAST(raise_error({literal(told)}) AS BOOLEAN) ELSE TRUE END"


def _same(shape: Shape, left: str, right: str) -> str:
    return shape.same(lambda n: f"{left}.c{n}", lambda n: f"{right}.c{n}")


def _judged(shape: Shape, by: str) -> str:
    """Which observations of the snapshot are new: no other at their time, or one with other values."""
    same = f"(p.at <=> at AND {_same(shape, 'p.r', 'r')})"
    before = f"lag(named_struct('at', at, 'r', r, 'given', given)) OVER (PARTITION BY {by} ORDER BY at, given)"
    return (
        f"SELECT *, given AND NOT {same} AS is_fresh FROM (SELECT *, {before} AS p FROM facts) "
        f"WHERE {_unless(f'given AND p.given AND p.at = at AND NOT {same}', AMBIGUOUS)}"
    )


def _touched(shape: Shape, by: str) -> str:
    """The facts of keys to which the snapshot adds something."""
    gone = " OR (NOT is_present AND was_open)" if shape.closes else ""
    return (
        f"SELECT *, lead(main_from) OVER (PARTITION BY {by} ORDER BY main_from) AS next_from FROM ("
        "SELECT *, IF(is_main, old_from, CAST(NULL AS TIMESTAMP)) AS main_from FROM ("
        f"SELECT *, max(is_fresh) OVER (PARTITION BY {by}) AS adds, max(given) OVER (PARTITION BY {by}) AS is_present, "
        f"max(is_open) OVER (PARTITION BY {by}) AS was_open FROM judged) "
        f"WHERE (is_fresh OR NOT given) AND (adds OR (is_present AND NOT was_open){gone}))"
    )


def _events(by: str) -> str:
    """One row for each fact, at its time; of observations at the same time, a new one counts."""
    kinds = (
        f"CASE WHEN NOT is_main THEN array({_SEEN}) ELSE concat(array({_SEEN}, {_OLD}), "
        f"IF(old_from <> at, array({_BACK}), CAST(array() AS ARRAY<INT>)), "
        f"IF(old_to IS NOT NULL AND NOT old_to <=> next_from, array({_GONE}), CAST(array() AS ARRAY<INT>))) END"
    )
    time = f"CASE kind WHEN {_GONE} THEN old_to WHEN {_SEEN} THEN at ELSE old_from END"
    rank = f"row_number() OVER (PARTITION BY {by}, moment, kind ORDER BY is_fresh DESC, old_from)"
    facts = f"SELECT *, {time} AS moment FROM touched LATERAL VIEW explode({kinds}) AS kind"
    return f"SELECT * FROM (SELECT *, {rank} AS rank FROM ({facts})) WHERE rank = 1"


def _timeline(by: str) -> str:
    """What was known before each fact: the last observation, and whether the row was there."""
    before = f"OVER (PARTITION BY {by} ORDER BY moment, kind ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
    return (
        f"SELECT *, last_value(IF(kind = {_SEEN}, named_struct('t', t, 'r', r), NULL)) IGNORE NULLS {before} AS b, "
        f"coalesce(last_value(IF(kind = {_OLD}, NULL, kind <> {_GONE})) IGNORE NULLS {before}, FALSE) AS is_there "
        "FROM events"
    )


def _begun(shape: Shape, by: str) -> str:
    """Which facts begin a version, numbered; and the version that was there and began at the same time."""
    begins = (
        f"CASE kind WHEN {_SEEN} THEN NOT is_there OR NOT {_same(shape, 'b.r', 'r')} "
        f"WHEN {_BACK} THEN NOT is_there AND b IS NOT NULL ELSE FALSE END"
    )
    old = f"IF(kind = {_OLD}, named_struct('t', t, 'r', r, 'ends', old_to, 'seen', old_seen), NULL)"
    return (
        f"SELECT *, sum(IF(is_start, 1, 0)) OVER (PARTITION BY {by} ORDER BY moment, kind) AS number, "
        f"max(is_start) OVER (PARTITION BY {by}, moment) AS starts_here, "
        f"max(IF(kind = {_SEEN}, at, NULL)) OVER (PARTITION BY {by}) AS newest, "
        f"first_value({old}) IGNORE NULLS OVER (PARTITION BY {by}, moment ORDER BY kind "
        "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS old "
        f"FROM (SELECT *, {begins} AS is_start FROM timeline)"
    )


def _bounds(by: str) -> str:
    """Where versions begin, where rows were gone, and versions that are no more; with what was seen again."""
    again = f"array_sort(collect_list(IF(kind = {_SEEN} AND NOT is_start, t, NULL)) OVER (PARTITION BY {by}, number))"
    return (
        f"SELECT *, lead(moment) OVER (PARTITION BY {by}, kind = {_OLD} ORDER BY moment, kind) AS next "
        f"FROM (SELECT *, {again} AS seen FROM begun) "
        f"WHERE is_start OR (kind = {_GONE} AND is_there) OR (kind = {_OLD} AND NOT starts_here)"
    )


def _ended(by: str, at: str, *, closes: bool) -> str:
    """The versions, with their ends. The last fact of all is whether the row is in the snapshot."""
    later = "timestamp_micros(unix_micros(greatest(moment, newest)) + 1)"
    gone = f"WHEN next IS NULL AND NOT is_present THEN greatest({at}, {later})" if closes else ""
    ends = f"CASE WHEN next IS NOT NULL THEN next {gone} END"
    back = f"kind = {_GONE} AND is_present AND next IS NULL"
    return (
        f"SELECT {by}, kind = {_OLD} AS vanishes, old, "
        f"IF(kind = {_GONE}, greatest({at}, timestamp_micros(unix_micros(moment) + 1)), moment) AS begins, "
        f"IF(kind = {_GONE}, NULL, {ends}) AS ends, IF(kind = {_SEEN}, t, b.t) AS t, IF(kind = {_SEEN}, r, b.r) AS r, "
        f"IF(kind = {_GONE}, slice(seen, 1, 0), seen) AS seen FROM bounds WHERE kind <> {_GONE} OR ({back})"
    )


def _versions(shape: Shape) -> str:
    """Those that differ from what is there."""
    same = f"old.t <=> t AND old.ends <=> ends AND old.seen <=> seen AND {_same(shape, 'old.r', 'r')}"
    return f"SELECT * FROM ended WHERE vanishes OR old IS NULL OR NOT ({same})"


def ambiguous(shape: Shape) -> str:
    """A key and time that rows of the snapshot with different values have."""
    by = [f"c{n}" for n in (*shape.key_numbers, shape.number(shape.time or ""))]
    named = ", ".join(
        f"{value} AS {quoted(name)}" for value, name in zip(by, (*shape.keys, shape.time or ""), strict=True)
    )
    values = ", ".join(f"c{n}" for n in shape.compared) or "1"
    rows = f"SELECT DISTINCT {', '.join(by)}, struct({values}) AS v FROM ({shape.rows()})"
    return f"SELECT {named} FROM ({rows}) GROUP BY {', '.join(by)} HAVING count(*) > 1 LIMIT 1"


def untimed(shape: Shape) -> str:
    """The key of a row of the snapshot that has no time."""
    named = ", ".join(f"c{n} AS {quoted(name)}" for n, name in zip(shape.key_numbers, shape.keys, strict=True))
    return f"SELECT {named} FROM ({shape.rows()}) WHERE c{shape.number(shape.time or '')} IS NULL LIMIT 1"
