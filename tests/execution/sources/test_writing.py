"""What becomes of a table from run to run: replaced, appended to, merged into; columns that come, go and grow."""

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from headgate.execution.spark.errors import SqlFailed
from headgate.execution.steps import land
from headgate.execution.steps.context import StepFailed
from tests.execution.sources.support import Files, Source
from tests.execution.sources.test_json import lines
from tests.execution.sources.test_typed import parquet
from tests.support.steps import Workshop

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


def test_replace_and_append(files: Files) -> None:
    files.put("a.csv", "id\n1\n2\n")
    assert files.land("a.csv").rows_out == 2
    assert files.land("a.csv").rows_out == 2
    assert files.values() == [(1,), (2,)]
    assert files.land("a.csv", write="append").rows_out == 2
    assert files.values() == [(1,), (1,), (2,), (2,)]
    files.land("a.csv", write="append", full_refresh=True)
    assert files.values() == [(1,), (2,)]


def test_merge_by_keys(files: Files) -> None:
    merge: dict[str, Any] = {"write": "merge", "keys": ["Id", "kind"], "cursor": "at"}
    files.put(
        "a.csv", "Id,kind,at,text\n1,a,2026-01-01,one\n1,b,2026-01-01,two\n2,a,2026-01-01,x\n2,a,2026-01-02,three\n"
    )
    found = files.land("a.csv", **merge)
    assert (found.rows_in, found.rows_out, found.rejected) == (4, 3, 0)
    assert "Dropped 1 rows with duplicate keys" in files.log
    assert files.values("id, kind, text", "id, kind") == [(1, "a", "one"), (1, "b", "two"), (2, "a", "three")]
    # An older one changes nothing; one without a key belongs nowhere; what the source has not is left as it is.
    files.put("b.csv", "Id,kind,at\n1,a,2026-02-01\n2,a,2025-01-01\n3,a,2026-02-01\n,a,2026-02-01\n")
    found = files.land("b.csv", **merge)
    assert (found.rows_in, found.rows_out, found.rejected) == (4, 3, 1)
    assert files.rejected()[0]["reason"] == "id is empty"
    assert files.values("id, kind, text, month(at)", "id, kind") == [
        (1, "a", "one", 2),
        (1, "b", "two", 1),
        (2, "a", "three", 1),
        (3, "a", None, 2),
    ]
    assert "The source has no text" in files.log
    with pytest.raises(
        StepFailed, match="b\\.csv has no column 'nothing', which is the key of the stream; it has Id, kind"
    ):
        files.land("b.csv", write="merge", keys=["nothing"])
    # All is read anew, and equal rows count once, always the same one.
    files.put("c.csv", "Id,kind,at,text\n1,a,2026-01-01,x\n1,a,2026-01-01,y\n")
    texts = set()
    for _ in range(2):
        files.land("c.csv", full_refresh=True, **merge)
        texts.add(files.values("id, text")[0])
        assert len(files.values()) == 1
    assert len(texts) == 1


def test_columns_that_come_go_and_grow(files: Files) -> None:
    options = {"format": "parquet"}
    files.put(
        "a.parquet",
        parquet(id=pa.array([1], pa.int32()), f=pa.array([1.5], pa.float32()), d=[Decimal("1.50")], gone=["x"]),
    )
    files.land("a.parquet", files=options, write="append")
    files.put(
        "b.parquet",
        parquet(
            id=pa.array([2**40], pa.int64()),
            f=pa.array([1e300], pa.float64()),
            d=pa.array([Decimal("12345.50")], pa.decimal128(9, 2)),
            new=[{"a": [1]}],
        ),
    )
    files.land("b.parquet", files=options, write="append")
    assert files.types() == {
        "id": "bigint",
        "f": "double",
        "d": "decimal(9,2)",
        "gone": "string",
        "new": "struct<a:array<bigint>>",
    }
    assert "new columns, which are added to the table: new" in files.log
    assert "The source has no gone" in files.log
    assert files.values("id, d, gone, new.a") == [
        (1, Decimal("1.50"), "x", None),
        (2**40, Decimal("12345.50"), None, [1]),
    ]
    # What no table can grow to is rejected, and what fits nevertheless is not.
    files.put("c.parquet", parquet(id=[3.0, 4.5], d=[Decimal("1.5000"), Decimal("1.5001")]))
    found = files.land("c.parquet", files=options, write="append")
    assert (found.rows_out, found.rejected) == (1, 1)
    assert files.rejected()[0]["reason"] == "id: 4.5 is not a valid bigint; d: 1.5001 is not a valid decimal(9,2)"


def test_types_that_are_kept(files: Files) -> None:
    keep: dict[str, Any] = {"policy": "keep", "files": {"format": "json"}, "write": "append"}
    files.put("a.json", lines({"id": 1, "to": {"a": 1}}))
    files.land("a.json", **keep)
    before = files.types()
    files.put("b.json", lines({"id": 2, "new": 1, "to": {"a": 2, "b": 3}}, {"id": 3.5}))
    found = files.land("b.json", **keep)
    assert (found.rows_out, found.rejected) == (1, 1)
    assert files.types() == before
    assert "new columns, which are ignored (schema_changes: keep): new" in files.log
    assert files.values("id, to.a") == [(1, 1), (2, 2)]


