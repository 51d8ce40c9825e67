"""Refine: runs a member's query on the guarded Spark, and writes its rows into the step's table."""

from dataclasses import dataclass
from typing import NoReturn

from headgate.contracts.pipelines.definitions import Query
from headgate.contracts.pipelines.fields import quoted
from headgate.contracts.pipelines.steps import Refine
from headgate.contracts.tables import types
from headgate.contracts.tables.types import Columns, PrimitiveType
from headgate.execution.spark.errors import SqlFailed
from headgate.execution.statements import layout, query_output, schema_evolution
from headgate.execution.statements.windows import Window, window
from headgate.execution.steps.context import Context, Result, RunJob, StepFailed
from headgate.execution.steps.lake import Arguments, CommittedSnapshot, Lake, opened, shown_key

_RAISED = "USER_RAISED_EXCEPTION"
_UNBOUND = "UNBOUND_SQL_PARAMETER"
_MISSING = "TABLE_OR_VIEW_NOT_FOUND"


def run(step: Refine, context: Context) -> Result:
    """Bring the table up to date with its query."""
    with opened(context) as lake:
        return _Work(step, context, lake).result()


@dataclass(frozen=True, slots=True)
class _Work:
    """One run of a query, from its columns to what was written."""

    step: Refine
    context: Context
    lake: Lake

    def result(self) -> Result:
        """Write, and tell what was written."""
        given = self._given()
        there = self._table(given)
        written = self._write(given, there)
        rows = written.changed if self._definition.write == "merge" else written.added
        laid = {"partition_by": list(self._definition.partition_by), "sort_by": list(self._definition.sort_by)}
        return Result(rows_in=rows, rows_out=rows, bytes=written.bytes, state={"layout": laid})

    @property
    def _definition(self) -> Query:
        return self.step.query

    @property
    def _text(self) -> str:
        return query_output.query(self._definition.sql)

    @property
    def _full(self) -> bool:
        return self.context.job.full_refresh

    @property
    def _window(self) -> Window | None:
        job = self.context.job
        length = self._definition.window if self._definition.write == "window" else None
        return window(job.moment, length, job.time_zone, full=self._full) if length else None

    @property
    def _arguments(self) -> Arguments:
        return arguments(self.context.job, self._window)

    # The columns

    def _given(self) -> Columns:
        try:
            given = self.lake.query(self._text, self._arguments)
        except SqlFailed as error:
            if error.code == _MISSING:
                told = f"{error.message}. If the table does not exist yet, first run the pipeline that writes it"
                raise StepFailed(error.code, told) from None
            if error.code != _UNBOUND:
                raise
            raise StepFailed(
                "PARAMETER",
                "Unknown parameter in the SQL; the parameters are :run_time and, with write window, "
                ":window_start and :window_end",
            ) from None
        self._check(given)
        return given

    def _check(self, given: Columns) -> None:
        """See that the definition fits the columns of its query, before anything is written."""
        definition = self._definition
        names = ", ".join(column.name for column in given)
        for what, named in (("keys", definition.keys), ("time_column", _some(definition.time_column))):
            for name in named:
                if types.find(given, name) is None:
                    raise StepFailed("COLUMN", f"Unknown column {name} in {what}; the query returns {names}")
        for name in definition.keys if definition.write == "merge" else ():
            result = types.find(given, name)
            if result and not types.is_key(result.type):
                raise StepFailed("KEYS", f"{name} cannot be a key, because it is {types.shown(result.type)}")
        if definition.write == "window":
            self._time_type(given)

    def _time_type(self, columns: Columns) -> str:
        """The type of the window's column: a date or a time."""
        column = types.find(columns, self._definition.time_column or "")
        if column is None or not isinstance(column.type, PrimitiveType) or column.type.name not in types.TIMES:
            told = types.shown(column.type) if column else "missing"
            raise StepFailed(
                "COLUMN", f"time_column must be a date or a timestamp; {self._definition.time_column} is {told}"
            )
        return column.type.name

    # The table

    def _table(self, given: Columns) -> Columns:
        """The table's columns, once it can hold the rows."""
        there = self.lake.table(self.step.table)
        if there is None or self._definition.schema_changes == "overwrite":
            self._create(given, replace=there is not None)
            return given
        after = self._evolved(there, given)
        self._lay_out(after)
        return after

    def _create(self, given: Columns, *, replace: bool) -> None:
        parts = self._parts(given)
        table = self.step.table.sql
        self.lake.execute(schema_evolution.create(table, given, tuple(part.sql for part in parts), replace=replace))
        if self._definition.sort_by:
            self.lake.execute(layout.order(table, self._definition.sort_by))

    def _evolved(self, there: Columns, given: Columns) -> Columns:
        if self._definition.schema_changes == "strict":
            results = schema_evolution.differences(there, given)
            if results:
                self._refuse_schema("; ".join(results))
            return there
        try:
            after = types.merged(there, given)
        except types.IncompatibleType as error:
            self._refuse_schema(str(error))
        for statement in schema_evolution.statements(self.step.table.sql, there, after):
            self.lake.execute(statement)
            self.context.log(
                f"Changing the columns of {self.step.table}: {statement.partition(self.step.table.sql)[2]}"
            )
        return after

    def _refuse_schema(self, told: str) -> NoReturn:
        raise StepFailed(
            "SCHEMA",
            f"The result of the query does not fit {self.step.table}: {told}. Nothing was written. CAST the "
            "columns in the query, change the table, or set schema_changes",
        )

    def _parts(self, columns: Columns) -> tuple[layout.PartitionField, ...]:
        try:
            layout.check_sort(self._definition.sort_by, columns)
            return layout.parts(self._definition.partition_by, columns)
        except layout.InvalidLayout as error:
            raise StepFailed("LAYOUT", f"{error}") from None

    def _lay_out(self, columns: Columns) -> None:
        """Change partitions and order if the definition says another than the last published run."""
        parts, table = self._parts(columns), self.step.table
        laid = self.context.job.states.get(table.id, {}).get("layout", {})
        definition = self._definition
        if laid.get("partition_by", []) != list(definition.partition_by):
            for statement in layout.repartition(table.sql, self.lake.parts(table), parts):
                self.lake.execute(statement)
        if laid.get("sort_by", []) != list(definition.sort_by):
            self.lake.execute(layout.order(table.sql, definition.sort_by))

    # The rows

    def _write(self, given: Columns, there: Columns) -> CommittedSnapshot:
        table, args, window = self.step.table, self._arguments, self._window
        where = ""
        if window is not None:
            name = types.find(given, self._definition.time_column or "")
            assert name is not None  # noqa: S101 - _check has seen it
            where = window.holds(f"q.{quoted(name.name)}", self._time_type(given))
        if self._definition.write == "merge":
            self._merge(given, there)
        elif self._full or self._definition.write == "overwrite":
            self.lake.execute(
                query_output.insert(table.sql, self._text, given, there, overwrite=True, where=where), args
            )
        else:
            if window is not None:
                self._clear(window, there)
            self.lake.execute(query_output.insert(table.sql, self._text, given, there, where=where), args)
        return self.lake.written(table)

    def _clear(self, window: Window, there: Columns) -> None:
        column = quoted(self._definition.time_column or "")
        self.lake.execute(query_output.delete(self.step.table.sql, window.holds(column, self._time_type(there))))

    def _merge(self, given: Columns, there: Columns) -> None:
        keys = self._definition.keys
        if self._full:
            self.lake.execute(query_output.delete(self.step.table.sql, "TRUE"))
        try:
            self.lake.execute(query_output.merge(self.step.table.sql, self._text, given, there, keys), self._arguments)
        except SqlFailed as error:
            if error.code != _RAISED or error.message != query_output.TWICE:
                raise
            self._refuse_keys()

    def _refuse_keys(self) -> NoReturn:
        sample = self.lake.rows(query_output.duplicate_keys(self._text, self._definition.keys), self._arguments)
        told = f", such as {shown_key(sample[0])}" if sample else ""
        raise StepFailed(
            "KEYS",
            f"The query returns several rows with the same {', '.join(self._definition.keys)}{told}, which is the "
            "key. Nothing was written. Deduplicate the rows in the query, or add columns to the keys",
        )


def arguments(job: RunJob, within: Window | None = None) -> Arguments:
    """What SQL of members may name as `:run_time`, `:window_start` and `:window_end`."""
    times = {"window_start": within.start, "window_end": within.end} if within else {}
    return {"run_time": job.moment, **times}


def _some(name: str | None) -> tuple[str, ...]:
    return (name,) if name else ()
