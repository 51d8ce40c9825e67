"""A table of another catalog, as Parquet on this machine.

Its files are got whole, read with its deletes and in its present columns, and written anew. Spark reads what was
written, and knows nothing of the other catalog. It runs in the step's own process, with bounded memory: such files may
be made to harm whoever reads them.
"""

import hashlib
import resource
import threading
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headgate.execution.sources.fetch.catalog import Files
from headgate.execution.sources.fetch.downloads import Downloads, too_many
from headgate.execution.steps.context import StepFailed

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.io import FileIO
    from pyiceberg.schema import Schema
    from pyiceberg.table import FileScanTask
    from pyiceberg.table.metadata import TableMetadata

AT_ONCE = 4
MEMORY = 4 << 30
GROUP_ROWS = 250_000


@dataclass(frozen=True)
class WrittenParquet:
    """A file that was written for Spark."""

    path: Path
    rows: int
    size: int


class Fetched:
    """The table's files on this machine; each is got when it is first opened."""

    def __init__(self, files: Files, downloads: Downloads, folder: Path, name: str) -> None:
        self._files, self._downloads, self._folder, self._name = files, downloads, folder, name
        self._locks: dict[str, threading.Lock] = {}
        self._lock = threading.Lock()

    def path(self, location: str) -> Path:
        """Where a file is here."""
        path = self._place(location)
        with self._lock:
            lock = self._locks.setdefault(location, threading.Lock())
        with lock:
            if not path.exists():
                url, headers = self._files.address(location)
                part = path.with_suffix(".part")
                self._downloads.file(url, part, headers=headers, name=f"A file of {self._name}")
                part.rename(path)
        return path

    def drop(self, location: str) -> None:
        """Delete a file here that is needed no more."""
        self._place(location).unlink(missing_ok=True)

    def _place(self, location: str) -> Path:
        return self._folder / hashlib.sha256(location.encode("utf-8", "surrogatepass")).hexdigest()[:32]

    def io(self) -> "FileIO":
        """The same, as PyIceberg asks for it; nothing is ever written or deleted there."""
        from pyiceberg.io import FileIO, InputFile, InputStream, OutputFile

        fetched = self

        class Input(InputFile):
            """A file of the table."""

            def __len__(self) -> int:
                return fetched.path(self.location).stat().st_size

            def exists(self) -> bool:
                return True

            def open(self, seekable: bool = True) -> InputStream:
                return fetched.path(self.location).open("rb")

        class Fetching(FileIO):
            """The files of the table."""

            def new_input(self, location: str) -> InputFile:
                return Input(location)

            def new_output(self, location: str) -> OutputFile:
                raise PermissionError(location)

            def delete(self, location: str | InputFile | OutputFile) -> None:
                raise PermissionError(str(location))

        return Fetching()


def write(
    metadata: "TableMetadata", schema: "Schema", tasks: list["FileScanTask"], fetched: Fetched, folder: Path, most: int
) -> list[WrittenParquet]:
    """Write the rows of some files in the table's present columns, several at once; at least one file, if empty."""
    if sum(max(task.file.file_size_in_bytes, 0) for task in tasks) > most:
        raise too_many(most)
    scan = _Scan(metadata, schema, fetched, tasks)
    with ThreadPoolExecutor(AT_ONCE, "tables") as pool:
        try:
            numbered = enumerate(tasks, 1)
            written_parquets = list(
                pool.map(lambda value: scan.one(value[1], folder / f"{value[0]:06}.parquet"), numbered)
            )
        finally:
            pool.shutdown(cancel_futures=True)
    return [written_parquet for written_parquet in written_parquets if written_parquet.rows] or [
        scan.none(folder / "000000.parquet")
    ]


def bound_memory() -> None:
    """Have whatever takes too much memory in this process fail, and not the machine."""
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    with suppress(ValueError, OSError):
        resource.setrlimit(
            resource.RLIMIT_DATA, (MEMORY if hard == resource.RLIM_INFINITY else min(MEMORY, hard), hard)
        )