def test_a_cursor_keeps_what_was_read_before_apart(files: Files) -> None:
    stream: dict[str, Any] = {"read": "incremental", "write": "append", "cursor": "at"}
    files.put("a.csv", "id,at\n1,2026-01-01T00:00:00Z\n2,2026-01-02T00:00:00Z\n")
    found = files.land("*.csv", **stream)
    assert found.state == {"cursor": "2026-01-02T00:00:00.000000Z", "type": "timestamp"}
    # Another row of the last moment comes late, and an equal one beside; the old ones are not doubled.
    files.put(
        "b.csv",
        "id,at\n3,2026-01-02T00:00:00Z\n3,2026-01-02T00:00:00Z\n0,2025-01-01T00:00:00Z\n4,2026-01-03T00:00:00Z\nx,2026-01-03T00:00:00Z\n",
    )
    found = files.land("*.csv", **stream)
    assert (found.rows_in, found.rows_out, found.rejected) == (5, 3, 1)
    assert files.values("id") == [(1,), (2,), (3,), (3,), (4,)]
    assert found.state == {"cursor": "2026-01-03T00:00:00.000000Z", "type": "timestamp"}
    found = files.land("*.csv", **stream)
    assert (found.rows_out, found.rejected) == (0, 0)
    assert len(files.values()) == 5
    assert len(files.rejected()) == 1
    found = files.land("*.csv", full_refresh=True, **stream)
    assert (found.rows_out, found.rejected) == (6, 1)
    assert found.state == {"cursor": "2026-01-03T00:00:00.000000Z", "type": "timestamp"}


def test_rows_are_counted_when_spark_does_not_report_its_observation(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(land, "FUNCTION", "tests.execution.sources.functions:land_without_observed_metrics")
    stream: dict[str, Any] = {"read": "incremental", "write": "append", "cursor": "id"}
    files.put("a.csv", "id,at\n1,2026-01-01\n7,2026-01-02\n")
    files.land("*.csv", **stream)
    files.put("b.csv", "id,at\n8,2026-01-03\n9,never\n")
    found = files.land("*.csv", full_refresh=True, **stream)
    assert "did not report the row counts" in files.log
    assert (found.rows_in, found.rows_out, found.rejected) == (4, 3, 1)
    assert found.state == {"cursor": "9", "type": "bigint"}
    assert files.values("id") == [(1,), (7,), (8,)]
    assert files.rejected()[0]["reason"] == "at: never is not a valid date"


def test_files_are_landed_once_each_without_a_cursor(files: Files) -> None:
    stream: dict[str, Any] = {"read": "incremental", "write": "append"}
    files.put("a.csv", "id\n1\n")
    files.land("*.csv", **stream)
    files.put("b.csv", "id\n2\n")
    found = files.land("*.csv", **stream)
    assert (found.rows_in, found.rows_out) == (1, 1)
    found = files.land("*.csv", **stream)
    assert found.rows_in == 0
    assert "All 2 files of the connection that match *.csv were already loaded" in files.log
    assert files.values() == [(1,), (2,)]
    files.land("*.csv", full_refresh=True, **stream)
    assert files.values() == [(1,), (2,)]
    assert files.land("*.csv", **stream).rows_in == 0


@pytest.mark.parametrize("way", [{"write": "append"}, {"write": "merge", "keys": ["id"]}])
def test_files_whose_rows_are_all_rejected_are_landed_once_too(files: Files, way: dict[str, Any]) -> None:
    files.put("a.csv", "id,n\n1,10\n")
    files.land("*.csv", read="incremental", **way)
    files.put("b.csv", "id,n\nx,ten\n")
    assert files.land("*.csv", read="incremental", **way).rejected == 1
    assert files.land("*.csv", read="incremental", **way).rows_in == 0
    assert len(files.rejected()) == 1
    assert files.values() == [(1, 10)]


def test_files_of_a_volume(shop: Workshop) -> None:
    company = shop.company
    volume = company.id("volume", "raw.invoices")
    api = company.as_("Tess")
    for path, text in (("2026/01/ä b.csv", "id\n1\n"), ("2026/02/c.csv", "id\n2\nx\n"), ("other.txt", "id\n9\n")):
        answer = api.request("PUT", f"/api/volumes/{volume}/files/{path}", content=text.encode())
        assert answer.status_code in (200, 201), answer.text
    source = Source(shop, "volume", {})
    source.volume = type(shop.item("raw.x"))(volume, "raw", "invoices")
    found = source.land("2026/**/*.csv", files={"nulls": ["x"]})
    assert (found.rows_in, found.rows_out) == (3, 3)
    assert source.values() == [(None,), (1,), (2,)]
    assert "Reading 2 files of raw.invoices" in source.log
    source.table += "r"
    source.land("2026/01/*.csv", write="append")
    assert source.land("2026/**/*.csv", write="append").rejected == 1
    assert [(row["record"], row["file"]) for row in source.rejected()] == [('{"id":"x"}', "2026/02/c.csv")]
    deleted = api.request("DELETE", f"/api/volumes/{volume}/files/2026/02/c.csv")
    assert deleted.status_code in (200, 204)
    assert source.land("2026/**/*.csv", write="append").rows_in == 1


def test_nothing_is_seen_before_it_is_published(files: Files) -> None:
    files.put("a.csv", "id\n1\n")
    running = files.start()
    step = files.step("a.csv")
    land.run(step, running.context)
    assert files.shop.rows(f"SELECT * FROM raw.{files.table}", running) == [{"id": 1}]
    with pytest.raises(SqlFailed, match=f"There is no table raw.{files.table} that you may see"):
        files.rows()
    running.publish()
    assert files.values() == [(1,)]
