"""A table's facts and previews, of tables that stock PyIceberg wrote through the catalog."""

import base64
import datetime as dt
import json
import threading
import time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import FileScanTask
from pyiceberg.table.sorting import SortDirection, SortField, SortOrder
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import LongType, NestedField, StringType, StructType, TimestampType

from headgate.kit.errors import Conflict
from headgate.lakehouse.sql.results import ARROW
from headgate.lakehouse.tables import preview as previews
from headgate.lakehouse.tables import scan as scanning
from headgate.lakehouse.tables.scan import first_rows
from tests.lakehouse.catalog.support import Lake
from tests.support.installation import eventually

SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=True, doc="The order's number"),
    NestedField(2, "at", TimestampType()),
    NestedField(3, "address", StructType(NestedField(4, "city", StringType()), NestedField(5, "zip", StringType()))),
)
SPEC = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "by_id"))
ORDER = SortOrder(SortField(1, IdentityTransform(), direction=SortDirection.DESC))


def rows(first: int, count: int) -> pa.Table:
    return pa.table(
        {
            "id": pa.array(range(first, first + count), pa.int64()),
            "name": [f"n{n}" for n in range(first, first + count)],
        }
    )


def wrote(engine: RestCatalog, name: str, *parts: pa.Table) -> Any:
    table = engine.create_table(f"raw.{name}", schema=parts[0].schema)
    for part in parts:
        table.append(part)
    return table


def get(lake: Lake, who: str, name: str, rest: str = "", **parameters: Any) -> Any:
    return lake.company.as_(who).get(f"/api/tables/{lake.company.id('table', name)}{rest}", **parameters)


def preview(lake: Lake, who: str, name: str, **parameters: Any) -> Any:
    return get(lake, who, name, "/preview", **parameters)


# Facts


def test_facts_tell_the_schema_partitions_order_size_and_snapshots(served: Lake) -> None:
    properties = {"custom.team": "sales", "write.parquet.row-limit": "5"}
    table = served.engine("Tom").create_table(
        "raw.shop", SCHEMA, partition_spec=SPEC, sort_order=ORDER, properties=properties
    )
    data = pa.table(
        {
            "id": [1, 2],
            "at": [dt.datetime.fromisoformat("2026-01-01"), None],
            "address": [{"city": "Ulm", "zip": "8"}, None],
        },
        table.schema().as_arrow(),
    )
    table.append(data)
    found = get(served, "Tom", "raw.shop").json()
    assert found["format_version"] == 2
    assert (found["rows"], found["files"], found["snapshots"]) == (2, 2, 1)
    assert found["bytes"] > 0
    assert [(one["id"], one["name"], one["type"], one["required"]) for one in found["columns"]] == [
        (1, "id", "long", True),
        (2, "at", "timestamp", False),
        (3, "address", "struct<city: string, zip: string>", False),
    ]
    assert found["columns"][0]["doc"] == "The order's number"
    assert [one["path"] for one in found["columns"][2]["fields"]] == ["address.city", "address.zip"]
    assert found["partitions"] == [{"name": "by_id", "column": "id", "transform": "identity"}]
    assert [(one["column"], one["direction"]) for one in found["sort_order"]] == [("id", "desc")]
    assert found["properties"]["custom.team"] == "sales"
    assert (found["committed_by"]["name"], found["snapshot"]["operation"]) == ("Tom", "append")
    whole = json.dumps([found, get(served, "Tom", "raw.shop", "/snapshots").json()])
    assert str(served.warehouse) not in whole
    assert "file:" not in whole


def test_fields_are_described_by_name_or_id_and_keep_it_when_renamed(served_on_sqlite: Lake) -> None:
    lake, engine = served_on_sqlite, served_on_sqlite.engine("Tess")
    table = engine.create_table("raw.shop", SCHEMA)
    place = f"/api/tables/{lake.company.id('table', 'raw.shop')}"
    fields = [{"name": "ADDRESS.city", "title": "City"}, {"id": 1, "description": "A number"}]
    assert lake.company.as_("Ana").request("PATCH", place, json={"fields": fields}).status_code == 404
    answer = lake.company.as_("Tom").request("PATCH", place, json={"fields": fields})
    assert answer.status_code == 200, answer.text
    with table.update_schema() as update:
        update.rename_column("address.city", "town")
    found = get(lake, "Tom", "raw.shop").json()
    assert found["columns"][0]["description"] == "A number"
    assert found["columns"][2]["fields"][0]["path"] == "address.town"
    assert found["columns"][2]["fields"][0]["title"] == "City"
    gone = lake.company.as_("Tom").request("PATCH", place, json={"fields": [{"name": "address.city", "title": "x"}]})
    assert gone.status_code == 422


