"""Write rows to files in the run's folder, from which the worker delivers them."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from headgate.contracts.pipelines.fields import quoted
from headgate.execution.deliveries.spark.rows import JSON, TIMES, as_json, is_nested, rows
from headgate.execution.spark.failures import Cause
from headgate.execution.spark.step_session import Step
from headgate.execution.steps.context import StepFailed

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructField

LINES = "lines"
"""An additional format: JSON lines in a deterministic order."""

ROWS_A_FILE = 1_000_000
FORMULA = "=+-@\t\r\n"
"""Characters at the start of a text that spreadsheets interpret as a formula."""

_CSV = {
    **TIMES,
    "header": "true",
    "encoding": "UTF-8",
    "escape": '"',
    "lineSep": "\n",
    "ignoreLeadingWhiteSpace": "false",
    "ignoreTrailingWhiteSpace": "false",
}


def export(arguments: dict[str, Any], step: Step) -> dict[str, Any]:
    """Write all rows to files in a folder; return their number. See headgate.execution.deliveries.export."""
    # Parquet's own default leaves readers of other houses with twelve bytes that few know.
    step.spark.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    step.explains(full)
    frame = rows(arguments, step)
    count = frame.count()
    if not count:
        # A table without rows has no parts either: then there would be no file to hold the header.
        frame = frame.repartition(1)
    _write(frame, arguments)
    folder = Path(arguments["folder"])
    if not (folder / "_SUCCESS").exists():
        raise StepFailed(
            "NO_SHARED_FOLDER",
            "The files that Spark wrote are not on this machine: Spark runs on another machine that does not "
            f"share the folder {folder.parents[2]}. Mount the same folder on both machines",
        )
    return {"rows": count}


def full(cause: Cause) -> StepFailed | None:
    """Map the error of a full disk to StepFailed."""
    if "No space left on device" not in cause.message and "Disk quota exceeded" not in cause.message:
        return None
    told = "The worker's disk is full, so nothing was delivered; the operator must free space in `data_dir`"
    return StepFailed("DISK_FULL", told, passing=True)


def _write(frame: "DataFrame", arguments: dict[str, Any]) -> None:
    from pyspark.sql import functions as f

    place, kind = f"file://{arguments['folder']}", arguments["format"]
    if kind == LINES:
        line = f.to_json(f.struct(*(f.col(quoted(column)) for column in frame.columns)), JSON)
        lines = frame.select(line.alias("value")).orderBy("value")
        lines.write.option("maxRecordsPerFile", ROWS_A_FILE).mode("overwrite").text(place)
        return
    if kind == "csv":
        frame = frame.select(
            *(_cell(field, escapes=arguments["formulas"] == "escape") for field in frame.schema.fields)
        )
    options = {"csv": _CSV, "json": {**JSON, "encoding": "UTF-8"}, "parquet": {}}[kind]
    writer = frame.write.format(kind).options(**options).option("maxRecordsPerFile", ROWS_A_FILE)
    writer.mode("overwrite").save(place)


def _cell(field: "StructField", *, escapes: bool) -> "Column":
    """A CSV value: nested values as JSON, bytes as Base64."""
    from pyspark.sql import functions as f
    from pyspark.sql import types as t

    value, name, is_text = f.col(quoted(field.name)), field.name, True
    if is_nested(field.dataType):
        value = as_json(value)
    elif isinstance(field.dataType, t.BinaryType):
        value = f.base64(value)
    else:
        is_text = isinstance(field.dataType, t.StringType)
    if escapes:
        name = f"'{name}" if name[0] in FORMULA else name
        if is_text:
            value = f.when(value.rlike(r"^[=+\-@\t\r\n]"), f.concat(f.lit("'"), value)).otherwise(value)
    return value.alias(name)
