"""The ingestion step: read a stream, and write or reject its rows."""

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from headgate.contracts.pipelines.fields import duration, quoted
from headgate.contracts.pipelines.streams import Stream
from headgate.execution.sources import cursor
from headgate.execution.sources.conform import conform, planned
from headgate.execution.sources.readers import File, Read, ReadOptions, reader
from headgate.execution.sources.writer import NOT_THERE, Counts, TableState, Writer
from headgate.execution.spark.errors import SqlFailed
from headgate.execution.spark.step_session import Step

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType


@dataclass(frozen=True)
class LandOptions:
    """The options of the step besides the stream."""

    table: str
    rejected: str
    evolves: bool
    full_refresh: bool
    moment: datetime
    state: dict[str, Any] | None


def land(arguments: dict[str, Any], step: Step) -> dict[str, Any]:
    """Ingest a stream: read, conform, write. See headgate.execution.steps.land for the arguments."""
    # Two columns of a source may differ in case alone; tables' names are unique without it.
    step.spark.conf.set("spark.sql.caseSensitive", "true")
    wish = LandOptions(
        quoted(*arguments["table"]),
        quoted(*arguments["rejected"]),
        arguments["schema_changes"] == "evolve",
        arguments["full_refresh"],
        datetime.fromisoformat(arguments["moment"]),
        arguments["state"],
    )
    target = _target(step, wish.table)
    asked = _asked(arguments, target)
    read = reader(asked.kind)(asked, step)
    if read is None:
        step.log("There is no data to read")
        return Counts().told()
    return _landed(read, asked, target, wish, step).told()


def _landed(read: Read, asked: ReadOptions, target: TableState, wish: LandOptions, step: Step) -> Counts:
    plan = planned(read, asked, target.columns if target.has_rows or not read.texts else None, evolves=wish.evolves)
    for line in plan.warnings:
        step.log(line, "warning")
    writer = Writer(step, asked.stream, plan, target, wish.table, wish.rejected, wish.moment)
    replaces = wish.full_refresh or asked.stream.write == "replace"
    return writer.write(conform(plan, asked), wish.state, asked.since, replaces=replaces)


def _asked(arguments: dict[str, Any], target: TableState) -> ReadOptions:
    stream = Stream.model_validate(arguments["stream"])
    look_back = duration(stream.look_back) if stream.look_back else None
    since = cursor.since(arguments["state"], look_back, merges=stream.write == "merge")
    return ReadOptions(
        arguments["kind"],
        stream,
        arguments["config"],
        arguments["secrets"],
        tuple(File(**value) for value in arguments["files"]),
        arguments["folder"],
        since,
        target.columns if target.has_rows else None,
        arguments["more"],
    )


def _target(step: Step, table: str) -> TableState:
    """The state of the table: missing, never written, or with rows."""
    try:
        columns: StructType = step.spark.table(table).schema
        had = "CAST(summary['total-records'] AS BIGINT) > 0"
        snapshots: DataFrame = step.spark.table(f"{table}.snapshots")
        known = snapshots.selectExpr("snapshot_id", f"coalesce({had}, false)").collect()
        return TableState(columns, any(filled for _, filled in known), frozenset(value for value, _ in known))
    except SqlFailed as error:
        if error.code.startswith(NOT_THERE):
            return TableState(None, has_rows=False)
        raise