def test_snapshots_and_history_page_the_newest_first(served: Lake) -> None:
    wrote(served.engine("Tom"), "many", *(rows(n, 1) for n in range(5)))
    for rest, key in (("/snapshots", "id"), ("/history", "version")):
        whole = get(served, "Tom", "raw.many", rest).json()["items"]
        found, cursor = [], None
        while True:
            page = get(served, "Tom", "raw.many", rest, limit=2, **({"cursor": cursor} if cursor else {})).json()
            found += page["items"]
            cursor = page["next_cursor"]
            if cursor is None:
                break
        assert found == whole
        assert len({one[key] for one in found}) == len(found)
    assert [one["is_current"] for one in get(served, "Tom", "raw.many", "/snapshots").json()["items"]] == [
        True, False, False, False, False,
    ]  # fmt: skip
    history = get(served, "Tom", "raw.many", "/history").json()["items"]
    assert [one["added_rows"] for one in history[:5]] == [1] * 5
    assert {one["by"]["name"] for one in history} == {"Tom"}


# Previews


def test_a_preview_shows_the_first_rows(served: Lake) -> None:
    wrote(served.engine("Tom"), "small", rows(0, 3), rows(3, 4))
    found = preview(served, "Tess", "raw.small").json()
    assert [(one["name"], one["type"]) for one in found["columns"]] == [("id", "long"), ("name", "string")]
    assert sorted(found["rows"]) == [[n, f"n{n}"] for n in range(7)]
    assert (found["truncated"], found["cut"]) == (False, False)
    found = preview(served, "Tess", "raw.small", limit=2, columns=["NAME"]).json()
    assert [one["name"] for one in found["columns"]] == ["name"]
    assert len(found["rows"]) == 2
    assert found["truncated"]
    exact = preview(served, "Tess", "raw.small", limit=7).json()
    assert len(exact["rows"]) == 7


def test_a_preview_comes_as_arrow_when_asked(served_on_sqlite: Lake) -> None:
    wrote(served_on_sqlite.engine("Tom"), "small", rows(0, 3))
    place = f"/api/tables/{served_on_sqlite.company.id('table', 'raw.small')}/preview"
    answer = served_on_sqlite.company.as_("Tom").request("GET", place, headers={"Accept": ARROW})
    assert answer.headers["content-type"] == ARROW
    with pa.ipc.open_stream(answer.content) as reader:
        assert reader.read_all().to_pylist() == rows(0, 3).to_pylist()


def test_every_type_is_json(served_on_sqlite: Lake) -> None:
    data = pa.table(
        {
            "yes": pa.array([True]),
            "real": pa.array([float("nan")]),
            "huge": pa.array([2**62]),
            "money": pa.array([Decimal("12.30")], pa.decimal128(12, 2)),
            "day": pa.array([dt.date(2026, 5, 4)]),
            "at": pa.array([dt.datetime.fromisoformat("2026-05-04T03:02:01.000009")], pa.timestamp("us")),
            "zoned": pa.array([dt.datetime(2026, 5, 4, tzinfo=dt.UTC)], pa.timestamp("us", "UTC")),
            "bits": pa.array([b"\xff\0"]),
            "list": pa.array([[float("inf"), None]]),
            "map": pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64())),
            "struct": pa.array([{"a": b"x", "b": {"c": Decimal("1")}}]),
            "none": pa.array([None], pa.string()),
        }
    )
    wrote(served_on_sqlite.engine("Tom"), "kinds", data)
    found = preview(served_on_sqlite, "Tom", "raw.kinds")
    assert found.status_code == 200, found.text
    row = dict(zip(data.column_names, found.json()["rows"][0], strict=True))
    assert row["real"] == "NaN"
    assert (row["yes"], row["huge"], row["money"], row["day"]) == (True, 2**62, "12.30", "2026-05-04")
    assert row["at"].startswith("2026-05-04T03:02:01.000009")
    assert row["bits"] == base64.b64encode(b"\xff\0").decode()
    assert row["list"] == ["Infinity", None]
    assert row["map"] == [["k", 1]]
    assert row["struct"] == {"a": base64.b64encode(b"x").decode(), "b": {"c": "1"}}
    assert row["none"] is None


