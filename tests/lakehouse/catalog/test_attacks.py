"""Attacks on the catalog: every way to point a table, its data or its metadata elsewhere is refused."""

import json
import zlib
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.exceptions import BadRequestError
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestEntry,
    ManifestEntryStatus,
    read_manifest_list,
    write_manifest,
)

from headgate.lakehouse.catalog.avro import BadFile, scan
from headgate.lakehouse.catalog.files import OutsideRoot, Root
from headgate.warehouse.folder import FolderStore
from tests.lakehouse.catalog.support import MORE, ROWS, SCHEMA, Lake, appending, error_of, table_path, update_of

MINE = table_path("mine")
REFUSED = (400, "ValidationException")


@pytest.fixture
def two(served_on_sqlite: Lake) -> Lake:
    """Tom, Editor of raw, has raw.mine; service.revenue, which he may not know of, has rows."""
    tess = served_on_sqlite.engine("Tess")
    tess.create_table("service.revenue", ROWS.schema).append(ROWS)
    served_on_sqlite.engine("Tom").create_table("raw.mine", ROWS.schema).append(MORE)
    return served_on_sqlite


def victim_file(found: Lake) -> str:
    """A data file of service.revenue."""
    table = found.company.id("table", "service.revenue")
    [file] = (found.warehouse / "tables" / table / "data").iterdir()
    return f"file://{file}"


def unmoved(found: Lake) -> None:
    """The table is as it was."""
    assert found.engine("Tom").load_table("raw.mine").scan().to_arrow().num_rows == 2


@pytest.mark.parametrize("spelling", ["{}", "file:{path}", "FILE://{path}", "file:////{path}", "{root}/../../{rest}", "{root}/%2e%2e/%2e%2e/{rest}",
                                      "{root}/data/..%2f..%2f../{rest}", "{root}/%252e%252e/{rest}"])  # fmt: skip
def test_a_manifest_that_names_another_tables_file_is_refused(two: Lake, spelling: str) -> None:
    """By a stock client: its own call for adding files writes the manifest and commits it."""
    table = two.engine("Tom").load_table("raw.mine")
    victim = victim_file(two)
    path = victim.removeprefix("file://")
    rest = path.partition("/warehouse/")[2]
    location = spelling.format(victim, path=path, root=table.location(), rest=rest)
    change = table.transaction()
    change._autocommit = False
    with change.update_snapshot().fast_append() as append:
        file = DataFile.from_args(
            content=DataFileContent.DATA,
            file_path=location,
            file_format=FileFormat.PARQUET,
            partition={},
            record_count=3,
            file_size_in_bytes=100,
        )
        file.spec_id = 0
        append.append_data_file(file)
    with pytest.raises(BadRequestError, match="outside the table's location"):
        change.commit_transaction()
    unmoved(two)
    assert Path(path).exists()


def test_add_files_of_another_table_is_refused(two: Lake) -> None:
    with pytest.raises(BadRequestError, match="outside the table's location"):
        two.engine("Tom").load_table("raw.mine").add_files([victim_file(two)])
    unmoved(two)


def test_a_file_is_not_smuggled_as_a_deleted_one(two: Lake) -> None:
    """Expiring the snapshot would delete the files that its manifests call deleted."""
    tom = two.engine("Tom")
    table = tom.load_table("raw.mine")
    body = appending(table)
    manifest_list = update_of(body, "add-snapshot")["snapshot"]["manifest-list"]
    _rewrite(two, table, manifest_list, victim_file(two), ManifestEntryStatus.DELETED)
    answer = two.api("Tom").post(MINE, body)
    assert error_of(answer) == REFUSED
    assert "outside" in answer.json()["error"]["message"]
    unmoved(two)


def _rewrite(found: Lake, table: Any, manifest_list: str, location: str, status: Any) -> None:
    """Write a manifest of the table anew, so that it names this file, under the name that its list knows."""
    io = PyArrowFileIO()
    manifest: Any = next(iter(read_manifest_list(io.new_input(manifest_list))))
    entries = manifest.fetch_manifest_entry(io, discard_deleted=False)
    place = Path(manifest.manifest_path.removeprefix("file://"))
    place.unlink()
    with write_manifest(
        2, table.spec(), table.schema(), io.new_output(manifest.manifest_path), manifest.added_snapshot_id, "deflate"
    ) as writer:
        for entry in entries:
            entry.data_file[1] = location
            assert entry.data_file.file_path == location
            made = ManifestEntry.from_args(
                status=status,
                snapshot_id=entry.snapshot_id,
                sequence_number=1,
                file_sequence_number=1,
                data_file=entry.data_file,
            )
            writer.add_entry(made)
    assert found


