"""Streams from outside, landed in tables by a real Spark: APIs, files behind addresses and in buckets, other catalogs."""

import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from headgate.contracts.external_systems.endpoints import Endpoint
from headgate.contracts.pipelines.steps import Land
from headgate.contracts.pipelines.streams import Stream
from headgate.execution.steps import land
from headgate.execution.steps.context import Result, StepFailed
from headgate.kit.database import Database
from headgate.schema import METADATA
from tests.lakehouse.catalog.support import MORE, ROWS, lake
from tests.support.api import SECRET, Api, Reply, serving
from tests.support.s3 import BUCKET, KEY_ID, REGION, S3Server
from tests.support.s3 import SECRET as KEY
from tests.support.steps import Running, Workshop

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


class Source:
    """A connection whose streams are landed one run after the other, as published runs are."""

    def __init__(self, shop: Workshop, kind: str, config: dict[str, Any], **secrets: str) -> None:
        self.shop, self.endpoint = shop, Endpoint("con_1", kind, config, secrets)
        self.states: dict[str, Any] = {}

    def land(
        self, table: str, name: str, *, policy: str = "evolve", full_refresh: bool = False, **stream: Any
    ) -> tuple[Result, Running]:
        """Land a stream, and publish it."""
        running = self.shop.run(
            f"raw.{table}",
            f"raw.{table}_rejected",
            states=self.states,
            full_refresh=full_refresh,
            endpoints={self.endpoint.id: self.endpoint},
        )
        own, beside = self.shop.item(f"raw.{table}"), self.shop.item(f"raw.{table}_rejected")
        wanted = Stream.model_validate({"name": name, "table": table, **stream})
        found = land.run(Land(wanted, own, beside, policy), running.context)  # type: ignore[arg-type]
        running.publish()
        if found.state is not None:
            self.states = {self.shop.item(f"raw.{table}").id: found.state}
        return found, running

    def rows(self, table: str, columns: str = "*", order: str = "id") -> list[dict[str, Any]]:
        return self.shop.rows(f"SELECT {columns} FROM raw.{table} ORDER BY {order}")


@pytest.fixture(scope="module")
def shop(shared_shop: Workshop) -> Workshop:
    return shared_shop


@pytest.fixture
def api() -> Iterator[Api]:
    with serving([]) as found:
        yield found


def http(api: Api, **more: Any) -> dict[str, Any]:
    auth = {"style": "api_key", "name": "X-Key", "place": "header"}
    return {"base_url": api.url, "auth": auth, "headers": {}, "retries": 1, **more}


def test_rows_of_an_api_become_typed_columns(shop: Workshop, api: Api) -> None:
    api.data = [
        {
            "id": 1,
            "Name": "ä\n",
            "paid": 1.5,
            "at": "2026-01-02T03:04:05Z",
            "to": {"city": "Ulm", "lines": [1, 2]},
            "mixed": 1,
        },
        {
            "id": 2,
            "Name": None,
            "paid": 2,
            "at": "2026-01-03T00:00:00Z",
            "to": {"city": "Bern", "zip": "x"},
            "mixed": "two",
        },
    ]
    source = Source(shop, "http", http(api), token=SECRET)
    paging = {"style": "link", "next": "next"}
    api.on(
        "/orders",
        lambda seen: Reply(
            {"data": api.data[:1], "next": "/orders?p=2"} if not seen.parameters else {"data": api.data[1:]}
        ),
    )
    found, running = source.land("orders", "/orders", api={"rows": "data", "paging": paging})
    assert (found.rows_in, found.rows_out, found.rejected) == (2, 2, 0)
    # Each page is asked for once, although its rows are looked at several times.
    assert [seen.headers["x-key"] for seen in api.seen] == [SECRET] * 2
    assert SECRET not in running.text
    columns = {row["col_name"]: row["data_type"] for row in shop.rows("DESCRIBE TABLE raw.orders")}
    assert (columns["id"], columns["paid"], columns["at"], columns["mixed"]) == (
        "bigint",
        "double",
        "timestamp",
        "string",
    )
    assert columns["to"] == "struct<city:string,lines:array<bigint>,zip:string>"
    first, second = source.rows("orders")
    assert (first["name"], first["paid"], first["at"]) == ("ä\n", 1.5, datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC))
    assert (first["to"], second["to"]) == (
        {"city": "Ulm", "lines": [1, 2], "zip": None},
        {"city": "Bern", "lines": None, "zip": "x"},
    )
    assert (first["mixed"], second["mixed"]) == ("1", "two")

    api.on("/orders", lambda _: Reply([{"id": "one", "Name": "n"}, {"id": 3, "new": True}, 7]))
    found, running = source.land("orders", "/orders", policy="keep", write="append")
    assert (found.rows_in, found.rows_out, found.rejected) == (3, 2, 1)
    assert [row["id"] for row in source.rows("orders")] == [None, 1, 2, 3]
    assert "new" in running.text
    (bad,) = shop.rows("SELECT * FROM raw.orders_rejected")
    assert "id: one is not a valid bigint" in str(bad)

    # No rows are an answer as well, and what is wrong leaves all as it was.
    api.on("/orders", lambda _: Reply({"error": "no"}, 403))
    with pytest.raises(StepFailed, match="has no permission to read /orders"):
        source.land("orders", "/orders")
    assert len(source.rows("orders")) == 4
    api.on("/orders", lambda _: Reply([]))
    found, _ = source.land("orders", "/orders")
    assert (found.rows_out, source.rows("orders")) == (0, [])


