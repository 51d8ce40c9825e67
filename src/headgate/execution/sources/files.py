"""Read files of every format. Files with different schemas are united by column names."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING

from headgate.execution.sources import columnar, csv, excel, json_text, types, xml
from headgate.execution.sources.detection import unreadable
from headgate.execution.sources.readers import File, Read, ReadOptions
from headgate.execution.spark.failures import Cause
from headgate.execution.spark.step_session import Step
from headgate.execution.steps.context import StepFailed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType

MAX_SHAPES = 200
_READ_FAILED = ("FAILED_READ_FILE", "CANNOT_READ_FILE", "MALFORMED_RECORD", "CONVERT_INVALID", "PARQUET_")
Part = Callable[[ReadOptions, Step, list[File]], "list[DataFrame]"]
_PARTS: dict[str, Part] = {
    "csv": csv.parts,
    "json": json_text.parts,
    "parquet": columnar.parquet,
    "avro": columnar.avro,
    "xml": xml.parts,
    "excel": excel.parts,
}
_TEXTS = ("csv", "xml", "excel")


def read(asked: ReadOptions, step: Step) -> Read | None:
    """The rows of the downloaded files; none if all are empty."""
    wanted = asked.stream.files.format
    empty = [file.name for file in asked.files if not file.size]
    if empty:
        step.log(f"{len(empty)} files are empty: {', '.join(empty[:5])}{' …' if len(empty) > 5 else ''}", "warning")
    files = [file for file in asked.files if file.size]
    if not files:
        return None
    step.explains(_teller(files))
    parts = _PARTS[wanted](asked, step, files)
    if len(parts) > MAX_SHAPES:
        raise StepFailed(
            "TOO_MANY_SHAPES", f"The files have {len(parts)} different schemas; split them into several streams"
        )
    if not parts:
        return None
    called = {Path(file.path).name: file.name for file in files}
    read = Read(together(parts), again=True, bytes=sum(file.size for file in files), files=called)
    return replace(read, texts=wanted in _TEXTS, times=wanted == "json")


def together(parts: "Sequence[DataFrame]") -> "DataFrame":
    """The union of several schemas: columns by name, with a common type."""
    from pyspark.sql import functions as f

    if len(parts) == 1:
        return parts[0]
    kinds: dict[str, list[DataType]] = {}
    for part in parts:
        for field in part.schema.fields:
            kinds.setdefault(field.name, []).append(field.dataType)
    wanted = {name: types.common(data_types) for name, data_types in kinds.items()}

    def fitted(part: "DataFrame") -> "DataFrame":
        return part.select(
            *[
                types.fit(f.col(_quoted(entry.name)), entry.dataType, wanted[entry.name]).value.alias(entry.name)
                for entry in part.schema.fields
            ]
        )

    return reduce(lambda left, right: left.unionByName(right, allowMissingColumns=True), map(fitted, parts))


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _teller(files: list[File]) -> Callable[[Cause], StepFailed | None]:
    """Add the name of the damaged file to an error of Spark."""
    called = {Path(file.path).name: file for file in files}

    def tell(cause: Cause) -> StepFailed | None:
        if not (cause.code or "").startswith(_READ_FAILED):
            return None
        result = next((file for name, file in called.items() if f"/{name}" in cause.message), None)
        if result is None:
            return StepFailed("FILE_UNREADABLE", "One of the files is damaged; replace it with a complete file")
        return unreadable(result, "it is damaged, or does not have the stream's format")

    return tell