@pytest.mark.parametrize("what", ["list", "statistics", "partition statistics"])
def test_no_file_of_a_commit_lies_elsewhere(two: Lake, what: str) -> None:
    table = two.engine("Tom").load_table("raw.mine")
    victim, snapshot = victim_file(two), table.current_snapshot().snapshot_id
    of = {"snapshot-id": snapshot, "statistics-path": victim, "file-size-in-bytes": 1}
    bodies: dict[str, Any] = {
        "list": appending(table),
        "statistics": {"updates": [{"action": "set-statistics", "statistics": {**of, "file-footer-size-in-bytes": 1, "blob-metadata": []}}]},
        "partition statistics": {"updates": [{"action": "set-partition-statistics", "partition-statistics": of}]},
    }  # fmt: skip
    body = bodies[what]
    if what == "list":
        update_of(body, "add-snapshot")["snapshot"]["manifest-list"] = victim
    assert error_of(two.api("Tom").post(MINE, body)) == REFUSED
    unmoved(two)


def test_a_manifest_list_of_another_table_is_refused(two: Lake) -> None:
    """It would give the other table's rows without a file of one's own."""
    other = two.engine("Tess").load_table("service.revenue").current_snapshot().manifest_list
    body = appending(two.engine("Tom").load_table("raw.mine"))
    update_of(body, "add-snapshot")["snapshot"]["manifest-list"] = other
    assert error_of(two.api("Tom").post(MINE, body)) == REFUSED
    inside = Path(two.engine("Tom").load_table("raw.mine").location().removeprefix("file://")) / "metadata/copy.avro"
    inside.write_bytes(Path(other.removeprefix("file://")).read_bytes())
    update_of(body, "add-snapshot")["snapshot"]["manifest-list"] = f"file://{inside}"
    answer = two.api("Tom").post(MINE, body)
    assert error_of(answer) == REFUSED
    assert "outside" in answer.json()["error"]["message"]


def test_a_link_leads_nowhere(two: Lake) -> None:
    table = two.engine("Tom").load_table("raw.mine")
    root = Path(table.location().removeprefix("file://"))
    other = root.parent / two.company.id("table", "service.revenue")
    (root / "linked").symlink_to(other)
    (root / "linked.avro").symlink_to(next((other / "metadata").glob("snap-*.avro")))
    names = [f"linked/metadata/{one.name}" for one in (other / "metadata").glob("snap-*.avro")]
    for name in (*names, "linked.avro"):
        body = appending(table)
        update_of(body, "add-snapshot")["snapshot"]["manifest-list"] = f"{table.location()}/{name}"
        assert error_of(two.api("Tom").post(MINE, body)) == REFUSED
    with pytest.raises(BadRequestError):
        table.add_files([f"{table.location()}/linked/data/{next((other / 'data').iterdir()).name}"])


@pytest.mark.parametrize(
    "update",
    [
        {"action": "set-location", "location": "file:///etc"},
        {"action": "set-location", "location": ""},
        {"action": "assign-uuid", "uuid": "00000000-0000-0000-0000-000000000000"},
        {"action": "upgrade-format-version", "format-version": 1},
        {"action": "upgrade-format-version", "format-version": 3},
        {"action": "set-snapshot-ref", "ref-name": "../x", "type": "branch", "snapshot-id": 1},
        {"action": "set-snapshot-ref", "ref-name": "a b", "type": "tag", "snapshot-id": 1},
        {"action": "set-snapshot-ref", "ref-name": "x", "type": "tag", "snapshot-id": 1},
        {"action": "set-snapshot-ref", "ref-name": "main", "type": "tag", "snapshot-id": 1},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "set-current-schema", "schema-id": 99},
        {"action": "set-default-spec", "spec-id": 99},
        {"action": "set-default-sort-order", "sort-order-id": 99},
        {"action": "remove-schemas", "schema-ids": [0]},
        {"action": "remove-partition-specs", "spec-ids": [0]},
        {"action": "add-spec", "spec": {"spec-id": 1, "fields": [{"source-id": 1, "field-id": 100, "transform": "identity", "name": "x"}]}},
        {"action": "add-schema", "schema": {**SCHEMA, "schema-id": 1, "fields": [*SCHEMA["fields"], *SCHEMA["fields"]]}},
        {"action": "add-schema", "schema": {**SCHEMA, "schema-id": 1, "fields": [{"id": 1, "name": "t", "required": False, "type": "timestamp_ns"}]}},
        {"action": "set-properties", "updates": {"comment": "x" * 9000}},
        {"action": "set-properties", "updates": {"write.metadata.previous-versions-max": "many"}},
        {"action": "set-properties", "updates": {"format-version": "3"}},
    ],
)  # fmt: skip
def test_an_update_that_no_table_may_have_is_refused(two: Lake, update: dict[str, Any]) -> None:
    status, kind = error_of(two.api("Tom").post(MINE, {"updates": [update]}))
    assert (status, kind) in {REFUSED, (400, "BadRequestException")}
    unmoved(two)


