"""Pipelines as members make and run them, on a real Spark."""

from pathlib import Path
from typing import Any

import pytest

from headgate.warehouse.folder import FolderStore
from headgate.warehouse.locations import table_root
from tests.pipelines.runs.conftest import PipelineBench

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


@pytest.fixture(scope="module")
def orders(pipeline_bench: PipelineBench) -> PipelineBench:
    """A table of ten orders in raw."""
    values = "SELECT id, id % 3 AS shop, CAST(id AS DECIMAL(10, 2)) AS amount FROM range(10)"
    pipeline_bench.rows("Tess", f"CREATE TABLE raw.sold AS {values}")
    return pipeline_bench


def query(**more: Any) -> dict[str, Any]:
    sql = "SELECT shop, sum(amount) AS amount FROM raw.sold GROUP BY shop"
    return {"kind": "query", "sql": sql, "output": "trusted.by_shop", **more}


def test_a_query_becomes_a_table(orders: PipelineBench) -> None:
    pipeline = orders.make("Tess", "By shop", **query())
    run = orders.ran("Tess", pipeline)
    assert run["state"] == "succeeded", (run, orders.log("Tess", run["id"]))
    assert [(one["kind"], one["state"]) for one in run["steps"]] == [("refine", "succeeded")]
    assert [one["name"] for one in run["written"]] == ["trusted.by_shop"]
    rows = orders.rows("Tess", "SELECT shop, amount FROM trusted.by_shop ORDER BY shop")
    assert rows == [[0, "18.00"], [1, "12.00"], [2, "15.00"]]


def test_a_full_disk_of_the_servers_is_said_and_what_spark_wrote_goes(
    orders: PipelineBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline = orders.make("Tess", "More", **query(output="trusted.more", write="append"))
    assert orders.ran("Tess", pipeline)["state"] == "succeeded"
    url, table = orders.spark.warehouse["url"], orders.millrace.id("table", "trusted.more")
    root = Path(url.removeprefix("file://")) / table_root(table)
    before = {one for one in root.rglob("*") if one.is_file()}
    assert before

    def full(*_: Any) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(FolderStore, "write", full)
        run = orders.ran("Tess", pipeline)
    assert (run["state"], run["error_code"]) == ("failed", "DISK_FULL"), run
    assert "the operator must free space" in run["error"]
    assert {one for one in root.rglob("*") if one.is_file()} == before
    assert orders.rows("Tess", "SELECT count(*) FROM trusted.more") == [[3]]
    assert orders.ran("Tess", pipeline)["state"] == "succeeded"
