"""SQL of expectations: one query counts checked and failed rows, another returns failed rows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from headgate.contracts.pipelines.expectations import Expectation
from headgate.contracts.pipelines.fields import literal, quoted
from headgate.contracts.tables import types
from headgate.contracts.tables.types import Column, Columns, Decimal, PrimitiveType, Type
from headgate.execution.statements import query_output
from headgate.execution.statements.literals import BadValue, written
from headgate.execution.statements.windows import back, timestamp

SAMPLE = 20
_NUMBERS = {types.INT, types.BIGINT, types.FLOAT, types.DOUBLE}


class BadCheck(ValueError):
    """An expectation that does not fit the table's columns; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table to check, or to look values up in."""

    name: str
    sql: str
    columns: Columns

    def column(self, name: str) -> Column:
        """A column of the table; BadCheck if there is none of this name."""
        column = types.find(self.columns, name)
        if column is None:
            listed = ", ".join(entry.name for entry in self.columns)
            raise BadCheck(f"{self.name} has no column {name}; it has {listed}")
        return column


@dataclass(frozen=True, slots=True)
class CheckQuery:
    """A query that gives `checked`, `failed` and perhaps `told`; and what its answer means."""

    counts: str
    says: str
    """What rows that failed are like, as in: 3 of 10 rows SAYS."""
    sample: str | None = None
    base: int | None = None
    """What the tolerance is a share of, if not of the rows that were checked."""


def expectation_query(
    expectation: Expectation, table: Table, other: Table | None, moment: datetime, zone: ZoneInfo
) -> CheckQuery:
    """The queries of an expectation; BadCheck if it does not fit the table."""
    try:
        return _KINDS[expectation.check](expectation, table, other, moment, zone)
    except BadValue as error:
        raise BadCheck(str(error)) from None


Asker = Callable[[Expectation, Table, Table | None, datetime, ZoneInfo], CheckQuery]


def _failing(table: Table, condition: str, says: str) -> CheckQuery:
    """Rows for which a condition holds fail."""
    return CheckQuery(
        f"SELECT count(*) AS checked, count_if({condition}) AS failed FROM {table.sql} AS t",
        says,
        f"SELECT * FROM {table.sql} AS t WHERE {condition} LIMIT {SAMPLE}",
    )


def _not_null(expectation: Expectation, table: Table, *_: object) -> CheckQuery:
    columns = [table.column(name) for name in expectation.columns]
    missing = " OR ".join(f"{_of(column)} IS NULL" for column in columns)
    return _failing(table, f"({missing})", f"have no value in {_listed(expectation.columns, 'or')}")


def _unique(expectation: Expectation, table: Table, *_: object) -> CheckQuery:
    columns = [table.column(name) for name in expectation.columns]
    for column in columns:
        if not types.is_key(column.type):
            raise BadCheck(f"{column.name} cannot be a key, because it is {types.shown(column.type)}")
    by = ", ".join(_of(column) for column in columns)
    there = _there(columns)
    groups = f"SELECT count(*) AS n, {there} AS there FROM {table.sql} AS t GROUP BY {by}"
    count = quoted(query_output.free("rows", tuple(columns)))
    return CheckQuery(
        f"SELECT coalesce(sum(n), 0) AS checked, coalesce(sum(IF(there AND n > 1, n, 0)), 0) AS failed FROM ({groups})",
        f"have the same {_listed(expectation.columns, 'and')} as another",
        f"SELECT {by}, count(*) AS {count} FROM {table.sql} AS t WHERE {there} GROUP BY {by} "
        f"HAVING count(*) > 1 LIMIT {SAMPLE}",
    )


def _accepted(expectation: Expectation, table: Table, *_: object) -> CheckQuery:
    column = table.column(expectation.columns[0])
    values = ", ".join(written(value, column) for value in expectation.values)
    return _failing(
        table, f"(NOT {_of(column)} IN ({values}))", f"have a value in {column.name} that is not an accepted value"
    )


def _range(expectation: Expectation, table: Table, *_: object) -> CheckQuery:
    column = table.column(expectation.columns[0])
    least = (
        []
        if expectation.least is None
        else [(f"{_of(column)} < {written(expectation.least, column)}", f"below {expectation.least}")]
    )
    most = (
        []
        if expectation.most is None
        else [(f"{_of(column)} > {written(expectation.most, column)}", f"above {expectation.most}")]
    )
    condition = " OR ".join(text for text, _ in least + most)
    return _failing(
        table, f"({condition})", f"have a value in {column.name} {' or '.join(word for _, word in least + most)}"
    )


def _pattern(expectation: Expectation, table: Table, *_: object) -> CheckQuery:
    column = table.column(expectation.columns[0])
    if column.type != PrimitiveType(types.STRING):
        raise BadCheck(f"{column.name} is {types.shown(column.type)}; patterns require a text column")
    whole, alone = literal(rf"\A(?:{expectation.pattern})\z"), literal(expectation.pattern)
    # By itself, too: a pattern that is one only between our brackets would mean something else. Spark tries it first.
    valid = f"('' RLIKE {alone} OR '' RLIKE {whole})"
    check_query = _failing(
        table, f"(NOT {_of(column)} RLIKE {whole})", f"have a value in {column.name} that does not match the pattern"
    )
    counts = f"SELECT *, {valid} AS is_valid FROM ({check_query.counts})"
    return CheckQuery(counts, check_query.says, check_query.sample)


