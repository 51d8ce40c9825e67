"""Excel sheets, read in Spark's Python workers. Columns are named by the first row."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from headgate.contracts.pipelines.streams import FileOptions
from headgate.execution.sources import workbooks
from headgate.execution.sources.csv import unique, valued
from headgate.execution.sources.detection import unreadable, unzipped_size
from headgate.execution.sources.readers import FAULT, FILE, File, ReadOptions
from headgate.execution.spark.step_session import Step
from headgate.execution.steps.context import StepFailed

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

MAX_UNZIPPED = 2 << 30
WRONG_COUNT = "the row has values beyond the last column of the header"
_ROWS = "file string, number bigint, cells array<string>"


def parts(asked: ReadOptions, step: Step, files: list[File]) -> "list[DataFrame]":
    """The rows of the sheets, grouped by header."""
    options = asked.stream.files
    shapes: dict[tuple[str, ...], list[str]] = {}
    for file in files:
        line = _first(file, options)
        if line:
            given = line if options.header else [f"column_{place}" for place in range(1, len(line) + 1)]
            shapes.setdefault(tuple(unique(given)), []).append(file.path)
    return [_rows(step, shape, paths, options) for shape, paths in shapes.items()]


def _first(file: File, options: FileOptions) -> list[str]:
    if unzipped_size(file) > MAX_UNZIPPED:
        told = f"{file.name} is larger than {MAX_UNZIPPED >> 30} GiB uncompressed; save it as CSV"
        raise StepFailed("FILE_TOO_LARGE", told)
    try:
        names = workbooks.sheets(file.path)
        if options.sheet and options.sheet not in names:
            there = ", ".join(names[:20])
            raise StepFailed("NO_SUCH_SHEET", f"{file.name} has no sheet {options.sheet!r}; it has {there}")
        return workbooks.first(file.path, options.sheet)
    except workbooks.BadWorkbook as error:
        raise unreadable(file, f"it is not a workbook: {error}") from None


def _rows(step: Step, shape: tuple[str, ...], paths: list[str], options: FileOptions) -> "DataFrame":
    from pyspark import cloudpickle
    from pyspark.sql import functions as f

    cloudpickle.register_pickle_by_value(workbooks)  # type: ignore[no-untyped-call]
    sheet, skip, width = options.sheet, int(options.header), len(shape)
    told = step.spark.createDataFrame([(path,) for path in paths], "path string")
    read = workbooks.batches

    def sheets(batches: "Iterable[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        for batch in batches:
            for path in batch.column(0).to_pylist():
                yield from read(path, sheet, skip)

    rows = told.repartition(min(len(paths), 32)).mapInArrow(sheets, _ROWS)
    cells: Any = f.col("cells")
    beyond = f.exists(
        f.slice(cells, width + 1, f.greatest(f.size(cells) - width, f.lit(1))), lambda column: column.isNotNull()
    )
    fault = f.when((f.size(cells) > width) & beyond, f.lit(WRONG_COUNT))
    return rows.select(
        *[valued(f.get(cells, f.lit(place)), options.nulls).alias(name) for place, name in enumerate(shape)],
        fault.alias(FAULT),
        f.col("file").alias(FILE),
    )
