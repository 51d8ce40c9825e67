"""Self-describing files: Parquet and Avro."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from headgate.execution.sources.detection import unreadable
from headgate.execution.sources.readers import FILE, File, ReadOptions
from headgate.execution.spark.step_session import Step

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_AVRO = b"Obj\x01"
_MOST_HEADER = 64 << 20


def parquet(_: ReadOptions, step: Step, files: list[File]) -> "list[DataFrame]":
    """The rows of Parquet files."""
    return _parts(step, files, "parquet", _parquet_shape)


def avro(_: ReadOptions, step: Step, files: list[File]) -> "list[DataFrame]":
    """The rows of Avro files."""
    return _parts(step, files, "avro", _avro_shape)


def _parts(step: Step, files: list[File], kind: str, shape: Callable[[File], str]) -> "list[DataFrame]":
    from pyspark.sql import functions as f

    shapes: dict[str, list[str]] = {}
    for file in files:
        shapes.setdefault(shape(file), []).append(file.path)
    result = []
    for paths in shapes.values():
        # Files in a volume have no ending by which Avro would know them.
        rows = step.spark.read.format(kind).option("ignoreExtension", "true").load(paths)
        own = [f.col("`" + name.replace("`", "``") + "`") for name in rows.columns]
        result.append(rows.select(*own, f.col("_metadata.file_name").alias(FILE)))
    return result


def _parquet_shape(file: File) -> str:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return str(pq.read_schema(file.path).remove_metadata())
    except (OSError, pa.ArrowException) as error:
        raise unreadable(file, "it is not a complete Parquet file" if _cut(error) else error) from None


def _cut(error: Exception) -> bool:
    return "magic bytes" in str(error) or "too small" in str(error) or "footer" in str(error).lower()


def _avro_shape(file: File) -> str:
    """The schema in an Avro file's head: a map of metadata, whose blocks are counts, keys and values."""
    with Path(file.path).open("rb") as source:
        if source.read(4) != _AVRO:
            raise unreadable(file, "it is not an Avro file")
        head = source.read(_MOST_HEADER)
    try:
        result = _metadata(head)["avro.schema"]
        return json.dumps(json.loads(result), sort_keys=True)
    except (IndexError, KeyError, ValueError):
        raise unreadable(file, "it is not a complete Avro file") from None


def _metadata(head: bytes) -> dict[str, bytes]:
    place = 0

    def number() -> int:
        nonlocal place
        result = shift = 0
        while True:
            byte = head[place]
            place += 1
            result |= (byte & 0x7F) << shift
            shift += 7
            if not byte & 0x80:
                return (result >> 1) ^ -(result & 1)

    def text() -> bytes:
        nonlocal place
        size = number()
        if size < 0 or place + size > len(head):
            raise ValueError
        result = head[place : place + size]
        place += size
        return result

    told: dict[str, bytes] = {}
    while count := number():
        if count < 0:
            number()
        for _ in range(abs(count)):
            key = text().decode()
            told[key] = text()
    return told
