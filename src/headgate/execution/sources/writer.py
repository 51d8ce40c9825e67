"""Write the rows of a stream to its table, and rejected rows to the table next to it."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from headgate.contracts.pipelines.fields import quoted
from headgate.contracts.pipelines.streams import Stream
from headgate.execution.sources import cursor as state
from headgate.execution.sources import tables
from headgate.execution.sources.conform import Plan, can_fail
from headgate.execution.sources.readers import FAULT, FILE, RECORD, SPOILT, CursorPosition
from headgate.execution.spark.errors import SqlFailed
from headgate.execution.spark.step_session import Step

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

NOT_THERE = "TABLE_OR_VIEW_NOT_FOUND"
_SEEN, _BAD, _HIGHEST = "seen", "bad", "highest"
_PLACE = "__headgate_place"
_TEXT = "__headgate_text"
_ADVISED = 20


@dataclass(frozen=True)
class TableState:
    """The state of the table: its columns (None if it does not exist), whether it ever had rows, and its snapshots."""

    columns: "StructType | None"
    has_rows: bool
    snapshots: frozenset[int] = frozenset()


@dataclass
class Counts:
    """The row counts of a write, and the state for the next run."""

    rows_in: int = 0
    rows_out: int = 0
    rejected: int = 0
    bytes: int = 0
    state: dict[str, Any] | None = None
    detail: dict[str, Any] = field(default_factory=dict)

    def told(self) -> dict[str, Any]:
        """The counts as the step reports them."""
        return {
            "rows_in": self.rows_in,
            "rows_out": self.rows_out,
            "rejected": self.rejected,
            "bytes": self.bytes,
            "state": self.state,
            "detail": self.detail,
        }


@dataclass(frozen=True)
class Writer:
    """Writes one stream."""

    step: Step
    stream: Stream
    plan: Plan
    target: TableState
    table: str
    beside: str
    moment: datetime

    def write(
        self, rows: "DataFrame", old: dict[str, Any] | None, since: CursorPosition | None, *, replaces: bool
    ) -> Counts:
        """Write conformed rows in the stream's write mode, or replace the table."""
        self._prepare()
        merges = self.stream.write == "merge" and not replaces
        if self.plan.keys or since is not None or not self._counts_afterwards(rows, replaces=replaces):
            self.step.log("Reading all rows into a temporary copy")
            rows = rows.localCheckpoint()
            told = rows.agg(*self._metrics()).collect()[0].asDict()
            dropped = self._written(rows, told, since, merges=merges, replaces=replaces)
        else:
            told, dropped = self._in_one_go(rows, replaces=replaces), 0
        rejected = self._reject(rows, told[_BAD], replaces=replaces, repeats=since is not None)
        value = state.text(told.get(_HIGHEST), self.plan.cursor_kind or "")
        return Counts(
            told[_SEEN],
            told[_SEEN] - told[_BAD] - dropped,
            rejected,
            self.plan.read.bytes if self.plan.read.bytes is not None else self._added()[1],
            state.after(old, value, self.plan.cursor_kind or "") if self.stream.read == "incremental" else None,
            {"columns": len(self.plan.cells)},
        )

    # The table

    def _prepare(self) -> None:
        """Create the table, or add and widen its columns."""
        wanted, there = self.plan.columns, self.target.columns
        if there is None:
            self.step.log(f"Creating {self.table} with {len(wanted.fields)} columns")
            self.step.spark.sql(tables.made(self.table, wanted))
            return
        if there.simpleString() == wanted.simpleString():
            return
        if not self.target.has_rows and self.plan.read.texts:
            # One that never had a row has no types yet.
            self.step.spark.sql(tables.made(self.table, wanted, anew=True))
            return
        for statement in tables.changes(self.table, there, wanted):
            self.step.spark.sql(statement)

    def _added(self) -> tuple[int, int]:
        """The rows and bytes that were committed since the write began."""
        from pyspark.sql import functions as f

        told = [f.col("summary").getItem(name).cast("bigint") for name in ("added-records", "added-files-size")]
        rows = self.step.spark.table(f"{self.table}.snapshots").select("snapshot_id", *told).collect()
        new = [row for row in rows if row[0] not in self.target.snapshots]
        return sum(row[1] or 0 for row in new), sum(row[2] or 0 for row in new)

    # Rows

    def _metrics(self) -> list[Any]:
        from pyspark.sql import functions as f

        columns = [f.count(f.lit(1)).alias(_SEEN), f.count(f.col(FAULT)).alias(_BAD)]
        if self.plan.cursor is not None and self.plan.cursor_kind is not None:
            columns.append(state.highest(f.col(self.plan.cursor), self.plan.cursor_kind).alias(_HIGHEST))
        return columns

    def _good(self, rows: "DataFrame") -> "DataFrame":
        from pyspark.sql import functions as f

        frame = rows.filter(f.col(FAULT).isNull()) if can_fail(rows) else rows
        return frame.select(*[quoted(cell.name) for cell in self.plan.cells])

    def _counts_afterwards(self, rows: "DataFrame", *, replaces: bool) -> bool:
        """Whether rows can be counted after they were written: read again, or told by the commit and the table."""
        if can_fail(rows):
            return self.plan.read.again
        return self.plan.cursor is None or replaces or not self.target.has_rows

    def _in_one_go(self, rows: "DataFrame", *, replaces: bool) -> dict[str, Any]:
        """Write rows as they come, and count them: on the way if some may be rejected, else from what was written."""
        self.step.log(f"{'Replacing the rows of' if replaces else 'Appending to'} {self.table}")
        if can_fail(rows):
            return self._observed(rows, replaces=replaces)
        self._put(self._good(rows), replaces=replaces)
        return {_SEEN: self._added()[0], _BAD: 0, _HIGHEST: self._highest_written()}

    def _observed(self, rows: "DataFrame", *, replaces: bool) -> dict[str, Any]:
        from pyspark.sql import Observation

        observation = Observation("rows")
        self._put(self._good(rows.observe(observation, *self._metrics())), replaces=replaces)
        counted = observation.get
        if not {_SEEN, _BAD} <= counted.keys():
            # A Connect server waits 100 ms for an observation after the write; then it answers without the metrics.
            self.step.log("Spark did not report the row counts in time; reading the source again to count")
            counted = rows.agg(*self._metrics()).collect()[0].asDict()
        return {_HIGHEST: None, **counted}

    def _highest_written(self) -> Any:
        """The highest cursor value in the table, which contains only the rows of this write."""
        from pyspark.sql import functions as f

        if self.plan.cursor is None or self.plan.cursor_kind is None:
            return None
        highest = state.highest(f.col(quoted(self.plan.cursor)), self.plan.cursor_kind)
        return self.step.spark.table(self.table).agg(highest).collect()[0][0]

    def _put(self, rows: "DataFrame", *, replaces: bool) -> None:
        from pyspark.sql import functions as f

        writer = rows.writeTo(self.table)
        if replaces:
            writer.overwrite(f.lit(col=True))
        else:
            writer.append()

    def _written(
        self, rows: "DataFrame", told: dict[str, Any], since: CursorPosition | None, *, merges: bool, replaces: bool
    ) -> int:
        """Write rows that were kept aside; how many of them were left out, as duplicates."""
        good = self._good(rows)
        count = told[_SEEN] - told[_BAD]
        # Which files were landed is published with the table: without a commit, those of bad rows alone come again.
        is_noted = bool(told[_BAD]) and since is None
        if self.plan.keys:
            distinct = good.select(*map(quoted, self.plan.keys)).distinct().count()
            good, left = (self._last(good), count - distinct) if distinct < count else (good, 0)
            if left:
                self.step.log(f"Dropped {left:,} rows with duplicate keys; the last row of each key is kept")
        else:
            left = 0
        if merges and self.target.has_rows:
            self.step.log(f"Merging {count - left:,} rows into {self.table}")
            if count:
                self._merge(good)
            elif is_noted:
                self._put(good, replaces=False)
            return left
        if since is not None and not merges and not replaces and count:
            good = self._unseen(good, since)
            left = count - good.count()
        self.step.log(f"{'Replacing the rows of' if replaces else 'Appending to'} {self.table}")
        if replaces or count - left or is_noted:
            self._put(good, replaces=replaces)
        return left

    def _last(self, rows: "DataFrame") -> "DataFrame":
        """The last row per key: by cursor, and among equals by content, so that the result is deterministic."""
        from pyspark.sql import Window
        from pyspark.sql import functions as f

        content = f.to_json(f.struct(*[f.col(quoted(cell.name)) for cell in self.plan.cells]))
        order = [f.desc_nulls_last(quoted(self.plan.cursor))] if self.plan.cursor else []
        window = Window.partitionBy(*map(quoted, self.plan.keys)).orderBy(*order, f.desc(f.sha2(content, 256)))
        return rows.withColumn(_PLACE, f.row_number().over(window)).filter(f.col(_PLACE) == 1).drop(_PLACE)

    def _merge(self, rows: "DataFrame") -> None:
        rows.createOrReplaceTempView("landing")
        same = " AND ".join(f"t.{quoted(key)} = s.{quoted(key)}" for key in self.plan.keys)
        cursor = quoted(self.plan.cursor) if self.plan.cursor else None
        # What is older than what is there changes nothing.
        newer = f" AND (t.{cursor} IS NULL OR s.{cursor} >= t.{cursor})" if cursor else ""
        filled = [quoted(name) for name in self.plan.filled]
        changed = [name for name in filled if name not in {quoted(key) for key in self.plan.keys}]
        every = [quoted(cell.name) for cell in self.plan.cells]
        update = f"WHEN MATCHED{newer} THEN UPDATE SET {', '.join(f't.{value} = s.{value}' for value in changed)} "
        self.step.spark.sql(
            f"MERGE INTO {self.table} t USING landing s ON {same} {update if changed else ''}"
            f"WHEN NOT MATCHED THEN INSERT ({', '.join(every)}) VALUES ({', '.join(f's.{value}' for value in every)})"
        )

    def _unseen(self, rows: "DataFrame", since: CursorPosition) -> "DataFrame":
        """Filter rows that the last run already appended: those with its highest cursor value are read again."""
        from pyspark.sql import Window
        from pyspark.sql import functions as f

        last = state.literal(state.comparable(since.value, since.type), since.type)
        at_last = f.col(quoted(self.plan.cursor or "")) == last
        text = f.to_json(f.struct(*[f.col(quoted(cell.name)) for cell in self.plan.cells]))
        there = self.step.spark.table(self.table).filter(at_last).select(text.alias(_TEXT))
        had = there.groupBy(_TEXT).agg(f.count(f.lit(1)).alias("had"))
        number = f.row_number().over(Window.partitionBy(_TEXT).orderBy(f.lit(1)))
        again = rows.filter(at_last).withColumn(_TEXT, text).withColumn(_PLACE, number)
        new = again.join(had, _TEXT, "left").filter(f.col("had").isNull() | (f.col(_PLACE) > f.col("had")))
        return rows.filter(~at_last).unionByName(new.select(*rows.columns))

    # Rejected rows

    def _reject(self, rows: "DataFrame", bad: int, *, replaces: bool, repeats: bool) -> int:
        """Write rejected rows to their own table with the reason; return their number."""
        there = self._is_there()
        if not bad:
            if replaces and there:
                self.step.spark.sql(f"DELETE FROM {self.beside} WHERE true")
            return 0
        frame = self._rejected(rows)
        if not there:
            self.step.spark.sql(tables.made(self.beside, frame.schema))
        if repeats and there:
            # Those of an earlier run that were read again.
            known = self.step.spark.table(self.beside).select("record", "stream").distinct()
            frame = frame.join(known, ["record", "stream"], "left_anti").select(*frame.columns)
            bad = frame.count()
        self.step.log(
            f"{bad:,} rows were rejected; {self.beside} contains them with the reason", "warning" if bad else "info"
        )
        if bad or replaces:
            writer = frame.writeTo(self.beside)
            if replaces:
                from pyspark.sql import functions as f

                writer.overwrite(f.lit(col=True))
            else:
                writer.append()
            self._advise()
        return bad

    def _advise(self) -> None:
        """Log what to do about files with rejected rows in the wrong encoding."""
        from pyspark.sql import functions as f

        frame = self.step.spark.table(self.beside).filter(
            (f.col("at") == f.lit(self.moment).cast("timestamp"))
            & (f.col("stream") == self.stream.name)
            & f.endswith(f.col("reason"), f.lit(SPOILT))
            & f.col("file").isNotNull()
        )
        for file, count in frame.groupBy("file").count().orderBy("file").limit(_ADVISED).collect():
            told = (
                f"{file}: {count:,} rows are not valid {self.stream.files.encoding}; if the file has another "
                "encoding, set the "
            )
            told += "stream's encoding, such as windows-1252, and run a full refresh"
            self.step.log(told, "warning")

    def _rejected(self, rows: "DataFrame") -> "DataFrame":
        from pyspark.sql import functions as f

        file = f.col(FILE) if FILE in rows.columns else f.lit(None).cast("string")
        frame = rows.filter(f.col(FAULT).isNotNull()).select(
            f.lit(self.moment).cast("timestamp").alias("at"),
            f.col(FAULT).alias("reason"),
            f.col(RECORD).alias("record"),
            file.alias("file"),
            f.lit(self.stream.name).alias("stream"),
        )
        called = self.plan.read.files
        if FILE not in rows.columns or not called:
            return frame
        pairs = self.step.spark.createDataFrame(list(called.items()), "path string, called string")
        joined = frame.join(f.broadcast(pairs), f.col("file") == f.col("path"), "left")
        return joined.select("at", "reason", "record", f.coalesce("called", "file").alias("file"), "stream")

    def _is_there(self) -> bool:
        try:
            return bool(self.step.spark.table(self.beside).schema)
        except SqlFailed as error:
            if error.code.startswith(NOT_THERE):
                return False
            raise