def _rows(expectation: Expectation, table: Table, *_: object) -> CheckQuery:
    least, most = int(expectation.least or 0), None if expectation.most is None else int(expectation.most)
    too_many = f"greatest(count(*) - {most}, 0)" if most is not None else "0"
    bounds = [f"at least {least}"] * (expectation.least is not None) + [f"at most {most}"] * (most is not None)
    return CheckQuery(
        f"SELECT count(*) AS checked, greatest({least} - count(*), 0) + {too_many} AS failed FROM {table.sql}",
        f"{_listed(bounds, 'and')} are expected",
        base=least or most or 0,
    )


def _freshness(expectation: Expectation, table: Table, _: object, moment: datetime, zone: ZoneInfo) -> CheckQuery:
    column = table.column(expectation.columns[0])
    kind = column.type.name if isinstance(column.type, PrimitiveType) else ""
    if kind not in types.TIMES:
        raise BadCheck(f"{column.name} is {types.shown(column.type)}; freshness requires a date or a timestamp")
    oldest = back(moment, expectation.within or "0 seconds", zone)
    there = oldest.astimezone(zone).replace(tzinfo=None)
    bound = {
        types.DATE: f"DATE '{there.date().isoformat()}'",
        types.TIMESTAMP_NTZ: f"TIMESTAMP_NTZ '{there.isoformat(sep=' ')}'",
    }.get(kind, timestamp(oldest))
    newest = f"max({_of(column)})"
    return CheckQuery(
        f"SELECT count(*) AS checked, IF({newest} >= {bound}, 0, greatest(count(*), 1)) AS failed, "
        f"CAST({newest} AS STRING) AS told FROM {table.sql} AS t",
        f"no older than {expectation.within} is expected",
        base=0,
    )


def _reference(expectation: Expectation, table: Table, other: Table | None, *_: object) -> CheckQuery:
    if other is None:
        raise BadCheck(f"the table {expectation.other} does not exist any more")
    columns = [table.column(name) for name in expectation.columns]
    others = [other.column(name) for name in expectation.other_columns]
    for column, against in zip(columns, others, strict=True):
        if not _alike(column.type, against.type):
            raise BadCheck(
                f"{column.name} is {types.shown(column.type)} and {other.name}.{against.name} is "
                f"{types.shown(against.type)}; a reference requires columns of compatible types"
            )
    keys = ", ".join(f"o.{quoted(against.name)} AS k{n}" for n, against in enumerate(others))
    on = " AND ".join(f"{_of(column)} = o.k{n}" for n, column in enumerate(columns))
    there = _there(columns)
    result = f"(SELECT DISTINCT {keys}, TRUE AS is_found FROM {other.sql} AS o) AS o ON {on}"
    return CheckQuery(
        f"SELECT count(*) AS checked, count_if(o.is_found IS NULL AND {there}) AS failed "
        f"FROM {table.sql} AS t LEFT JOIN {result}",
        f"have {_listed(expectation.columns, 'and')} that {other.name} does not have in "
        f"{_listed(expectation.other_columns, 'and')}",
        f"SELECT t.* FROM {table.sql} AS t LEFT ANTI JOIN {result} WHERE {there} LIMIT {SAMPLE}",
    )


def _sql(expectation: Expectation, table: Table, *_: object) -> CheckQuery:
    rows = query_output.rows_of(query_output.query(expectation.sql), "q")
    return CheckQuery(
        f"SELECT (SELECT count(*) FROM {table.sql}) AS checked, (SELECT count(*) FROM {rows}) AS failed",
        "",
        f"SELECT * FROM {rows} LIMIT {SAMPLE}",
    )


_KINDS: dict[str, Asker] = {
    "not_null": _not_null,
    "unique": _unique,
    "accepted": _accepted,
    "range": _range,
    "pattern": _pattern,
    "rows": _rows,
    "freshness": _freshness,
    "reference": _reference,
    "sql": _sql,
}


def _of(column: Column) -> str:
    return f"t.{quoted(column.name)}"


def _there(columns: Sequence[Column]) -> str:
    """The condition that all of these have a value."""
    return "(" + " AND ".join(f"{_of(column)} IS NOT NULL" for column in columns) + ")"


def _alike(entry: Type, other: Type) -> bool:
    """Whether values of two types are compared without being turned into something else."""
    return entry == other or (_is_number(entry) and _is_number(other))


def _is_number(entry: Type) -> bool:
    return isinstance(entry, Decimal) or (isinstance(entry, PrimitiveType) and entry.name in _NUMBERS)


def _listed(words: Sequence[str], last: str) -> str:
    return f" {last} ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
