"""Our own reads of a table's files: below its root and in its metadata folder, and nowhere else."""

import pytest
from pyiceberg.table import StaticTable, Table
from pyiceberg.table.metadata import TableMetadata

from headgate.lakehouse.catalog.files import OutsideRoot, table_io
from headgate.lakehouse.catalog.metadata_files import parse, read_metadata
from headgate.warehouse.store import Store
from tests.lakehouse.catalog.support import MORE, ROWS, Lake


def store_of(found: Lake) -> Store:
    store: Store = found.company.services.store
    return store


def metadata_of(found: Lake, table: str) -> TableMetadata:
    [(file, sum_)] = found.rows(f"SELECT metadata_file, metadata_sha256 FROM table_pointers WHERE table_id = '{table}'")
    return parse(read_metadata(store_of(found), table, file, sum_))


def opened(found: Lake, table: str, metadata: TableMetadata) -> StaticTable:
    """A table as previews open it."""
    io = table_io(store_of(found), table)
    return StaticTable(("raw", "t"), metadata, "", io, catalog=None)  # type: ignore[arg-type]


def test_a_table_is_read_by_its_own_files(served_on_sqlite: Lake) -> None:
    made: Table = served_on_sqlite.engine("Tess").create_table("raw.t", ROWS.schema)
    made.append(ROWS)
    made.append(MORE)
    table = served_on_sqlite.company.id("table", "raw.t")
    assert opened(served_on_sqlite, table, metadata_of(served_on_sqlite, table)).scan().to_arrow().num_rows == 5


def test_a_manifest_that_was_changed_after_its_commit_still_leads_nowhere(served_on_sqlite: Lake) -> None:
    """Whoever writes a table's files can overwrite a manifest in place; the other table's rows stay where they are."""
    tess = served_on_sqlite.engine("Tess")
    tess.create_table("service.revenue", ROWS.schema).append(ROWS)
    tess.create_table("raw.t", ROWS.schema).append(MORE)
    mine, other = (served_on_sqlite.company.id("table", name) for name in ("raw.t", "service.revenue"))
    foreign = metadata_of(served_on_sqlite, other)
    taken = foreign.model_copy(update={"location": metadata_of(served_on_sqlite, mine).location})
    with pytest.raises(OutsideRoot):
        opened(served_on_sqlite, mine, taken).scan().to_arrow()


def test_nothing_is_written_or_deleted_and_nothing_else_opened(served_on_sqlite: Lake) -> None:
    tess = served_on_sqlite.engine("Tess")
    location = tess.create_table("raw.t", ROWS.schema).location()
    table = served_on_sqlite.company.id("table", "raw.t")
    io = table_io(store_of(served_on_sqlite), table)
    for place in ("file:///etc/passwd", f"{location}/../x", f"file://{served_on_sqlite.warehouse}/metadata/x"):
        with pytest.raises(OutsideRoot):
            io.new_input(place)
    assert not io.new_input(f"{location}/data/absent.parquet").exists()
    with pytest.raises(PermissionError):
        io.new_output(f"{location}/data/x")
    with pytest.raises(PermissionError):
        io.delete(f"{location}/data/x")
