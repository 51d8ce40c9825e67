"""Deliveries as members make and run them: a table to a folder and to an address, on a real Spark."""

import csv
import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.pipelines.runs.conftest import PipelineBench
from tests.support.api import SECRET, Api, Reply, serving

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


@pytest.fixture(scope="module")
def stock(pipeline_bench: PipelineBench) -> PipelineBench:
    """A table of five rows in raw."""
    pipeline_bench.rows("Tess", "CREATE TABLE raw.stock AS SELECT id, concat('=n', id) AS name FROM range(1, 6)")
    (pipeline_bench.folder / "out").mkdir()
    return pipeline_bench


@pytest.fixture
def api() -> Iterator[Api]:
    with serving() as found:
        found.on("/v1/stock", lambda _: Reply({}, 202))
        yield found


def destination(pipeline_bench: PipelineBench, name: str, place: dict[str, Any], **secrets: str) -> str:
    answer = pipeline_bench.millrace.as_("Tess").post(
        "/api/destinations", {"name": name, "place": place, "secrets": secrets}
    )
    assert answer.status_code == 200, answer.text
    return str(answer.json()["id"])


def delivery(pipeline_bench: PipelineBench, name: str, to: str, **sending: Any) -> str:
    return pipeline_bench.make(
        "Tess", name, kind="delivery", destination=to, tables=[{"table": "raw.stock", **sending}]
    )


def test_a_table_gets_to_a_folder_and_to_an_address(stock: PipelineBench, api: Api) -> None:
    out = stock.folder / "out"
    there = destination(stock, "Exports", {"kind": "folder", "path": str(out)})
    files = delivery(stock, "Stock as files", there, target="exports/stock", write="overwrite", format="csv")
    for _ in range(2):
        run = stock.ran("Tess", files)
        assert run["state"] == "succeeded", (run, stock.log("Tess", run["id"]))
        (step,) = run["steps"]
        assert (step["kind"], step["rows_out"]) == ("deliver", 5)
    told = json.loads((out / "exports" / "stock" / files / "_LATEST.json").read_bytes())
    assert (told["run"], told["rows"]) == (run["id"], 5)
    assert [one.name for one in (out / "exports" / "stock" / files).glob("run_*")] == [f"{run['id']}-0"]
    rows = []
    for one in told["files"]:
        with (out / told["place"] / one["name"]).open(newline="") as file:
            rows += list(csv.DictReader(file))
    assert sorted((int(row["id"]), row["name"]) for row in rows) == [(n, f"'=n{n}") for n in range(1, 6)]

    place = {"kind": "http", "base_url": api.url, "auth": {"style": "bearer"}}
    sent = delivery(
        stock, "Stock by HTTP", destination(stock, "Shop", place, token=SECRET), target="/v1/stock", batch=2
    )
    api.fails("/v1/stock", Reply({}, 429, {"Retry-After": "1"}))
    run = stock.ran("Tess", sent)
    log = stock.log("Tess", run["id"])
    assert run["state"] == "succeeded", (run, log)
    assert "at least once" in log
    assert SECRET not in log
    assert [len(json.loads(one.body)) for one in api.seen] == [2, 2, 2, 1]
    keys = [one.headers["idempotency-key"] for one in api.seen]
    assert (keys[0], len(set(keys))) == (keys[1], 3)
    assert {one.headers["authorization"] for one in api.seen} == {f"Bearer {SECRET}"}
    arrived = [row for one in api.seen[1:] for row in json.loads(one.body)]
    assert arrived == [{"id": n, "name": f"=n{n}"} for n in range(1, 6)]

    api.on("/v1/stock", lambda _: Reply({"message": "stock is closed"}, 403))
    refused = stock.ran("Tess", sent)
    assert (refused["state"], refused["error_code"]) == ("failed", "API_FORBIDDEN")
    assert "stock is closed" in refused["error"]


def test_what_is_committed_after_the_checks_is_not_sent(stock: PipelineBench, api: Api) -> None:
    """While the first table is sent, rows get into the second that its checks would have refused."""
    stock.rows("Tess", "CREATE TABLE raw.checked AS SELECT id FROM range(1, 4)")
    ((before,),) = stock.rows("Tess", "SELECT CAST(snapshot_id AS STRING) FROM raw.checked.snapshots")

    def commits(_: Any) -> Reply:
        stock.rows("Tess", "INSERT INTO raw.checked VALUES (-1)")
        return Reply({}, 202)

    api.on("/v1/stock", commits)
    api.on("/v1/checked", lambda _: Reply({}, 202))
    to = destination(stock, "Checked shop", {"kind": "http", "base_url": api.url, "auth": {"style": "none"}})
    negative = "SELECT id FROM raw.checked WHERE id < 0"
    pipeline = stock.make(
        "Tess",
        "Checked",
        kind="delivery",
        destination=to,
        tables=[{"table": "raw.stock", "target": "/v1/stock"}, {"table": "raw.checked", "target": "/v1/checked"}],
        expectations=[{"table": "raw.checked", "check": "sql", "sql": negative}],
    )
    run = stock.ran("Tess", pipeline)
    assert run["state"] == "succeeded", (run, stock.log("Tess", run["id"]))
    sent = [row["id"] for one in api.seen if one.path == "/v1/checked" for row in json.loads(one.body)]
    assert sorted(sent) == [1, 2, 3]
    assert run["steps"][2]["detail"]["snapshot"] == before
    assert len(stock.rows("Tess", negative)) == 1, "it was committed meanwhile"
    again = stock.ran("Tess", pipeline)
    assert (again["state"], again["error_code"]) == ("failed", "EXPECTATION_FAILED")
