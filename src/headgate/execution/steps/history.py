"""The history step: merge each snapshot since the last run into a history of row versions."""

from dataclasses import dataclass, replace
from typing import Any

from headgate.contracts.pipelines.definitions import History
from headgate.contracts.pipelines.fields import quoted
from headgate.contracts.pipelines.steps import KeepHistory
from headgate.contracts.tables import history, types
from headgate.contracts.tables.types import Column, Columns, PrimitiveType
from headgate.execution.spark.errors import SqlFailed
from headgate.execution.statements import (
    history_by_snapshot,
    history_by_time,
    query_output,
    schema_evolution,
    table_states,
)
from headgate.execution.statements.history_by_snapshot import Shape
from headgate.execution.statements.table_states import State
from headgate.execution.steps.context import Context, Result, StepFailed
from headgate.execution.steps.lake import Lake, at, opened, shown_key

_RAISED = "USER_RAISED_EXCEPTION"
_COMPACTED = "replace"


def run(step: KeepHistory, context: Context) -> Result:
    """Bring a history up to date with its source."""
    with opened(context) as lake:
        return _Work(step, context, lake).result()


@dataclass(frozen=True, slots=True)
class _Work:
    """One run of a history."""

    step: KeepHistory
    context: Context
    lake: Lake

    def result(self) -> Result:
        """Process each new snapshot."""
        source = self._source()
        there = self._history(source)
        known = {row["snapshot_id"]: row for row in self.lake.rows(self._about("snapshots"), most=100_000)}
        waiting = self._waiting(known)
        rows_in = rows_out = size = 0
        before = None
        for entry in waiting:
            row, done, before = known[entry.snapshot], before, entry.snapshot
            if row["operation"] == _COMPACTED and done is not None and row["parent_id"] == done:
                continue
            try:
                there = self._take_up(entry, there)
            except StepFailed as error:
                if entry is waiting[-1]:
                    raise
                self._leave_out(entry, error.message)
                continue
            written = self.lake.written(self.step.table)
            rows_in += int(dict(row["summary"]).get("total-records", 0))
            rows_out, size = rows_out + written.changed, size + written.bytes
        last = waiting[-1] if waiting else self._last
        state = {**self._settings(source), "source": last.stored() if last else None}
        return Result(rows_in=rows_in, rows_out=rows_out, bytes=size, state=state, detail={"states": len(waiting)})

    @property
    def _definition(self) -> History:
        return self.step.history

    @property
    def _kept(self) -> dict[str, Any]:
        """Where the last published run ended; nothing if all is to be made anew."""
        job = self.context.job
        return {} if job.full_refresh else job.states.get(self.step.table.id) or {}

    @property
    def _last(self) -> State | None:
        return State.parse(self._kept.get("source"))

    def _about(self, what: str) -> str:
        return f"SELECT * FROM {self.step.source.sql}.{what}"

    # What is there

    def _source(self) -> Columns:
        """The source's columns, which must allow what the definition says."""
        source = self.lake.table(self.step.source)
        if source is None:
            raise StepFailed(
                "SOURCE", f"The table {self.step.source} does not exist yet; first run the pipeline that writes it"
            )
        definition = self._definition
        taken = next((column.name for column in source if types.key(column.name) in history.RESERVED), None)
        if taken:
            raise StepFailed(
                "COLUMN",
                (
                    f"{self.step.source} has a column {taken}, which is a column of the history; rename it in a "
                    "query pipeline"
                ),
            )
        for name in (
            *definition.keys,
            *definition.ignore,
            *([definition.time_column] if definition.time_column else []),
        ):
            if types.find(source, name) is None:
                listed = ", ".join(column.name for column in source)
                raise StepFailed("COLUMN", f"{self.step.source} has no column {name}; it has {listed}")
        for name in definition.keys:
            result = types.find(source, name)
            if result and not types.is_key(result.type):
                raise StepFailed("KEYS", f"{name} cannot be a key, because it is {types.shown(result.type)}")
        self._time(source)
        return source

    def _time(self, source: Columns) -> Column | None:
        if self._definition.time_column is None:
            return None
        column = types.find(source, self._definition.time_column)
        if column is None or not isinstance(column.type, PrimitiveType) or column.type.name not in types.TIMES:
            told = types.shown(column.type) if column else "missing"
            raise StepFailed(
                "COLUMN", f"time_column must be a date or a timestamp; {self._definition.time_column} is {told}"
            )
        return column

    def _settings(self, source: Columns) -> dict[str, Any]:
        """What must not change while the history goes on."""
        time = self._time(source)
        is_local = time is not None and time.type != PrimitiveType(types.TIMESTAMP)
        return {
            "keys": [types.key(name) for name in self._definition.keys],
            "time_column": types.key(time.name) if time else None,
            "time_zone": self.context.job.time_zone if is_local else None,
        }

    def _history(self, source: Columns) -> Columns:
        """The history's columns, which is made if it is not there."""
        there = self.lake.table(self.step.table)
        time = self._time(source)
        if there is None or self.context.job.full_refresh:
            self.lake.execute(history_by_snapshot.create(self.step.table.sql, source, time, replace=there is not None))
            return source
        wrong = history.missing(there, self._definition.time_column)
        settings = self._settings(source)
        changed = [name for name, value in settings.items() if self._kept.get(name, value) != value]
        if wrong or changed:
            told = f"{', '.join(changed)} changed" if changed else f"it has different {', '.join(wrong)}"
            raise StepFailed(
                "HISTORY",
                f"{self.step.table} is not a history with these settings: {told}. Run a full refresh, which "
                f"rebuilds it from the remaining snapshots of {self.step.source}, or write to another table",
            )
        return history.of_source(there)

    # What is to be done

    def _waiting(self, known: dict[int, Any]) -> list[State]:
        """The states to take up, of those whose snapshot is still there."""
        log = [
            (row["made_current_at"], row["snapshot_id"])
            for row in self.lake.rows(self._about("history"), most=100_000)
            if row["snapshot_id"] in known
        ]
        last = self._last
        if last is None and log:
            last = self._from_versions()
            log = log[-1:] if last else log
        states = table_states.pending(log, last)
        if len(states) > table_states.MOST:
            left_out = len(states) - table_states.MOST
            self.context.log(
                f"{self.step.source} has {len(states)} new snapshots since the last run; the oldest {left_out} "
                "are skipped. Run the pipeline more often to keep them",
                "warning",
            )
            states = states[left_out:]
        if not states:
            self.context.log(f"{self.step.source} has not changed since the last run")
        return states

    def _from_versions(self) -> State | None:
        """If it is not known what was taken up last: a state before the newest, no sooner than the versions are."""
        times = f"max({quoted(history.FROM)}) AS `from`, max({quoted(history.TO)}) AS `to`"
        [row] = self.lake.rows(f"SELECT {times} FROM {self.step.table.sql}")
        latest = max((value for value in row.values() if value is not None), default=None)
        if latest is None:
            return None
        self.context.log("The snapshot of the last run is unknown; only the newest snapshot is used", "warning")
        return State(0, table_states.NEVER, latest)

    def _take_up(self, state: State, there: Columns) -> Columns:
        """Merge one snapshot; return the history's columns after it."""
        given = self.lake.table(self.step.source, state.snapshot) or ()
        definition = self._definition
        needed = (*definition.keys, *([definition.time_column] if definition.time_column else []))
        missing = next((name for name in needed if types.find(given, name) is None), None)
        if missing:
            raise StepFailed("COLUMN", f"{self.step.source} has no column {missing}")
        after = self._evolved(there, given)
        shape = Shape(
            self.step.table.sql,
            at(self.step.source, state.snapshot),
            after,
            given,
            definition.keys,
            definition.ignore,
            definition.time_column,
            definition.deletions == "close",
        )
        try:
            self.lake.execute(self._statement(shape, state))
        except SqlFailed as error:
            raise self._told(error, shape) from None
        return after

    def _statement(self, shape: Shape, state: State) -> str:
        if shape.time is not None:
            return history_by_time.by_time(shape, state.at)
        [row] = self.lake.rows(history_by_snapshot.null_keys(shape))
        return history_by_snapshot.by_snapshot(replace(shape, has_nulls=row["found"] > 0), state.at)

    def _leave_out(self, state: State, why: str) -> None:
        """Skip a snapshot that cannot be processed if a later one exists."""
        self.context.log(f"Skipped the snapshot of {state.logged:%Y-%m-%d %H:%M:%S}: {why}", "warning")

    def _evolved(self, there: Columns, given: Columns) -> Columns:
        try:
            after = types.merged(there, given)
        except types.IncompatibleType as error:
            raise StepFailed(
                "SCHEMA",
                f"{self.step.source} is no longer compatible with its history: {error}. Run a full refresh, or "
                "write to another table",
            ) from None
        for statement in schema_evolution.statements(self.step.table.sql, there, after):
            self.lake.execute(statement)
        return after

    def _told(self, error: SqlFailed, shape: Shape) -> Exception:
        """The error message of a snapshot that cannot be processed."""
        if error.code != _RAISED:
            return error
        keys, time = ", ".join(shape.keys), shape.time
        told = {
            query_output.TWICE: (
                history_by_snapshot.duplicate_keys,
                f"has several rows with the same {keys}",
                "Add columns to the keys, or set a time_column",
            ),
            history_by_time.AMBIGUOUS: (
                history_by_time.ambiguous,
                f"has rows with the same {keys} and {time}, and different values",
                "Make the times unique",
            ),
            history_by_time.UNTIMED: (
                history_by_time.untimed,
                f"has a row whose {time} is NULL",
                "Fill the time in a query pipeline before the history",
            ),
        }.get(error.message)
        if told is None:
            return error
        sample, wrong, advice = told
        rows = self.lake.rows(sample(shape))
        such = f", such as {shown_key(rows[0])}" if rows else ""
        return StepFailed("KEYS", f"{self.step.source} {wrong}{such}. {advice}")