def test_time_travel_by_snapshot_and_time(served_on_sqlite: Lake) -> None:
    lake = served_on_sqlite
    table = wrote(lake.engine("Tom"), "past", rows(0, 1))
    first = table.current_snapshot()
    time.sleep(0.01)
    with table.update_schema() as update:
        update.rename_column("name", "label").add_column("more", StringType())
    table.append(pa.table({"id": [1], "label": ["x"], "more": ["y"]}))
    assert len(preview(lake, "Tom", "raw.past").json()["rows"]) == 2
    old = preview(lake, "Tom", "raw.past", snapshot=str(first.snapshot_id)).json()
    assert ([one["name"] for one in old["columns"]], old["rows"]) == (["id", "name"], [[0, "n0"]])
    then = dt.datetime.fromtimestamp(first.timestamp_ms / 1000, dt.UTC)
    assert preview(lake, "Tom", "raw.past", as_of=then.isoformat()).json() == old
    assert preview(lake, "Tom", "raw.past", as_of=then.replace(tzinfo=None).isoformat()).json() == old
    now = preview(lake, "Tom", "raw.past", columns=["id", "label", "more"]).json()
    assert sorted(now["rows"]) == [[0, "n0", None], [1, "x", "y"]]
    for bad in (
        {"snapshot": "1"}, {"snapshot": "x"}, {"snapshot": "9" * 19}, {"snapshot": "-1"}, {"as_of": "1999-01-01"},
        {"as_of": "nonsense"}, {"snapshot": str(first.snapshot_id), "as_of": then.isoformat()}, {"limit": 0},
        {"limit": 100_000}, {"columns": ["nope"]}, {"columns": ["`id`"]}, {"columns": [""]}, {"as_of": "0001-01-01T00:00:00+14:00"},
    ):  # fmt: skip
        answer = preview(lake, "Tom", "raw.past", **bad)
        assert answer.status_code == 422, (bad, answer.text)


def test_deleted_rows_are_not_shown(served_on_sqlite: Lake) -> None:
    lake = served_on_sqlite
    table = wrote(lake.engine("Tom"), "less", rows(0, 10))
    table.delete("id < 4")
    assert sorted(preview(lake, "Tom", "raw.less").json()["rows"]) == [[n, f"n{n}"] for n in range(4, 10)]
    table.delete("id >= 0")
    assert preview(lake, "Tom", "raw.less").json()["rows"] == []


