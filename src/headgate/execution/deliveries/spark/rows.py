"""Read the rows of one snapshot, converted for each kind of destination."""

from typing import TYPE_CHECKING, Any

from headgate.contracts.pipelines.fields import quoted
from headgate.execution.spark.step_session import Step

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

TIMES = {
    "dateFormat": "yyyy-MM-dd",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
"""Formats of dates and times with all their digits."""

JSON = {**TIMES, "ignoreNullFields": "false"}


def rows(arguments: dict[str, Any], step: Step) -> "DataFrame":
    """The mapped columns of the snapshot; a table without snapshots has no rows."""
    table, snapshot = quoted(*arguments["table"]), arguments["snapshot"]
    at = f" VERSION AS OF {int(snapshot)}" if snapshot is not None else ""
    frame = step.spark.sql(f"SELECT * FROM {table}{at}")
    if snapshot is None:
        frame = frame.limit(0)
    return frame.select(*(quoted(value) for value in arguments["columns"]))


def is_nested(kind: "DataType") -> bool:
    """Whether a type is nested."""
    from pyspark.sql import types as t

    return isinstance(kind, t.StructType | t.ArrayType | t.MapType)


def as_json(value: "Column") -> "Column":
    """A nested value as JSON text."""
    from pyspark.sql import functions as f

    return f.to_json(value, JSON)
