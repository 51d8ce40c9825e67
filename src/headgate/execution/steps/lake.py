"""The lakehouse as a step's SQL sees it: what tables and queries give, statements run to their end, what they wrote."""

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

from headgate.contracts.pipelines.steps import LakeItem
from headgate.contracts.tables import types
from headgate.execution.spark.errors import SqlFailed
from headgate.execution.statements import layout, query_output
from headgate.execution.steps.context import Context, Session, StepFailed

MOST_TEXT = 1000
"""How much of a value is shown."""

MISSING = {"TABLE_OR_VIEW_NOT_FOUND", "SCHEMA_NOT_FOUND"}
"""The codes of what a run may not know of, or what is not there."""
_SYNTAX = {"PARSE_SYNTAX_ERROR"}
_MERGED = tuple(f"spark.merge-into.num-target-rows-{value}" for value in ("updated", "inserted", "deleted"))

Arguments = Mapping[str, datetime | str | int]


@dataclass(frozen=True, slots=True)
class CommittedSnapshot:
    """What a statement committed, as its snapshot says."""

    added: int = 0
    changed: int = 0
    """Rows that a MERGE inserted, updated or deleted."""
    bytes: int = 0


class Lake:
    """A session of the run's, and where to tell how it goes."""

    def __init__(self, session: Session, context: Context) -> None:
        self._session, self._context = session, context

    def rows(self, sql: str, args: Arguments | None = None, *, most: int | None = None) -> list[dict[str, Any]]:
        """The rows of a query."""
        self._context.check_stopped()
        answer = self._session.run(sql, self._context.progress, args=args, max_rows=most)
        return [row for batch in answer.batches for row in batch.to_pylist()]

    def execute(self, sql: str, args: Arguments | None = None) -> None:
        """Run a statement to its end."""
        self.rows(sql, args)

    def query(self, text: str, args: Arguments | None = None) -> types.Columns:
        """The columns that a member's query gives. It must be one query, by itself and as a part of another."""
        # Without values, Spark says where in the text a mistake is.
        args = args if ":" in text else None
        columns = self._columns(text, args)
        try:
            self._session.schema(f"SELECT * FROM {query_output.rows_of(text, 'q')}", args)
        except SqlFailed as error:
            if error.code not in _SYNTAX:
                raise
            raise StepFailed(
                "NOT_A_QUERY", "The SQL of this step is not one query: write a SELECT, without other statements"
            ) from None
        return columns

    def table(self, item: LakeItem, version: int | None = None) -> types.Columns | None:
        """The columns of a table, now or in a snapshot; None if it has none yet."""
        try:
            return self._columns(f"SELECT * FROM {at(item, version)}", None)
        except SqlFailed as error:
            if error.code in MISSING:
                return None
            raise

    def parts(self, item: LakeItem) -> tuple[layout.PartitionField, ...]:
        """By what a table is partitioned."""
        return layout.described(self.rows(f"DESCRIBE TABLE {item.sql}"))

    def written(self, item: LakeItem) -> CommittedSnapshot:
        """What the newest snapshot of a table says of itself."""
        sql = f"SELECT committed_at, summary FROM {item.sql}.snapshots"
        results = self.rows(sql, most=100_000)
        if not results:
            return CommittedSnapshot()
        newest = max(enumerate(results), key=lambda value: (value[1]["committed_at"], value[0]))[1]
        told = dict(newest["summary"])
        added = int(told.get("added-records", 0))
        merged = [int(told[value]) for value in _MERGED if value in told]
        # A MERGE that can only insert is a plain append.
        return CommittedSnapshot(added, sum(merged) if merged else added, int(told.get("added-files-size", 0)))

    def _columns(self, sql: str, args: Arguments | None) -> types.Columns:
        self._context.check_stopped()
        try:
            return types.of_arrow(self._session.schema(sql, args))
        except types.InvalidColumns as error:
            raise StepFailed("COLUMN", str(error)) from None
        except TypeError:
            raise StepFailed(
                "COLUMN", "A column has a type that tables do not support, such as an interval; CAST it to another type"
            ) from None


@contextmanager
def opened(context: Context) -> Iterator[Lake]:
    """A session for one step."""
    with context.sql() as session:
        yield Lake(session, context)


def at(item: LakeItem, version: int | None) -> str:
    """A table, or what it was in a snapshot."""
    return item.sql if version is None else f"{item.sql} VERSION AS OF {version}"


def plain(value: Any) -> Any:
    """A value as JSON holds it, for people to look at."""
    match value:
        case None | bool() | int():
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case str():
            return value if len(value) <= MOST_TEXT else value[:MOST_TEXT] + "…"
        case bytes():
            return plain("0x" + value[:MOST_TEXT].hex())
        case datetime() | date() | time():
            return value.isoformat()
        case Decimal() | timedelta():
            return str(value)
        case dict():
            return {str(name): plain(value) for name, value in value.items()}
        case [tuple(), *_]:
            return {str(name): plain(value) for name, value in value}
        case list() | tuple():
            return [plain(value) for value in value[:100]]
    return plain(str(value))


def shown_key(row: Mapping[str, Any]) -> str:
    """A key for a message, as in: id = 5, region = 'north'."""
    return ", ".join(f"{name} = {value!r}" for name, value in plain(dict(row)).items())