@pytest.mark.parametrize(
    "update",
    [
        {},
        {"action": "do-something"},
        {"action": "add-encryption-key", "encryption-key": {"key-id": "x", "encrypted-key-metadata": "x"}},
        {"action": "enable-row-lineage"},
        {"action": "add-view-version"},
        {"action": "add-snapshot"},
        {"action": "add-snapshot", "snapshot": {"snapshot-id": 1, "manifest-list": "x", "summary": {"operation": "append", "x": {}}}},
        {"action": "add-snapshot", "snapshot": {"snapshot-id": 2**64, "manifest-list": "x", "summary": {"operation": "append"}}},
        {"action": "add-snapshot", "snapshot": {"snapshot-id": 1, "manifest-list": "x", "summary": {"operation": "steal"}}},
        {"action": "add-schema", "schema": {"type": "struct", "fields": [{"id": 1, "name": "x", "required": False, "type": "blob"}]}},
        {"action": "set-properties", "updates": []},
        {"action": "set-snapshot-ref"},
        {"action": "set-statistics"},
    ],
)  # fmt: skip
def test_an_update_that_is_not_known_or_not_whole_is_refused(two: Lake, update: dict[str, Any]) -> None:
    status, kind = error_of(two.api("Tom").post(MINE, {"updates": [update]}))
    assert status == 400
    assert kind in {"BadRequestException", "ValidationException"}
    unmoved(two)


@pytest.mark.parametrize(
    "name",
    [
        "write.data.path",
        "write.metadata.path",
        "write.object-storage.path",
        "write.folder-storage.path",
        "write.location-provider.impl",
        "write.py-location-provider.impl",
        "io-impl",
        "py-io-impl",
        "location",
        "s3.endpoint",
        "encryption.key-id",
        "header.Authorization",
        "uuid",
        "headgate.root",
        "Write.Data.Path",
        "ｗrite.data.path",
        " write.data.path",
        "S3.endpoint",
        "my-io-impl",
        "METADATA_LOCATION",
        "spark.anything",
        "iceberg.mr.table.location",
        "gcp.project-id",
        "x" * 301,
        "custom.\u2028",
        "",
    ],
)
def test_a_property_that_could_lead_elsewhere_is_refused(two: Lake, name: str) -> None:
    body = {"updates": [{"action": "set-properties", "updates": {name: "file:///etc"}}]}
    assert error_of(two.api("Tom").post(MINE, body)) == REFUSED
    answer = two.api("Tom").post(
        "/iceberg/v1/namespaces/raw/tables", {"name": "new", "schema": SCHEMA, "properties": {name: "x"}}
    )
    assert error_of(answer) == REFUSED
    assert not two.rows("SELECT 1 FROM resources WHERE name = 'new'")


@pytest.mark.parametrize(
    "body",
    [
        {"name": "new"},
        {"name": "new", "schema": 1},
        {"name": "new", "schema": {"type": "struct", "fields": "x"}},
        {"name": "new", "schema": SCHEMA, "location": 1},
        {"name": "new", "schema": SCHEMA, "properties": {"format-version": "3"}},
        {"name": "new", "schema": SCHEMA, "properties": {"format-version": "1"}},
        {"name": "new", "schema": SCHEMA, "properties": []},
        {"name": "new", "schema": SCHEMA, "stage-create": "yes"},
        {"name": "new", "schema": SCHEMA, "partition-spec": {"spec-id": 0, "fields": [{"source-id": 9, "field-id": 1000, "transform": "identity", "name": "x"}]}},
        {"name": "new", "schema": SCHEMA, "write-order": {"order-id": 1, "fields": [{"source-id": 9, "transform": "identity", "direction": "asc", "null-order": "nulls-first"}]}},
        {"name": "../up", "schema": SCHEMA},
        {"name": "system", "schema": SCHEMA},
        {"schema": SCHEMA},
    ],
)  # fmt: skip
def test_a_table_that_cannot_be_is_not_created(two: Lake, body: dict[str, Any]) -> None:
    answer = two.api("Tom").post("/iceberg/v1/namespaces/raw/tables", body)
    assert answer.status_code == 400, answer.text
    error_of(answer)
    assert not two.rows("SELECT 1 FROM resources WHERE name = 'new'")


