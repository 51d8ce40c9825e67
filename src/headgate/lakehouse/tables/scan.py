"""Reads the first rows of a table without Spark, with a minimum of manifests, files, rows and bytes.

PyIceberg plans and projects. The Parquet files are read here in batches so small that even the largest cell allowed by
a file's footer stays within the limit. A FileIO limited to the table's folders opens every file.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headgate.kit.errors import Conflict, Problem, Unavailable
from headgate.kit.log import get_logger
from headgate.lakehouse.catalog.files import OutsideRoot, table_io
from headgate.warehouse.store import Store

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.schema import Schema
    from pyiceberg.table import FileScanTask
    from pyiceberg.table.metadata import TableMetadata

MAX_BYTES = 8 << 20
"""Maximum bytes of returned rows, as Arrow."""
MAX_ROW_BYTES = 32 << 20
BATCH_BYTES = 64 << 20
"""Maximum bytes of a batch if all its cells have the maximum size of their column."""
MAX_DELETE_BYTES = 32 << 20
SECONDS = 10.0
INSTEAD = "; query it with SQL instead"
_log = get_logger("headgate.preview")


class _Full(Exception):
    """The limit of bytes or time is reached."""


@dataclass(frozen=True, slots=True)
class ScanRequest:
    """The requested rows: the first ones of a snapshot, with these columns."""

    metadata: "TableMetadata"
    snapshot: int
    schema: "Schema"
    limit: int


def first_rows(store: Store, table: str, wanted: ScanRequest) -> tuple["pa.Table", bool]:
    """The first rows of a snapshot as Arrow, and whether there may be more."""
    try:
        return _Scan(store, table, wanted).read()
    except Problem:
        raise
    except OutsideRoot:
        _log.error("a table references a file outside its location", table=table)
        raise Conflict("This table references a file outside its location; nothing was read") from None
    except (ValueError, NotImplementedError) as error:
        if "equality deletes" in str(error):
            raise Conflict(f"This table has equality deletes, which previews do not support{INSTEAD}") from None
        _log.warning("a preview failed", table=table, error=str(error)[:500])
        raise Conflict(f"A preview cannot read the files of this table{INSTEAD}") from None
    except OSError as error:
        _log.warning("a preview failed", table=table, error=str(error)[:500])
        raise Conflict("A file of this table is missing or damaged; try an older snapshot") from None


class _Scan:
    """A scan with limits of rows, bytes and time."""

    def __init__(self, store: Store, table: str, wanted: ScanRequest) -> None:
        self.wanted, self.io = wanted, table_io(store, table)
        self.left, self.rows, self.bytes = wanted.limit + 1, 0, 0
        self.deadline = time.monotonic() + SECONDS

    def read(self) -> tuple["pa.Table", bool]:
        import pyarrow as pa
        from pyiceberg.io.pyarrow import schema_to_pyarrow

        parts: list[pa.RecordBatch] = []
        more = False
        try:
            for task in self._tasks():
                # If the limit is reached in the middle of a file, earlier batches stay in the list.
                parts.extend(self._rows_of(task))
                if self.left == 0:
                    break
        except _Full:
            more = True
        tables = [pa.Table.from_batches([part]) for part in parts if part.num_rows]
        if not tables:
            return schema_to_pyarrow(self.wanted.schema, include_field_ids=False).empty_table(), more
        result = pa.concat_tables(tables, promote_options="permissive").combine_chunks()
        return result.slice(0, self.wanted.limit), more or result.num_rows > self.wanted.limit

    def _tasks(self) -> Iterator["FileScanTask"]:
        """The files of the snapshot with their deletes; manifests are opened lazily."""
        from pyiceberg.expressions import AlwaysTrue
        from pyiceberg.manifest import ManifestContent
        from pyiceberg.table import ManifestGroupPlanner

        snapshot = self.wanted.metadata.snapshot_by_id(self.wanted.snapshot)
        assert snapshot is not None  # noqa: S101 - looked up before
        manifests = snapshot.manifests(self.io)
        deletes = [manifest for manifest in manifests if manifest.content == ManifestContent.DELETES]
        for manifest in manifests:
            if manifest.content == ManifestContent.DATA:
                self._check_time()
                planner = ManifestGroupPlanner(self.wanted.metadata, self.io, AlwaysTrue(), options={})
                yield from planner.plan_files([manifest, *deletes])

    def _check_time(self) -> None:
        if time.monotonic() > self.deadline:
            if self.rows:
                raise _Full
            raise Unavailable(f"The preview found no row within {SECONDS:.0f} seconds{INSTEAD}")

    def _rows_of(self, task: "FileScanTask") -> Iterator["pa.RecordBatch"]:
        """The requested rows of one file, in the columns of the snapshot's schema."""
        from pyiceberg.io.pyarrow import (
            _get_column_projection_values,
            _to_requested_schema,
            pyarrow_to_schema,
        )
        from pyiceberg.schema import prune_columns

        metadata, schema = self.wanted.metadata, self.wanted.schema
        if task.file.file_format.name != "PARQUET":
            raise Conflict(
                f"Previews support Parquet only, and this table has files in {task.file.file_format.name}{INSTEAD}"
            )
        deleted = self._deleted(task)
        with self.io.new_input(task.file.file_path).open() as source:
            file = _opened(source)
            physical = pyarrow_to_schema(
                file.schema_arrow,
                metadata.name_mapping(),
                downcast_ns_timestamp_to_us=metadata.format_version <= 2,
                format_version=metadata.format_version,
            )
            constants = _get_column_projection_values(
                task.file, schema, metadata.schema(), metadata.specs().get(task.file.spec_id), physical.field_ids
            )
            chosen = prune_columns(physical, _leaves(schema), select_full_types=False)
            for batch in self._batches(file, [column.name for column in chosen.columns], deleted):
                yield _to_requested_schema(
                    schema,
                    chosen,
                    batch,
                    downcast_ns_timestamp_to_us=metadata.format_version <= 2,
                    projected_missing_fields=constants,
                    allow_timestamp_tz_mismatch=True,
                )

    def _batches(self, file: Any, columns: list[str], deleted: list[Any]) -> Iterator["pa.RecordBatch"]:
        """Rows of an open file without deleted ones, up to the limit."""
        index = 0
        for group in range(file.metadata.num_row_groups):
            size = _batch_size(file.metadata.row_group(group), set(columns))
            for batch in file.iter_batches(size, [group], columns, use_threads=False):
                self._check_time()
                rows = _without(batch, deleted, index).slice(0, self.left)
                index += len(batch)
                if rows.num_rows:
                    self._take(rows)
                    yield rows
                if self.left == 0:
                    return

    def _take(self, rows: "pa.RecordBatch") -> None:
        """Count rows, or raise _Full. A first row that is too large is an error, not an empty preview."""
        size = rows.nbytes
        if not self.rows and size / rows.num_rows > MAX_ROW_BYTES:
            raise Conflict(f"A row is larger than {MAX_ROW_BYTES:,} bytes; select fewer columns{INSTEAD}")
        if self.rows and self.bytes + size > MAX_BYTES:
            raise _Full
        self.bytes += size
        self.rows += rows.num_rows
        self.left -= rows.num_rows

    def _deleted(self, task: "FileScanTask") -> list[Any]:
        """The deleted row positions of a file."""
        from pyiceberg.io.pyarrow import _read_deletes

        if sum(file.file_size_in_bytes for file in task.delete_files) > MAX_DELETE_BYTES:
            raise Conflict(f"This table has too many deleted rows for a preview{INSTEAD}")
        result = []
        for entry in task.delete_files:
            self._check_time()
            positions = _read_deletes(self.io, entry).get(task.file.file_path)
            if positions is not None:
                result.append(positions)
        return result


def _opened(source: Any) -> Any:
    """A Parquet file that is read page by page instead of by whole columns."""
    import pyarrow.parquet as pq

    return pq.ParquetFile(source, pre_buffer=False, buffer_size=1 << 20)


def _batch_size(group: Any, columns: set[str]) -> int:
    """The number of rows per batch, assuming the largest cell of each column."""
    largest: int = sum(
        group.column(n).total_uncompressed_size
        for n in range(group.num_columns)
        if group.column(n).path_in_schema.partition(".")[0] in columns
    )
    return max(1, min(1000, BATCH_BYTES // max(1, largest)))


def _leaves(schema: "Schema") -> set[int]:
    """The field ids to read; for a list or map, those of its elements."""
    from pyiceberg.types import ListType, MapType

    return {id_ for id_ in schema.field_ids if not isinstance(schema.find_type(id_), MapType | ListType)}


def _without(batch: "pa.RecordBatch", deleted: list[Any], index: int) -> "pa.RecordBatch":
    """A batch starting at this row of its file, without the deleted rows."""
    from pyiceberg.io.pyarrow import _combine_positional_deletes

    if not deleted:
        return batch
    return batch.take(_combine_positional_deletes(deleted, index, index + len(batch)))