class _Scan:
    def __init__(
        self, metadata: "TableMetadata", schema: "Schema", fetched: Fetched, tasks: list["FileScanTask"]
    ) -> None:
        from pyiceberg.io.pyarrow import _read_all_delete_files, schema_to_pyarrow

        self._metadata, self._schema, self._fetched = metadata, schema, fetched
        self._io = fetched.io()
        self._plain = _plain_schema(schema_to_pyarrow(schema, include_field_ids=False))
        with reading():
            self._deletes = _read_all_delete_files(self._io, tasks)

    def one(self, task: "FileScanTask", target: Path) -> WrittenParquet:
        """The rows of one file."""
        import pyarrow.parquet as pq

        rows = 0
        with reading(), pq.ParquetWriter(target, self._plain, compression="zstd") as out:
            for batch in self._batches(task):
                out.write_batch(_plain_batch(batch, self._plain), GROUP_ROWS)
                rows += batch.num_rows
        self._fetched.drop(task.file.file_path)
        return WrittenParquet(target, rows, target.stat().st_size)

    def none(self, target: Path) -> WrittenParquet:
        """No rows, but columns."""
        import pyarrow.parquet as pq

        pq.write_table(self._plain.empty_table(), target)
        return WrittenParquet(target, 0, target.stat().st_size)

    def _batches(self, task: "FileScanTask") -> Iterator["pa.RecordBatch"]:
        from pyiceberg.expressions import AlwaysTrue
        from pyiceberg.io.pyarrow import _task_to_record_batches
        from pyiceberg.types import ListType, MapType

        schema, metadata = self._schema, self._metadata
        leaves = {id_ for id_ in schema.field_ids if not isinstance(schema.find_type(id_), MapType | ListType)}
        yield from _task_to_record_batches(
            self._io,
            task,
            AlwaysTrue(),
            schema,
            metadata.schema(),
            leaves,
            self._deletes.get(task.file.file_path),
            case_sensitive=True,
            name_mapping=metadata.name_mapping(),
            partition_spec=metadata.specs().get(task.file.spec_id),
            format_version=metadata.format_version,
            downcast_ns_timestamp_to_us=True,
        )


class reading:  # noqa: N801 - used as a word of the language
    """Tell in words what cannot be read."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, MemoryError):
            told = (
                f"A file of the table needs more than {MEMORY >> 30} GB of memory; rewrite the table with smaller files"
            )
            raise StepFailed("FILE_TOO_LARGE", told) from None
        if isinstance(error, NotImplementedError | ValueError) and "equality deletes" in str(error):
            told = "The table has equality deletes, which are not supported; compact the table at its source"
            raise StepFailed("EQUALITY_DELETES", told) from None
        if isinstance(error, ValueError | TypeError | NotImplementedError | KeyError | OSError | AttributeError):
            told = "A file of the table is damaged, missing, or in an unsupported format; "
            raise StepFailed("FILE_DAMAGED", told + "try another snapshot of the table") from None


def _plain_schema(schema: Any) -> Any:
    import pyarrow as pa

    return pa.schema([pa.field(value.name, _plain_type(value.type)) for value in schema])


def _plain_type(kind: Any) -> Any:
    """A type that Spark reads: what it does not know becomes text."""
    import pyarrow as pa

    if pa.types.is_time(kind) or isinstance(kind, pa.UuidType):
        return pa.string()
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", kind.tz)
    if pa.types.is_fixed_size_binary(kind) or pa.types.is_large_binary(kind):
        return pa.binary()
    if pa.types.is_large_string(kind):
        return pa.string()
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(value.name, _plain_type(value.type)) for value in kind])
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(pa.field("element", _plain_type(kind.value_type)))
    if pa.types.is_map(kind):
        return pa.map_(_plain_type(kind.key_type), _plain_type(kind.item_type))
    return kind


def _plain_batch(batch: "pa.RecordBatch", schema: Any) -> "pa.RecordBatch":
    import pyarrow as pa

    columns = [_plain_column(batch.column(number), field.type) for number, field in enumerate(schema)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _plain_column(column: Any, kind: Any) -> Any:
    import pyarrow as pa

    if column.type == kind:
        return column
    if not _is_odd(column.type):
        return column.cast(kind)
    return pa.array([_plain_value(value) for value in column.to_pylist()], kind)


def _is_odd(kind: Any) -> bool:
    """Whether a type has, somewhere in it, values that Arrow does not turn into text by itself."""
    import pyarrow as pa

    if pa.types.is_nested(kind):
        return any(_is_odd(kind.field(number).type) for number in range(kind.num_fields))
    return pa.types.is_time(kind) or isinstance(kind, pa.UuidType)


def _plain_value(value: Any) -> Any:
    """A value for a type of Spark's, through and through."""
    if isinstance(value, uuid.UUID):
        return str(value)
    if isinstance(value, dict):
        return {name: _plain_value(value) for name, value in value.items()}
    if isinstance(value, list):
        return [_plain_value(value) for value in value]
    if isinstance(value, tuple):
        return tuple(_plain_value(value) for value in value)
    return value.isoformat() if type(value).__name__ == "time" else value
