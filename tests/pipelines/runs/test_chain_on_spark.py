"""A chain that is saved whole before any of it ran, and what its columns are made of, on a real Spark."""

from typing import Any

import pytest

from tests.pipelines.runs.conftest import PipelineBench

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


@pytest.fixture(scope="module")
def harvest(pipeline_bench: PipelineBench) -> PipelineBench:
    """A table of fruit in raw."""
    pipeline_bench.rows(
        "Tess", "CREATE TABLE raw.harvest AS SELECT id, id % 3 AS field, id * 2.5D AS kilos FROM range(9)"
    )
    return pipeline_bench


def shown(pipeline_bench: PipelineBench, pipeline: str) -> Any:
    return pipeline_bench.millrace.as_("Tess").get(f"/api/pipelines/{pipeline}").json()


def test_a_chain_is_saved_and_then_runs(harvest: PipelineBench) -> None:
    check = {"table": "trusted.by_field", "check": "sql", "sql": "SELECT * FROM trusted.by_field WHERE kilos < 0"}
    sql = (
        "SELECT field, sum(kilos) AS kilos, array(named_struct('n', count(*))) AS parts FROM raw.harvest GROUP BY field"
    )
    first = harvest.make("Tess", "By field", kind="query", sql=sql, output="trusted.by_field", expectations=[check])
    history = {"kind": "history", "table": "trusted.by_field", "output": "trusted.field_versions", "keys": ["field"]}
    second = harvest.make("Tess", "Field versions", **history)
    sql = "SELECT v.field, v.kilos + b.parts[0].n AS x, v._valid_from AS since FROM trusted.field_versions v "
    sql += "JOIN trusted.by_field b ON b.field = v.field WHERE v._is_current"
    third = harvest.make("Tess", "Now", kind="query", sql=sql, output="service.now")
    assert [shown(harvest, one)["unresolved"] for one in (first, second, third)] == [None, None, None]
    assert shown(harvest, third)["reads"] == ["trusted.by_field", "trusted.field_versions"]
    answer = harvest.run("Tess", "SELECT * FROM trusted.by_field")
    assert (answer["state"], "run the pipeline that writes it" in answer["error"]["message"]) == ("failed", True)
    early = harvest.ran("Tess", third)
    assert (early["state"], "first run the pipeline that writes it" in early["error"]) == ("failed", True), early
    for one in (first, second, third):
        run = harvest.ran("Tess", one)
        assert run["state"] == "succeeded", (run, harvest.log("Tess", run["id"]))
    rows = harvest.rows("Tess", "SELECT field, x FROM service.now ORDER BY field")
    assert rows == [[0, 25.5], [1, 33.0], [2, 40.5]]
    lineage = harvest.millrace.as_("Tess").get(f"/api/pipelines/{third}/lineage", columns=True).json()
    names = {one["id"]: one["name"] for one in lineage["nodes"]}
    found = {
        (names[one["source"]], one["source_column"], names[one["target"]], one["target_column"])
        for one in lineage["columns"]
    }
    assert found == {
        ("raw.harvest", "field", "trusted.by_field", "field"),
        ("raw.harvest", "kilos", "trusted.by_field", "kilos"),
        ("trusted.by_field", None, "trusted.field_versions", None),
        ("trusted.by_field", "parts", "service.now", "x"),
        ("trusted.field_versions", "field", "service.now", "field"),
        ("trusted.field_versions", "kilos", "service.now", "x"),
        ("trusted.field_versions", "_valid_from", "service.now", "since"),
    }


def refused(pipeline_bench: PipelineBench, **definition: Any) -> str:
    """Why a query is not saved."""
    body = {"name": "Refused", "definition": {"kind": "query", "output": "trusted.refused", **definition}}
    answer = pipeline_bench.millrace.as_("Tess").post("/api/pipelines", body).json()
    found = pipeline_bench.done("Tess", answer["statement"])
    assert found["state"] == "failed", found
    return str(found["error"]["message"])


def test_what_could_not_run_is_refused_at_the_save(harvest: PipelineBench) -> None:
    assert "in a query with write window" in refused(harvest, sql="SELECT id FROM raw.harvest WHERE id > :window_start")
    assert "CAST(NULL AS STRING)" in refused(harvest, sql="SELECT NULL AS x FROM raw.harvest")
    assert "Two columns have the name id" in refused(harvest, sql="SELECT id, id AS ID FROM raw.harvest")
    assert "gives no columns to write" in refused(harvest, sql="DROP TABLE raw.harvest")
    window = {"write": "window", "time_column": "at", "window": "3 days"}
    sql = "SELECT id, :run_time AS at FROM raw.harvest WHERE :run_time BETWEEN :window_start AND :window_end"
    assert harvest.make("Tess", "Window", kind="query", sql=sql, output="trusted.window", **window)


def test_a_check_of_ones_own_of_what_a_source_has_not_landed_yet_is_judged_by_its_runs(
    pipeline_bench: PipelineBench,
) -> None:
    tess = pipeline_bench.millrace.as_("Tess")
    volume = tess.post("/api/volumes", {"layer": "raw", "name": "crates"}).json()["id"]

    def landed(text: str) -> dict[str, Any]:
        path = f"/api/volumes/{volume}/files/fruit.csv"
        answer = tess.request("PUT", path, content=text.encode(), params={"overwrite": True})
        assert answer.status_code == 200, answer.text
        return pipeline_bench.ran("Tess", pipeline, full_refresh=True)

    check = {"table": "raw.fruit", "check": "sql", "sql": "SELECT kind FROM raw.fruit WHERE kilos < 0"}
    streams = [{"name": "*.csv", "table": "fruit"}]
    source = {"kind": "source", "volume": "raw.crates", "output_layer": "raw", "streams": streams}
    pipeline = pipeline_bench.make("Tess", "Fruit", **source, expectations=[check])
    assert "judged by the first run" in shown(pipeline_bench, pipeline)["notes"][0]
    run = landed("kind,kilos\npear,-1\nplum,2\n")
    assert (run["state"], run["error_code"], run["written"]) == ("failed", "EXPECTATION_FAILED", []), run
    found = run["steps"][-1]["check"]
    assert (found["passed"], found["failed_rows"], found["sample"]) == (False, 1, [{"kind": "pear"}])
    assert pipeline_bench.run("Tess", "SELECT * FROM raw.fruit")["state"] == "failed", "nothing was published"
    run = landed("kind,kilos\npear,1\nplum,2\n")
    assert (run["state"], run["steps"][-1]["check"]["passed"]) == ("succeeded", True), run
    assert pipeline_bench.rows("Tess", "SELECT kind, kilos FROM raw.fruit ORDER BY kind") == [["pear", 1], ["plum", 2]]
    assert shown(pipeline_bench, pipeline)["notes"] == []
