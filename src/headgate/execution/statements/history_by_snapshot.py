"""The MERGE of a table snapshot into its history. Columns are numbered inside the statement, so that their names cannot
collide with ours.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from headgate.contracts.pipelines.fields import quoted
from headgate.contracts.tables.history import CURRENT, FROM, TO, columns
from headgate.contracts.tables.types import Column, Columns, comparable, key
from headgate.execution.statements import query_output, schema_evolution
from headgate.execution.statements.windows import timestamp

PROPERTIES = {"write.merge.mode": "merge-on-read"}
"""A few versions of many change at a time: what they were is marked as deleted, and the files stay."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A history: its table, its source as of one snapshot, and how rows are told apart and compared."""

    table: str
    source: str
    columns: Columns
    """The source's columns, as the history has them."""
    given: Columns
    """Those that the source has in the snapshot."""
    keys: tuple[str, ...]
    ignore: tuple[str, ...] = ()
    time: str | None = None
    closes: bool = True
    """Whether a row that is gone ends its version."""
    has_nulls: bool = True
    """Whether keys may be NULL; rows are found faster if not."""

    def number(self, name: str) -> int:
        """The number of a column."""
        return [key(column.name) for column in self.columns].index(key(name))

    @property
    def key_numbers(self) -> list[int]:
        """The numbers of the keys."""
        return [self.number(name) for name in self.keys]

    @property
    def compared(self) -> list[int]:
        """The numbers of the columns whose change makes a version."""
        left_out = {key(name) for name in (*self.keys, *self.ignore, self.time or "")}
        return [n for n, column in enumerate(self.columns) if key(column.name) not in left_out]

    def same(self, left: Callable[[int], str], right: Callable[[int], str]) -> str:
        """The condition that two rows are equal in the compared columns; NULLs are equal."""
        results = [
            f"{comparable(left(n), self.columns[n].type)} <=> {comparable(right(n), self.columns[n].type)}"
            for n in self.compared
        ]
        return f"({' AND '.join(results)})" if results else "TRUE"

    def rows(self) -> str:
        """The source rows, with numbered columns."""
        results = schema_evolution.values(self.given, self.columns, "s")
        listed = ", ".join(f"{value} AS c{n}" for n, value in enumerate(results))
        return f"SELECT {listed} FROM {self.source} AS s"


def create(table: str, source: Columns, time: Column | None, *, replace: bool = False) -> str:
    """Create the history table, partitioned into current and past versions."""
    return schema_evolution.create(
        table, columns(source, time), (quoted(CURRENT),), replace=replace, properties=PROPERTIES
    )


def by_snapshot(shape: Shape, at: datetime) -> str:
    """Merge a snapshot whose rows are valid from its time; keys must be unique."""
    time, keys = timestamp(at), shape.key_numbers
    named = [quoted(shape.columns[n].name) for n in keys]
    kept = [(n, shape.columns[n]) for n in (*keys, *shape.compared)]
    there = ", ".join(f"{quoted(column.name)} AS v{n}" for n, column in kept)
    equal = "<=>" if shape.has_nulls else "="
    on = " AND ".join(f"s.c{n} {equal} v.v{n}" for n in keys)
    result = " AND ".join(f"h.{name} {equal} e.v{n}" for n, name in zip(keys, named, strict=True))
    insert, new = _inserted(shape, lambda n: f"e.c{n}", time)
    source = query_output.unique(f"({shape.rows()})", [f"c{n}" for n in keys], ())
    return f"""\
MERGE INTO {shape.table} AS h
USING (
  SELECT * FROM (
    SELECT * FROM (SELECT *, TRUE AS given FROM ({source})) AS s
    {"FULL" if shape.closes else "LEFT"} OUTER JOIN (
      SELECT {there}, TRUE AS kept FROM {shape.table} WHERE {quoted(CURRENT)}
    ) AS v ON {on}
    WHERE given IS NULL OR kept IS NULL OR NOT {shape.same(lambda n: f"s.c{n}", lambda n: f"v.v{n}")}
  ) AS changed
  LATERAL VIEW explode(
    CASE WHEN given IS NULL THEN array(FALSE) WHEN kept IS NULL THEN array(TRUE) ELSE array(FALSE, TRUE) END
  ) AS begins
) AS e
ON h.{quoted(CURRENT)} AND NOT e.begins AND {result}
WHEN MATCHED THEN UPDATE SET h.{quoted(TO)} = {time}, h.{quoted(CURRENT)} = FALSE
WHEN NOT MATCHED AND e.begins THEN INSERT ({insert}) VALUES ({new})"""


def _inserted(shape: Shape, value: Callable[[int], str], start: str) -> tuple[str, str]:
    """The columns and values of a version that holds from now on."""
    names = [quoted(column.name) for column in shape.columns] + [quoted(name) for name in (FROM, TO, CURRENT)]
    results = [value(n) for n in range(len(shape.columns))] + [start, "CAST(NULL AS TIMESTAMP)", "TRUE"]
    return ", ".join(names), ", ".join(results)


def null_keys(shape: Shape) -> str:
    """The numbers of source rows and current versions with NULL keys."""
    missing = " OR ".join(f"{quoted(name)} IS NULL" for name in shape.keys)
    return (
        f"SELECT (SELECT count(*) FROM {shape.source} WHERE {missing}) + "
        f"(SELECT count(*) FROM {shape.table} WHERE {quoted(CURRENT)} AND ({missing})) AS found"
    )


def duplicate_keys(shape: Shape) -> str:
    """A key that several rows of the snapshot have."""
    by = _keys_given(shape, shape.keys)
    return f"SELECT {by} FROM {shape.source} AS s GROUP BY {by} HAVING count(*) > 1 LIMIT 1"


def _keys_given(shape: Shape, names: Sequence[str]) -> str:
    return ", ".join(f"s.{quoted(name)}" for name in names)
