"""Files of another table, named in a commit or put in place of one's own afterwards: neither read nor deleted."""

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import BadRequestError
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import ManifestEntry, ManifestEntryStatus, read_manifest_list, write_manifest

from tests.security.conftest import CANARY, World, none, refused

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

ROWS = pa.table({"id": pa.array([1, 2], pa.int64()), "secret": pa.array(["mine", "too"])})
READS = (
    "SELECT * FROM {table}",
    "SELECT secret FROM {table} LIMIT 1",
    "SELECT min(secret), max(secret) FROM {table}",
    "SELECT count(*) FROM {table} WHERE secret LIKE '%o%'",
    "CREATE TABLE raw.copied AS SELECT * FROM {table}",
    "INSERT INTO raw.orders SELECT * FROM {table}",
    "DELETE FROM {table} WHERE secret = 'mine'",
    "UPDATE {table} SET id = 7",
    "MERGE INTO raw.orders t USING {table} s ON t.what = s.secret WHEN MATCHED THEN DELETE",
)


@pytest.fixture(scope="module")
def tom(world: World) -> Iterator[RestCatalog]:
    """Tom's own engine on the same host, by his API token."""
    found = RestCatalog("lake", uri=f"{world.address}/iceberg", token=world.millrace.token("Tom"))
    yield found
    found.close()


def victim(world: World) -> Path:
    """The data file with the canary, of a table that Tom must not know of."""
    (found,) = (world.root("service.vault") / "data").glob("*.parquet")
    return found


def made(tom: RestCatalog, name: str) -> Any:
    table = tom.create_table(f"raw.{name}", ROWS.schema)
    table.append(ROWS)
    return table


def overwrite_manifest(table: Any, location: str, status: ManifestEntryStatus = ManifestEntryStatus.ADDED) -> None:
    """Write the table's manifest anew in place, so that it names this file."""
    io = PyArrowFileIO()
    manifest: Any
    (manifest,) = read_manifest_list(io.new_input(table.current_snapshot().manifest_list))
    entries = manifest.fetch_manifest_entry(io, discard_deleted=False)
    Path(manifest.manifest_path.removeprefix("file://")).unlink()
    output = io.new_output(manifest.manifest_path)
    with write_manifest(2, table.spec(), table.schema(), output, manifest.added_snapshot_id, "deflate") as writer:
        for entry in entries:
            entry.data_file[1] = location
            writer.add_entry(
                ManifestEntry.from_args(
                    status=status,
                    snapshot_id=entry.snapshot_id,
                    sequence_number=1,
                    file_sequence_number=1,
                    data_file=entry.data_file,
                )
            )


def unharmed(world: World) -> None:
    assert victim(world).exists()
    assert world.rows("Tess", "SELECT * FROM service.vault") == [[1, CANARY]]


def test_a_commit_that_names_another_tables_file_is_refused(world: World, tom: RestCatalog) -> None:
    table = made(tom, "added")
    with pytest.raises(BadRequestError, match="outside the table's location"):
        table.add_files([f"file://{victim(world)}"])
    assert sorted(world.rows("Tom", "SELECT secret FROM raw.added")) == [["mine"], ["too"]]
    unharmed(world)


@pytest.mark.parametrize(
    "spelling", ["file://{}", "file:{}", "{}", "file://{root}/../{rest}", "file://{root}/%2e%2e/{rest}"]
)
def test_a_manifest_overwritten_after_a_good_commit_gives_nothing(
    world: World, tom: RestCatalog, spelling: str
) -> None:
    """The commit was checked; what its manifest says now, nobody has looked at but Spark's own FileIO."""
    name = "over" + re.sub(r"\W", "", str(hash(spelling)))
    table = made(tom, name)
    rest = str(victim(world)).partition("/tables/")[2]
    overwrite_manifest(table, spelling.format(victim(world), root=world.root(f"raw.{name}"), rest=rest))
    refused(world.attack("Tom", [one.format(table=f"raw.{name}") for one in READS]))
    preview = world.millrace.as_("Tom").get(f"/api/tables/{world.millrace.id('table', f'raw.{name}')}/preview")
    assert preview.status_code == 409
    assert CANARY not in preview.text
    assert str(world.warehouse) not in preview.text
    unharmed(world)