def test_an_api_is_read_on_from_its_cursor(shop: Workshop, api: Api) -> None:
    api.data = [{"id": n, "at": f"2026-01-0{n}T00:00:00Z", "v": "a"} for n in (1, 2, 3)]
    source = Source(shop, "http", http(api, per_second=100), token=SECRET)
    stream: dict[str, Any] = {
        "read": "incremental",
        "write": "merge",
        "keys": ["id"],
        "cursor": "at",
        "look_back": "1 day",
        "api": {"cursor_parameter": "since", "partition_parameter": "part", "partitions": ["x"]},
    }
    found, _ = source.land("events", "/since", **stream)
    assert (found.rows_out, "since" in api.seen[-1].parameters) == (3, False)
    api.data = [{"id": n, "at": f"2026-01-0{n}T00:00:00Z", "v": "b"} for n in (1, 2, 3, 4)]
    source.land("events", "/since", **stream)
    assert api.seen[-1].parameters == {"since": "2026-01-02T00:00:00Z", "part": "x"}
    assert [row["v"] for row in source.rows("events")] == ["a", "b", "b", "b"]
    found, _ = source.land("events", "/since", full_refresh=True, **stream)
    assert "since" not in api.seen[-1].parameters
    assert [row["v"] for row in source.rows("events")] == ["b"] * 4


def test_a_file_behind_an_address(shop: Workshop, api: Api) -> None:
    api.on("/export.csv", lambda _: Reply("id;name\n1;ä\n2;b\nx;c\n".encode()))
    source = Source(shop, "http", http(api), token=SECRET)
    files = {"format": "csv", "delimiter": ";"}
    found, _ = source.land("exported", "/export.csv", of="files", files=files)
    assert (found.rows_out, source.rows("exported")[0]) == (3, {"id": "1", "name": "ä"})


def test_files_of_a_bucket_are_landed_once_each(shop: Workshop, s3_server: S3Server) -> None:
    folder = s3_server.folder / BUCKET / "land"
    folder.mkdir()
    (folder / "1.json").write_text('{"id": 1}\n')
    place = {
        "endpoint": s3_server.endpoint,
        "bucket": BUCKET,
        "region": REGION,
        "prefix": "land",
        "path_style": True,
        "access_key_id": KEY_ID,
    }
    source = Source(shop, "object_store", place, secret_key=KEY)
    stream: dict[str, Any] = {"files": {"format": "json"}, "read": "incremental", "write": "append"}
    assert source.land("stored", "*.json", **stream)[0].rows_out == 1
    (folder / "2.json").write_text('{"id": 2}\n')
    assert source.land("stored", "*.json", **stream)[0].rows_out == 1
    assert source.land("stored", "*.json", **stream)[0].rows_out == 0
    assert source.rows("stored") == [{"id": 1}, {"id": 2}]


def test_a_table_of_another_catalog(
    shop: Workshop, s3_server: S3Server, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYICEBERG_MAX_WORKERS", "1")
    monkeypatch.setattr("pyiceberg.utils.concurrent.ExecutorFactory._instance", None)
    folder = tmp_path_factory.mktemp("other")
    database = Database(f"sqlite:///{folder}/headgate.db")
    METADATA.create_all(database.engine)
    rows = ROWS.append_column("at", pa.array([datetime(2026, 1, n) for n in (1, 2, 3)], pa.timestamp("us")))  # noqa: DTZ001
    more = MORE.append_column("at", pa.array([None, None], pa.timestamp("us")))
    with lake(database, folder, **s3_server.settings(f"other-{uuid.uuid4().hex}")) as other:
        made = other.engine("Tess").create_table("raw.sales", rows.schema)
        made.append(rows)
        place = {"uri": f"{other.url}/iceberg", "warehouse": "", "auth": {"style": "bearer"}}
        source = Source(shop, "iceberg", place, token=other.company.token("Tess"))
        stream: dict[str, Any] = {"read": "incremental", "write": "append"}
        found, running = source.land("sales", "raw.sales", **stream)
        assert (found.rows_in, found.rows_out, found.rejected) == (3, 3, 0)
        assert other.company.token("Tess") not in running.text
        made.append(more)
        assert source.land("sales", "raw.sales", **stream)[0].rows_out == 2
        assert source.land("sales", "raw.sales", **stream)[0].rows_out == 0
        assert [row["id"] for row in source.rows("sales")] == [1, 2, 3, 4, 5]
        made.delete("id > 1")
        with pytest.raises(StepFailed, match="run a full refresh once"):
            source.land("sales", "raw.sales", **stream)
        assert source.land("sales", "raw.sales", full_refresh=True, **stream)[0].rows_out == 1
        assert [row["id"] for row in source.rows("sales")] == [1]
        assert source.land("sales", "raw.sales", **stream)[0].rows_out == 0
