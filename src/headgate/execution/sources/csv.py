"""CSV files. Columns are matched by the names in each file's header, not by position."""

from typing import TYPE_CHECKING

from headgate.contracts.pipelines.streams import FileOptions
from headgate.execution.sources import names
from headgate.execution.sources.detection import header, in_utf_8, read_start
from headgate.execution.sources.readers import FAULT, FILE, RECORD, SPOILT, File, ReadOptions
from headgate.execution.spark.step_session import Step

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

MISSING = "\ue000\ue001"
"""A text that no file holds: what Spark would take for a missing value, if it were asked to."""

WRONG_COUNT = "the row has more or fewer values than the header"
WRONG_BYTES = f"the row contains {SPOILT}"


def parts(asked: ReadOptions, step: Step, files: list[File]) -> "list[DataFrame]":
    """The rows, grouped by header."""
    options = asked.stream.files
    shapes: dict[tuple[str, ...], list[File]] = {}
    for file, copy in zip(files, in_utf_8(files, options.encoding, asked.folder), strict=True):
        line = header(read_start(file, options.encoding), options.delimiter, options.quote)
        if line:
            given = line if options.header else [f"column_{place}" for place in range(1, len(line) + 1)]
            shapes.setdefault(tuple(unique(given)), []).append(copy)
    return [_rows(step, shape, files, options) for shape, files in shapes.items()]


def unique(given: list[str]) -> list[str]:
    """The column names of a header, made unique; empty names are numbered."""
    results: list[str] = []
    for place, name in enumerate(given, 1):
        own, number = name.strip() or names.safe(name, place), 2
        wanted = own
        while wanted in results:
            wanted, number = f"{own}_{number}", number + 1
        results.append(wanted)
    return results


def _rows(step: Step, shape: tuple[str, ...], files: list[File], options: FileOptions) -> "DataFrame":
    from pyspark.sql import functions as f
    from pyspark.sql import types as t

    places = [f"c{place}" for place in range(len(shape))]
    schema = t.StructType([t.StructField(name, t.StringType()) for name in (*places, RECORD)])
    reader = (
        step.spark.read.schema(schema)
        .option("sep", options.delimiter)
        .option("quote", options.quote)
        .option("escape", options.quote or "\\")
        .option("header", options.header)
        .option("multiLine", options.multiline)
        .option("mode", "PERMISSIVE")
        .option("columnNameOfCorruptRecord", RECORD)
        .option("nullValue", MISSING)
        .option("emptyValue", "")
        .option("maxCharsPerColumn", -1)
    )
    rows = reader.csv([file.path for file in files])
    fault = f.when(f.col(RECORD).isNotNull(), f.lit(WRONG_COUNT)).when(_spoilt(places), f.lit(WRONG_BYTES))
    return rows.select(
        *[_value(place, options.nulls).alias(name) for place, name in zip(places, shape, strict=True)],
        fault.alias(FAULT),
        f.col(RECORD),
        f.col("_metadata.file_name").alias(FILE),
    )


def _value(place: str, nulls: tuple[str, ...]) -> "Column":
    from pyspark.sql import functions as f

    # For Spark, a value without a character between its delimiters is missing.
    return valued(f.coalesce(f.col(place), f.lit("")), nulls)


def valued(value: "Column", nulls: tuple[str, ...]) -> "Column":
    """A text, or NULL if it is one of the null texts."""
    from pyspark.sql import functions as f

    return f.when(~value.isin(*nulls), value) if nulls else value


def _spoilt(places: list[str]) -> "Column":
    """Whether a value contains the replacement character of undecodable bytes."""
    from pyspark.sql import functions as f

    return f.contains(f.concat_ws("", *[f.col(place) for place in places]), f.lit("\ufffd"))