def test_a_manifest_list_overwritten_after_a_good_commit_gives_nothing(world: World, tom: RestCatalog) -> None:
    table = made(tom, "listed")
    (other,) = (world.root("service.vault") / "metadata").glob("snap-*.avro")
    Path(table.current_snapshot().manifest_list.removeprefix("file://")).write_bytes(other.read_bytes())
    refused(world.attack("Tom", [one.format(table="raw.listed") for one in READS]))
    unharmed(world)


def test_another_tables_file_is_not_destroyed_either(world: World, tom: RestCatalog) -> None:
    """Deleting rows, dropping the table and expiring its snapshots delete by manifest; not what lies elsewhere."""
    table = made(tom, "expiring")
    overwrite_manifest(table, f"file://{victim(world)}", ManifestEntryStatus.DELETED)
    attempts = world.attack(
        "Tess",
        [
            "DELETE FROM raw.expiring",
            "TRUNCATE TABLE raw.expiring",
            "INSERT OVERWRITE raw.expiring VALUES (3, 'x')",
            "CREATE OR REPLACE TABLE raw.expiring AS SELECT 1 AS id",
            "CALL lake.system.expire_snapshots(table => 'raw.expiring', retain_last => 1)",
            "DROP TABLE raw.expiring PURGE",
            "DROP TABLE raw.expiring",
        ],
    )
    none(f"{one.sql}: {one.told}" for one in attempts if CANARY in one.told or str(world.warehouse) in one.told)
    unharmed(world)


def test_links_lead_nowhere(world: World, tom: RestCatalog) -> None:
    """One's own file replaced by a link to another table's."""
    made(tom, "linked")
    (mine,) = (world.root("raw.linked") / "data").glob("*.parquet")
    mine.unlink()
    mine.symlink_to(victim(world))
    refused(world.attack("Tom", [one.format(table="raw.linked") for one in READS]))
    preview = world.millrace.as_("Tom").get(f"/api/tables/{world.millrace.id('table', 'raw.linked')}/preview")
    assert (preview.status_code, CANARY in preview.text) == (409, False)
    unharmed(world)


def test_metadata_overwritten_in_place_is_an_error_at_once(world: World, tom: RestCatalog) -> None:
    """Not the data that it leads to, no path, and no minute of asking again."""
    made(tom, "damaged")
    own = world.warehouse / "metadata" / world.millrace.id("table", "raw.damaged")
    vault = world.warehouse / "metadata" / world.millrace.id("table", "service.vault")
    newest = max(vault.iterdir()).read_bytes()
    for file in own.iterdir():
        file.write_bytes(newest)
    began = time.monotonic()
    statements = (*READS[:4], "EXPLAIN SELECT * FROM {table}", "SELECT * FROM {table}.history", "DESCRIBE {table}")
    attempts = world.attack("Tom", [one.format(table="raw.damaged") for one in statements])
    assert time.monotonic() - began < 30
    refused(attempts, re.compile("BAD_REQUEST"))
    assert {one.found["error"]["message"] for one in attempts} == {
        "The table's metadata file does not match the last commit; restore it from a backup"
    }
    table = world.millrace.id("table", "raw.damaged")
    for path in (f"/api/tables/{table}/preview", "/iceberg/v1/namespaces/raw/tables/damaged"):
        answer = world.millrace.as_("Tom").get(path)
        assert (answer.status_code, CANARY in answer.text, "service" in answer.text) == (400, False, False)


def test_files_that_are_gone_are_told_without_their_places(world: World, tom: RestCatalog) -> None:
    for name, folder in (("lost_data", "data"), ("lost_manifests", "metadata")):
        made(tom, name)
        for file in (world.root(f"raw.{name}") / folder).iterdir():
            file.unlink()
        statements = [f"SELECT * FROM raw.{name}", f"SELECT secret FROM raw.{name} WHERE id = 1"]
        if folder == "metadata":
            statements += [f"EXPLAIN {mode} SELECT * FROM raw.{name}" for mode in ("", "EXTENDED", "FORMATTED", "COST")]
        refused(world.attack("Tom", statements), re.compile("SPARK_FAILED"))
