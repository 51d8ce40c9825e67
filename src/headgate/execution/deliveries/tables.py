"""Deliver rows to a database table: Spark writes a staging table, its values are checked, and one transaction moves
them. The transaction also inserts the run's id into a ledger table. A retried run checks the ledger, so its rows are
delivered exactly once, wherever it was killed. Each attempt has its own staging table, whose name its connection locks;
a later attempt drops unlocked staging tables.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from headgate.contracts.external_systems.endpoints import Endpoint
from headgate.contracts.pipelines.delivery_targets import table_of
from headgate.execution.connection_checks import mysql as mysql_answers
from headgate.execution.connection_checks import postgresql as postgresql_answers
from headgate.execution.connection_checks.checks import CheckRequest
from headgate.execution.deliveries.column_mapping import ColumnMapping, map_columns, new_columns
from headgate.execution.deliveries.database import CUT_OFF, LEDGER, TAKEN, Database, TargetTable, staging_name
from headgate.execution.deliveries.mysql import MySql
from headgate.execution.deliveries.postgresql import PostgreSql
from headgate.execution.deliveries.rows import SnapshotRows
from headgate.execution.steps.context import Result, StepFailed
from headgate.execution.steps.lake import plain
from headgate.kit.crash_points import crash_point

FUNCTION = "headgate.execution.deliveries.spark.tables:stage"
Connect = Callable[..., AbstractContextManager[Any]]
_KINDS: dict[str, tuple[Connect, type[Database]]] = {
    "postgresql": (postgresql_answers.signed_in, PostgreSql),
    "mysql": (mysql_answers.signed_in, MySql),
}
_LEDGER_COLUMNS = (
    "run_id varchar(40) NOT NULL",
    "step integer NOT NULL",
    "target varchar(200) NOT NULL",
    "snapshot varchar(20)",
    "row_count bigint NOT NULL",
    "delivered_at timestamp DEFAULT CURRENT_TIMESTAMP NOT NULL",
    "PRIMARY KEY (run_id, step)",
)


def deliver(rows: SnapshotRows, endpoint: Endpoint) -> Result:
    """Deliver to a table exactly once, however often the run is retried."""
    try:
        with opened(rows, endpoint) as database:
            count = _Delivery(rows, endpoint, database).made()
    except StepFailed as failure:
        rows.context.check_stopped()
        if failure.code != CUT_OFF:
            raise
        count = _after_all(rows, endpoint, failure)
    return Result(rows_in=count, rows_out=count, detail=rows.detail)


def _after_all(rows: SnapshotRows, endpoint: Endpoint, failure: StepFailed) -> int:
    """If the connection was lost during commit, look up the ledger over a new connection."""
    try:
        with opened(rows, endpoint) as database:
            count = _Delivery(rows, endpoint, database).delivered()
    except StepFailed:
        count = None
    if count is None:
        raise failure
    return count


@contextmanager
def opened(rows: SnapshotRows, endpoint: Endpoint) -> Iterator[Database]:
    """A connection to the destination, which is interrupted when the run ends."""
    context = rows.context
    asked = CheckRequest(endpoint, context.settings, time.monotonic() + context.job.seconds, writes=True)
    connect, kind = _KINDS[endpoint.kind]
    with connect(asked, writing=True) as connection:
        database = kind(asked, connection)
        database.prepare()
        with context.on_stop(database.interrupt):
            yield database


@dataclass(slots=True)
class _Delivery:
    """One delivery over one connection."""

    rows: SnapshotRows
    endpoint: Endpoint
    database: Database

    @property
    def _target(self) -> TargetTable:
        return TargetTable(*table_of(self.rows.step.sending.target))

    @property
    def _staging(self) -> TargetTable:
        job = self.rows.context.job
        return TargetTable(self._target.schema, staging_name(job.id, self.rows.number, job.fence))

    @property
    def _ledger(self) -> TargetTable:
        return TargetTable(self._target.schema, LEDGER)

    @property
    def _keys(self) -> tuple[str, ...]:
        sending = self.rows.step.sending
        return sending.keys if sending.write == "upsert" else ()

    def made(self) -> int:
        """Deliver, unless it was done before; return the number of rows."""
        there = self.database.look(self._target)
        self._make_ledger()
        self._sweep()
        count = self.delivered()
        if count is not None:
            self.rows.context.log(
                f"An earlier attempt of this run has already delivered {count} rows to {self._target}"
            )
            return count
        plan = map_columns(self.database, self._target, self.rows.step.table, self.rows.columns, there, self._keys)
        self.database.hold(self._staging)
        try:
            return self._moved(plan, self._staged(plan), is_new=there is None)
        finally:
            with suppress(StepFailed):
                self.database.drop(self._staging)
            crash_point("delivery: staging dropped")

    def delivered(self) -> int | None:
        """The number of rows that this step has delivered; None if it has not."""
        asked = f"SELECT row_count FROM {self.database.name(self._ledger)} WHERE run_id = %s AND step = %s"
        results = self.database.rows(asked, self.rows.context.job.id, self.rows.number)
        return int(results[0][0]) if results else None

    def _make_ledger(self) -> None:
        """Create the ledger table if it does not exist; a concurrent delivery may create it too."""
        if self.database.look(self._ledger) is None:
            try:
                self.database.create(self._ledger, _LEDGER_COLUMNS)
            except StepFailed as failure:
                if failure.code == "DENIED_THERE":
                    told = f"A delivery creates its own tables next to {self._target}: grant the user CREATE there"
                    raise StepFailed(failure.code, f"{told}. {failure.message}") from None
                if failure.code != TAKEN:
                    raise

    def _sweep(self) -> None:
        """Drop the staging tables of dead runs. Tables that another connection locks or drops are skipped."""
        for name in self.database.staged(self._target.schema):
            left = TargetTable(self._target.schema, name)
            if self.database.hold(left):
                with suppress(StepFailed):
                    self.database.drop(left)
                    self.rows.context.log(f"Dropped {left}, the staging table of an earlier run")
                self.database.release(left)

    # Staging

    def _staged(self, plan: ColumnMapping) -> int:
        """Have Spark write the staging table; return its number of rows."""
        crash_point("delivery: before staging")
        columns = [
            f"{self.database.quoted(column.staged)} {self.database.type_of(column.given.type, staged=True)}"
            for column in plan.columns
        ]
        self.database.create(self._staging, columns, staged=True)
        crash_point("delivery: staging made")
        context, config = self.rows.context, self.endpoint.config
        arguments = {
            **self.rows.arguments(),
            "kind": self.endpoint.kind,
            "config": config,
            "secrets": self.endpoint.secrets,
            "folder": str(context.folder / f"deliver-{self.rows.number}"),
            "staging": self.database.name(self._staging),
            "staged": [column.staged for column in plan.columns],
        }
        sent = context.platform.call(FUNCTION, arguments, context, hosts=[(config["host"], config["port"])])
        crash_point("delivery: rows staged")
        self.database.ready(
            self._staging,
            [(self.database.quoted(column.staged), column.given.type) for column in plan.columns if column.is_key],
        )
        count = int(self.database.rows(f"SELECT COUNT(*) FROM {self.database.name(self._staging)}")[0][0])
        if count != sent["rows"]:
            told = (
                f"{sent['rows']} rows were sent, but {count} arrived in the staging table of {self._target}; "
                "nothing was delivered"
            )
            raise StepFailed("NOT_ALL_ARRIVED", f"{told}. Try again", passing=True)
        self._check(plan)
        return count

    def _check(self, plan: ColumnMapping) -> None:
        """Check that every value fits its column, and that each key is unique."""
        staging = f"{self.database.name(self._staging)} AS s"
        checked = [column for column in plan.columns if column.fit.holds]
        if checked:
            sums = ", ".join(f"COALESCE(SUM(CASE WHEN {column.misses} THEN 1 ELSE 0 END), 0)" for column in checked)
            counts = self.database.rows(f"SELECT {sums} FROM {staging}")[0]
            for mapped_column, count in zip(checked, counts, strict=True):
                if count:
                    sample = self.database.rows(
                        f"SELECT {mapped_column.source} FROM {staging} WHERE {mapped_column.misses} LIMIT 1"
                    )
                    raise StepFailed(
                        "VALUE",
                        f"{int(count)} values of {mapped_column.given.name} do not fit {mapped_column.there} in "
                        f"{self._target}, such as {plain(sample[0][0])!r}. Nothing was delivered. Change the "
                        "values in a query pipeline, or the column in the target",
                    )
        keys = [column for column in plan.columns if column.is_key]
        if keys:
            self._check_keys(staging, [column.source for column in keys])

    def _check_keys(self, staging: str, keys: list[str]) -> None:
        names, listed = ", ".join(self._keys), ", ".join(keys)
        empty = " OR ".join(f"{key} IS NULL" for key in keys)
        missing = int(self.database.rows(f"SELECT COUNT(*) FROM {staging} WHERE {empty}")[0][0])
        if missing:
            told = f"{missing} rows have no {names}, which is a key; nothing was delivered"
            raise StepFailed("KEYS", f"{told}. Filter these rows in a query pipeline")
        twice = self.database.rows(f"SELECT {listed} FROM {staging} GROUP BY {listed} HAVING COUNT(*) > 1 LIMIT 1")
        if twice:
            shown = ", ".join(repr(plain(value)) for value in twice[0])
            told = f"Several rows have the same key {names}, such as {shown}; nothing was delivered"
            raise StepFailed("KEYS", f"{told}. Deduplicate the rows in a query pipeline, or add columns to the keys")

    # Moving

    def _moved(self, plan: ColumnMapping, count: int, *, is_new: bool) -> int:
        """Move the rows and insert into the ledger, in one transaction."""
        # The last question: from here on, what is done is done.
        self.rows.remember()
        if is_new and not self.database.creates_inside:
            self.database.create(self._target, new_columns(self.database, plan))
        crash_point("delivery: before the transaction")
        try:
            with self.database.transaction(self._target):
                # Later runs wait for this one from here on: it must still be the one that is to deliver.
                self.rows.remember()
                self._write_down(count)
                crash_point("delivery: written down")
                if is_new and self.database.creates_inside:
                    self.database.create(self._target, new_columns(self.database, plan))
                self._move(plan, count)
                crash_point("delivery: rows moved")
        except StepFailed as failure:
            before = self.delivered() if failure.code == TAKEN else None
            if before is None:
                raise
            return before
        crash_point("delivery: committed")
        self.rows.context.log(f"Delivered {count} rows to {self._target}")
        return count

    def _write_down(self, count: int) -> None:
        values = (self.rows.context.job.id, self.rows.number, str(self._target), self.rows.snapshot, count)
        names = "run_id, step, target, snapshot, row_count"
        self.database.execute(
            f"INSERT INTO {self.database.name(self._ledger)} ({names}) VALUES (%s, %s, %s, %s, %s)",
            *values,
        )

    def _move(self, plan: ColumnMapping, count: int) -> None:
        target, staging = self.database.name(self._target), self.database.name(self._staging)
        if self.rows.step.sending.write == "overwrite":
            self.database.execute(f"DELETE FROM {target}")
        same = " AND ".join(f"t.{column.target} = {column.fit.same}" for column in plan.columns if column.is_key)
        others = [(column.target, column.fit.value) for column in plan.columns if not column.is_key]
        if same and others:
            self.database.execute(self.database.update(target, staging, others, same))
        new = f" WHERE NOT EXISTS (SELECT 1 FROM {target} AS t WHERE {same})" if same else ""
        names, values = (
            ", ".join(column.target for column in plan.columns),
            ", ".join(column.fit.value for column in plan.columns),
        )
        moved = self.database.execute(f"INSERT INTO {target} ({names}) SELECT {values} FROM {staging} AS s{new}")
        if same:
            self._check_same(plan, same, count)
        elif moved != count:
            told = f"Only {moved} of {count} rows would be written to {self._target}, so nothing was delivered"
            raise StepFailed("REFUSED_THERE", f"{told}; look for rules or triggers of the target that skip rows")

    def _check_same(self, plan: ColumnMapping, same: str, count: int) -> None:
        """Check that each staged row matches at most one row of the target, as the target compares keys."""
        target, staging = self.database.name(self._target), self.database.name(self._staging)
        keys = ", ".join(f"t.{column.target}" for column in plan.columns if column.is_key)
        counted = f"SELECT COUNT(*) AS n FROM {target} AS t JOIN {staging} AS s ON {same} GROUP BY {keys}"
        asked = f"SELECT COALESCE(SUM(n), 0), COALESCE(MAX(n), 0) FROM ({counted}) AS counted"
        pairs, most = self.database.rows(asked)[0]
        if int(most) > 1 or int(pairs) != count:
            raise StepFailed(
                "KEYS",
                f"{', '.join(self._keys)} is not unique in {self._target}: several rows have the same key, or the "
                "target treats different keys as equal. Nothing was delivered. Create a unique index on these "
                "columns",
            )