def test_rows_that_delete_files_name_are_left_out(served_on_sqlite: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """PyIceberg writes no such files, so this one is written by hand, as Spark's merge-on-read does."""
    lake = served_on_sqlite
    table = wrote(lake.engine("Tom"), "sparse", rows(0, 20))
    (task,) = table.scan().plan_files()
    place = task.file.file_path.removeprefix("file://").rpartition("/")[0] + "/deletes.parquet"
    positions = [0, 1, 5, 6, 7, 19]
    pq.write_table(pa.table({"file_path": [task.file.file_path] * 6, "pos": pa.array(positions, pa.int64())}), place)
    deletes = DataFile.from_args(
        content=DataFileContent.POSITION_DELETES,
        file_path=f"file://{place}",
        file_format=FileFormat.PARQUET,
        partition=task.file.partition,
        record_count=6,
        file_size_in_bytes=Path(place).stat().st_size,
    )
    marked = FileScanTask(task.file, delete_files={deletes})
    monkeypatch.setattr(scanning._Scan, "_tasks", lambda _: iter([marked]))
    for size in (1 << 30, 1):
        monkeypatch.setattr(scanning, "BATCH_BYTES", size)
        found = preview(lake, "Tom", "raw.sparse").json()["rows"]
        assert [row[0] for row in found] == [n for n in range(20) if n not in positions]
    monkeypatch.setattr(scanning, "MAX_DELETE_BYTES", 1)
    assert preview(lake, "Tom", "raw.sparse").status_code == 409


def test_a_table_without_rows_shows_its_columns(served_on_sqlite: Lake) -> None:
    served_on_sqlite.engine("Tom").create_table("raw.empty", SCHEMA)
    found = preview(served_on_sqlite, "Tom", "raw.empty").json()
    assert ([one["name"] for one in found["columns"]], found["rows"]) == (["id", "at", "address"], [])
    assert found["snapshot"] is None


def test_no_more_files_are_opened_than_needed(served_on_sqlite: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    wrote(served_on_sqlite.engine("Tom"), "wide", *(rows(n * 10, 10) for n in range(6)))
    opened: list[Any] = []
    real = scanning._opened
    monkeypatch.setattr(scanning, "_opened", lambda source: opened.append(source) or real(source))
    assert len(preview(served_on_sqlite, "Tom", "raw.wide", limit=9).json()["rows"]) == 9
    assert len(opened) == 1


def test_giant_cells_stay_within_the_limit(served_on_sqlite: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = served_on_sqlite
    data = pa.table({"id": pa.array(range(50), pa.int64()), "text": ["x" * 1_000_000 + str(n) for n in range(50)]})
    wrote(lake.engine("Tom"), "giant", data)
    sizes: list[int] = []
    real = scanning._without
    monkeypatch.setattr(scanning, "_without", lambda batch, *more: sizes.append(batch.nbytes) or real(batch, *more))
    found = preview(lake, "Tom", "raw.giant").json()
    assert 1 <= len(found["rows"]) < 10
    assert found["truncated"]
    assert found["cut"]
    assert all(len(row[1]) == previews.MAX_CELL for row in found["rows"])
    assert max(sizes) < scanning.BATCH_BYTES
    assert len(preview(lake, "Tom", "raw.giant", columns=["id"]).json()["rows"]) == 50
    monkeypatch.setattr(scanning, "MAX_ROW_BYTES", 1000)
    monkeypatch.setattr(scanning, "MAX_BYTES", 1000)
    refused = preview(lake, "Tom", "raw.giant")
    assert refused.status_code == 409
    assert "fewer columns" in refused.json()["detail"]


def test_a_preview_that_takes_too_long_ends(served_on_sqlite: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    wrote(served_on_sqlite.engine("Tom"), "slow", rows(0, 3))
    monkeypatch.setattr(scanning, "SECONDS", -1.0)
    answer = preview(served_on_sqlite, "Tom", "raw.slow")
    assert answer.status_code == 503
    assert "SQL" in answer.json()["detail"]


def test_a_damaged_or_missing_file_is_said_without_its_place(served_on_sqlite: Lake) -> None:
    lake = served_on_sqlite
    wrote(lake.engine("Tom"), "hurt", rows(0, 3))
    table = lake.company.id("table", "raw.hurt")
    (data,) = (lake.warehouse / "tables" / table).rglob("*.parquet")
    data.write_bytes(b"PAR1 nonsense PAR1")
    damaged = preview(lake, "Tom", "raw.hurt")
    data.unlink()
    for answer in (damaged, preview(lake, "Tom", "raw.hurt")):
        assert answer.status_code == 409, answer.text
        assert str(lake.warehouse) not in answer.text


def test_a_file_outside_of_the_table_is_not_read(served_on_sqlite: Lake) -> None:
    """Even if a commit had smuggled one in: a link to another table's file stands for that here."""
    lake = served_on_sqlite
    wrote(lake.engine("Tess"), "secret", rows(0, 3))
    wrote(lake.engine("Tess"), "open", rows(10, 3))
    places = [lake.warehouse / "tables" / lake.company.id("table", f"raw.{name}") for name in ("secret", "open")]
    (secret,), (own,) = (list(place.rglob("*.parquet")) for place in places)
    own.unlink()
    own.symlink_to(secret)
    answer = preview(lake, "Tess", "raw.open")
    assert answer.status_code == 409
    assert "n0" not in answer.text


def test_each_preview_is_a_read_of_data_in_the_audit_log(served_on_sqlite: Lake) -> None:
    lake = served_on_sqlite
    wrote(lake.engine("Tom"), "seen", rows(0, 3))
    table = lake.company.id("table", "raw.seen")
    preview(lake, "Tom", "raw.seen")
    assert preview(lake, "Ben", "raw.seen").status_code == 404

    def told() -> list[Any]:
        items: list[Any] = lake.company.as_("Adam").get("/api/audit", resource=table).json()["items"]
        return items

    def previews() -> list[Any]:
        return [one for one in told() if one["event"] == "resource.read" and (one["after"] or {}).get("read")]

    eventually(lambda: bool(previews()))
    (read,), found = previews(), told()
    assert (read["action"], read["after"]["read"], read["after"]["rows"]) == ("execute", "preview", 3)
    assert any(one["event"] == "access.denied" for one in found)


def test_a_right_that_ends_while_files_are_read_gives_no_rows(
    served_on_sqlite: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = served_on_sqlite
    wrote(lake.engine("Tess"), "mine", rows(0, 3))
    grant = {"to": "Ben", "resource": "table:raw.mine", "level": "viewer"}
    lake.company.as_("Tess").change(change="grant", **grant).raise_for_status()
    assert preview(lake, "Ben", "raw.mine").status_code == 200
    real = first_rows

    def slow(*arguments: Any) -> Any:
        found = real(*arguments)
        lake.company.as_("Tess").change(change="revoke", **grant).raise_for_status()
        return found

    monkeypatch.setattr(previews, "first_rows", slow)
    answer = preview(lake, "Ben", "raw.mine")
    assert answer.status_code == 404
    assert "n0" not in answer.text


def test_narrowed_tokens_preview_what_they_list(served_on_sqlite: Lake) -> None:
    lake = served_on_sqlite
    wrote(lake.engine("Tom"), "listed", rows(0, 1))
    wrote(lake.engine("Tom"), "other", rows(0, 1))
    listed, other = (lake.company.id("table", f"raw.{name}") for name in ("listed", "other"))
    for api in (lake.company.as_("Adam", only=[listed]), lake.company.as_("Adam", only=[listed], read_only=True)):
        assert api.get(f"/api/tables/{listed}/preview").status_code == 200
        assert api.get(f"/api/tables/{other}/preview").status_code == 404
    assert lake.company.as_("Adam", read_only=True).get(f"/api/tables/{other}/preview").status_code == 200


def test_many_at_once_all_get_their_rows(served_on_sqlite: Lake) -> None:
    lake = served_on_sqlite
    wrote(lake.engine("Tom"), "busy", rows(0, 100))
    place, token = f"/api/tables/{lake.company.id('table', 'raw.busy')}/preview", lake.company.token("Tom")
    answers: list[int] = []

    def ask() -> None:
        found = lake.company.client.get(place, headers={"Authorization": f"Bearer {token}"})
        answers.append(len(found.json()["rows"]))

    threads = [threading.Thread(target=ask) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [100] * 12


def test_equality_deletes_are_refused_in_words(served_on_sqlite: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    wrote(served_on_sqlite.engine("Tom"), "eq", rows(0, 1))
    metadata: Any = None

    def refuse(self: Any) -> Any:
        raise ValueError("PyIceberg does not yet support equality deletes")

    monkeypatch.setattr(scanning._Scan, "_tasks", refuse)
    with pytest.raises(Conflict, match="equality deletes"):
        scanning.first_rows(
            served_on_sqlite.company.client.app.state.services.store,  # type: ignore[attr-defined]
            served_on_sqlite.company.id("table", "raw.eq"),
            scanning.ScanRequest(metadata, 1, metadata, 1),
        )


# Deleting and restoring with data


def test_a_dropped_table_comes_back_with_its_rows_and_a_new_one_is_another(served: Lake) -> None:
    tess, api = served.engine("Tess"), served.company.as_("Tess")
    wrote(tess, "kept", rows(0, 3))
    old = served.company.id("table", "raw.kept")
    grant = {"to": "Ben", "resource": old, "level": "viewer"}
    api.change(change="grant", **grant).raise_for_status()
    tess.drop_table("raw.kept")
    assert [one["id"] for one in api.get("/api/deleted").json()["items"]] == [old]
    assert served.company.as_("Ben").get(f"/api/tables/{old}/preview").status_code == 404
    wrote(tess, "kept", rows(100, 1))
    new = served.company.id("table", "raw.kept")
    assert served.company.as_("Ben").get(f"/api/tables/{new}").status_code == 404
    assert api.post(f"/api/deleted/{old}/restore", {}).status_code == 409
    assert api.post(f"/api/deleted/{old}/restore", {"name": "old"}).status_code == 200
    assert tess.load_table("raw.old").scan().to_arrow().num_rows == 3
    assert served.company.as_("Ben").get(f"/api/tables/{old}/preview").json()["rows"][0] == [0, "n0"]
    assert preview(served, "Tess", "raw.kept").json()["rows"] == [[100, "n100"]]


def test_a_renamed_table_is_the_same_table_to_engines(served_on_sqlite: Lake) -> None:
    lake, tess = served_on_sqlite, served_on_sqlite.engine("Tess")
    wrote(tess, "before", rows(0, 2))
    table = lake.company.id("table", "raw.before")
    answer = lake.company.as_("Tess").request(
        "PATCH", f"/api/tables/{table}", json={"name": "after", "layer": "trusted"}
    )
    assert answer.status_code == 200, answer.text
    moved = tess.load_table("trusted.after")
    moved.append(rows(2, 1))
    assert len(preview(lake, "Tess", "trusted.after").json()["rows"]) == 3
    assert not tess.table_exists("raw.before")


def test_what_is_kept_of_metadata_never_outlives_a_commit(served_on_sqlite: Lake) -> None:
    lake = served_on_sqlite
    table = wrote(lake.engine("Tom"), "moving", rows(0, 1))
    for n in range(1, 4):
        assert len(preview(lake, "Tom", "raw.moving").json()["rows"]) == n
        assert get(lake, "Tom", "raw.moving").json()["rows"] == n
        table.append(rows(n, 1))
