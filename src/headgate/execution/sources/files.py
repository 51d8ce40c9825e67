"""Files of every format, as rows. Files of different shapes are brought together by their columns' names."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING

from headgate.execution.sources import columnar as typed
from headgate.execution.sources import csv, excel, types, xml
from headgate.execution.sources import json_text as texts
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
    "json": texts.parts,
    "parquet": typed.parquet,
    "avro": typed.avro,
    "xml": xml.parts,
    "excel": excel.parts,
}
_TEXTS = ("csv", "xml", "excel")


def read(asked: ReadOptions, step: Step) -> Read | None:
    """The rows of the files that the worker got; none if all are empty."""
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
        raise StepFailed("TOO_MANY_SHAPES", f"The files have {len(parts)} different shapes; split them into streams")
    if not parts:
        return None
    called = {Path(file.path).name: file.name for file in files}
    found = Read(together(parts), again=True, bytes=sum(file.size for file in files), files=called)
    return replace(found, texts=wanted in _TEXTS, times=wanted == "json")


def together(parts: "Sequence[DataFrame]") -> "DataFrame":
    """Rows of several shapes as one: columns by name, of a type that holds the values of all."""
    from pyspark.sql import functions as f

    if len(parts) == 1:
        return parts[0]
    kinds: dict[str, list[DataType]] = {}
    for part in parts:
        for one in part.schema.fields:
            kinds.setdefault(one.name, []).append(one.dataType)
    wanted = {name: types.common(found) for name, found in kinds.items()}

    def fitted(part: "DataFrame") -> "DataFrame":
        return part.select(
            *[
                types.fit(f.col(_quoted(one.name)), one.dataType, wanted[one.name]).value.alias(one.name)
                for one in part.schema.fields
            ]
        )

    return reduce(lambda left, right: left.unionByName(right, allowMissingColumns=True), map(fitted, parts))


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _teller(files: list[File]) -> Callable[[Cause], StepFailed | None]:
    """Says which of the files cannot be read, by the name that members know."""
    called = {Path(file.path).name: file for file in files}

    def tell(cause: Cause) -> StepFailed | None:
        if not (cause.code or "").startswith(_READ_FAILED):
            return None
        found = next((file for name, file in called.items() if f"/{name}" in cause.message), None)
        if found is None:
            return StepFailed("FILE_UNREADABLE", "One of the files is damaged; put a whole file in its place")
        return unreadable(found, "it is damaged, or not of the stream's format")

    return tell