def staged(found: Lake, member: str, name: str = "new") -> tuple[dict[str, Any], str]:
    """Stage a table; the commit that would create it, and its location."""
    answer = found.api(member).post(
        "/iceberg/v1/namespaces/raw/tables", {"name": name, "schema": SCHEMA, "stage-create": True}
    )
    answer.raise_for_status()
    metadata = answer.json()["metadata"]
    assert answer.json()["metadata-location"] is None
    updates = [
        {"action": "assign-uuid", "uuid": metadata["table-uuid"]},
        {"action": "upgrade-format-version", "format-version": 2},
        {"action": "add-schema", "schema": metadata["schemas"][0]},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": metadata["partition-specs"][0]},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": metadata["sort-orders"][0]},
        {"action": "set-default-sort-order", "sort-order-id": -1},
        {"action": "set-location", "location": metadata["location"]},
        {"action": "set-properties", "updates": {}},
    ]
    return {"requirements": [{"type": "assert-create"}], "updates": updates}, metadata["location"]


def test_a_staged_place_is_its_members_alone(two: Lake) -> None:
    """Whoever knew the id could otherwise take the files that another has written there."""
    body, _ = staged(two, "Tess")
    new = table_path("new")
    assert error_of(two.api("Tom").post(new, body)) == REFUSED
    assert error_of(two.api("Tess").post(table_path("other"), body)) == REFUSED
    assert two.api("Tess").post(new, body).status_code == 200
    two.engine("Tess").drop_table("raw.new")
    assert error_of(two.api("Tess").post(new, body)) == REFUSED, "a place is used once"


def test_a_staged_table_is_created_nowhere_else(two: Lake) -> None:
    body, location = staged(two, "Tom")
    victim = two.company.id("table", "service.revenue")
    for place in (
        f"file://{two.warehouse}/tables/{victim}",
        f"{location}/../{victim}",
        "file:///etc",
        f"{location}/x",
        "",
        location + "x",
    ):
        update_of(body, "set-location")["location"] = place
        assert error_of(two.api("Tom").post(table_path("new"), body)) == REFUSED
    update_of(body, "set-location")["location"] = location
    uuid = update_of(body, "assign-uuid")
    kept, uuid["uuid"] = uuid["uuid"], "00000000-0000-0000-0000-000000000000"
    assert error_of(two.api("Tom").post(table_path("new"), body)) == REFUSED
    uuid["uuid"] = kept
    body["updates"] = [one for one in body["updates"] if one["action"] != "add-schema"]
    assert two.api("Tom").post(table_path("new"), body).status_code == 400
    assert not two.rows("SELECT 1 FROM resources WHERE name = 'new'")


@pytest.mark.parametrize(
    ("field", "value", "status"),
    [
        ("sequence-number", 1, 409),
        ("sequence-number", 99, 400),
        ("timestamp-ms", 1, 400),
        ("timestamp-ms", 2**50, 400),
        ("parent-snapshot-id", 12345, 409),
        ("snapshot-id", -1, 400),
        ("schema-id", 2**70, 400),
        ("first-row-id", 5, 400),
        ("key-id", "k", 400),
        ("manifests", [], 400),
    ],
)
def test_a_snapshot_that_does_not_follow_is_refused(two: Lake, field: str, value: Any, status: int) -> None:
    body = appending(two.engine("Tom").load_table("raw.mine"))
    update_of(body, "add-snapshot")["snapshot"][field] = value
    answer = two.api("Tom").post(MINE, body)
    assert answer.status_code == status, answer.text
    unmoved(two)


def test_a_snapshot_cannot_take_the_id_of_another(two: Lake) -> None:
    table = two.engine("Tom").load_table("raw.mine")
    body = appending(table)
    update_of(body, "add-snapshot")["snapshot"]["snapshot-id"] = table.current_snapshot().snapshot_id
    assert error_of(two.api("Tom").post(MINE, body)) == REFUSED


def zigzag(number: int) -> bytes:
    number, found = number << 1, bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*found, number])


def avro(schema: Any, *blocks: tuple[int, bytes], codec: bytes = b"null") -> bytes:
    """An Avro file by hand."""
    meta = {b"avro.schema": json.dumps(schema).encode(), b"avro.codec": codec}
    header = zigzag(len(meta)) + b"".join(zigzag(len(k)) + k + zigzag(len(v)) + v for k, v in meta.items()) + b"\0"
    sync = b"s" * 16
    return b"Obj\x01" + header + sync + b"".join(zigzag(n) + zigzag(len(d)) + d + sync for n, d in blocks)


PLAIN: dict[str, Any] = {"type": "record", "name": "r", "fields": [{"name": "p", "type": "string", "field-id": 500}]}
TWICE = {**PLAIN, "fields": [*PLAIN["fields"], {"name": "q", "type": "string", "field-id": 500}]}
ALIAS = {**PLAIN, "fields": [{**PLAIN["fields"][0], "aliases": ["x"]}]}
BOMB = zlib.compress(b"\0" * (300 << 20), 9)[2:-4]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "truncated"),
        (b"PAR1" + b"x" * 100, "not an Avro"),
        (avro(PLAIN, (0, b""), (1, b"\x02x")), "empty block"),
        (avro(PLAIN, (1, b"\x02x"))[:-1], "truncated"),
        (avro(PLAIN, (1, b"\x02x")) + b"x", "truncated|long|empty"),
        (avro(PLAIN, (1, BOMB), codec=b"deflate"), "larger than"),
        (avro(PLAIN, (1, b"junk"), codec=b"deflate"), "damaged"),
        (avro(PLAIN, (1, b"\x02x"), codec=b"snappy"), "codec"),
        (avro(TWICE, (1, b"\x02x")), "duplicate"),
        (avro(ALIAS, (1, b"\x02x")), "aliases"),
    ],
)
def test_an_avro_file_that_readers_may_disagree_about_is_refused(content: bytes, why: str) -> None:
    with pytest.raises(BadFile, match=why):
        scan(content)


def test_a_plain_avro_file_is_taken() -> None:
    scan(avro(PLAIN, (1, b"\x02x"), (1, b"\x02y")))
    scan(avro(PLAIN, (1, zlib.compress(b"\x02x")[2:-1]), codec=b"deflate"))


@pytest.mark.parametrize(
    "content",
    [b"", b"x" * 50, avro(PLAIN, (0, b"")), avro(PLAIN, (1, b"\xff\xff\xff\xff\x0f")), avro("string", (1, b"\x02x"))],
)
def test_a_manifest_list_that_is_none_is_refused(two: Lake, content: bytes) -> None:
    table = two.engine("Tom").load_table("raw.mine")
    body = appending(table)
    place = Path(update_of(body, "add-snapshot")["snapshot"]["manifest-list"].removeprefix("file://"))
    place.write_bytes(content)
    assert error_of(two.api("Tom").post(MINE, body)) == REFUSED
    place.unlink()
    assert error_of(two.api("Tom").post(MINE, body)) == REFUSED
    unmoved(two)


ROOT = "file:///w/tables/tbl_1"


@pytest.mark.parametrize(
    "location",
    [
        f"{ROOT}/data/x.parquet",
        "file:/w/tables/tbl_1/data/x.parquet",
        "FILE:///w/tables/tbl_1/data/a=b%2Fc/x.parquet",
        f"{ROOT}/data/name=é ü/x.parquet",
    ],
)
def test_a_location_below_the_root_is_known_in_each_spelling(location: str) -> None:
    assert Root(FolderStore(Path("/w")), "tbl_1").path(location).startswith("tables/tbl_1/data/")


@pytest.mark.parametrize(
    "location",
    [
        None,
        7,
        "",
        "x",
        "/w/tables/tbl_1/x",
        "tables/tbl_1/x",
        ROOT,
        f"{ROOT}/",
        f"{ROOT}2/x",
        f"{ROOT}/../tbl_2/x",
        f"{ROOT}/./x",
        f"{ROOT}//x",
        f"{ROOT}/a//x",
        f"{ROOT}/%2e%2e/tbl_2/x",
        f"{ROOT}/%252e%252e/tbl_2/x",
        f"{ROOT}/..%2ftbl_2/x",
        f"{ROOT}/..\\tbl_2\\x",
        f"{ROOT}/%5c..%5cx",
        f"{ROOT}/x\0y",
        f"{ROOT}/x\ny",
        f"{ROOT}/x?y",
        f"{ROOT}/x#y",
        "file://host/w/tables/tbl_1/x",
        "file:w/tables/tbl_1/x",
        "s3://w/tables/tbl_1/x",
        "hdfs:///w/tables/tbl_1/x",
        "file:///w/metadata/tbl_1/x",
        "file:///w/tables/TBL_1/x",
        f"{ROOT}/" + "x" * 3000,
    ],
)
def test_a_location_that_is_not_certainly_below_the_root_is_outside(location: Any) -> None:
    with pytest.raises(OutsideRoot):
        Root(FolderStore(Path("/w")), "tbl_1").path(location)
