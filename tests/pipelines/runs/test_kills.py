"""A whole installation whose server, Spark and sandbox are killed: the tables are those of one clean run each."""

from collections.abc import Iterator
from typing import Any

import pytest

from headgate.execution.sandbox.processes import started
from tests.support.installation import eventually
from tests.support.killing import Works, works

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

SERVER_POINTS = (
    "server: claimed",
    "server: step 0 running",
    "server: metadata written",
    "server: committed",
    "server: step 0 succeeded",
    "server: finishing succeeded",
    "server: finished succeeded",
)
FILE_POINTS = ("server: finished succeeded", "server: file written", "server: file placed", "server: file moved")
APPEND = {"kind": "query", "sql": "SELECT id, id * 2 AS twice FROM raw.known", "write": "append"}
SLOW = "SELECT count(*) AS id FROM range(0, 3000000, 1, 2) WHERE sha2(CAST(id AS STRING), 512) LIKE 'zz%'"
ONCE = [[100, 100, 9900]]
CELLS = """import time
save(load("raw.known"), "trusted.noted")
for name in ("a", "b", "c"):
    save_file("raw.kept", f"out/{name}.txt", name.encode())
time.sleep(parameters["seconds"])
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Works]:
    with works(tmp_path_factory.mktemp("kills")) as found:
        found.rows("CREATE TABLE raw.known AS SELECT id FROM range(100)")
        found.volume("landing", known="id\n" + "\n".join(map(str, range(100))))
        yield found


def totals(site: Works, table: str) -> Any:
    return site.rows(f"SELECT count(*), count(DISTINCT id), sum(twice) FROM {table}")


def in_step(site: Works, run: str, number: int = 0) -> bool:
    """Whether a step is under way."""
    found = site.show(run)
    assert found["state"] in {"queued", "running"}, found
    return len(found["steps"]) > number and found["steps"][number]["state"] == "running"


@pytest.mark.parametrize("point", SERVER_POINTS)
def test_a_server_that_is_killed_loses_and_doubles_nothing(site: Works, point: str) -> None:
    table = f"trusted.served_{SERVER_POINTS.index(point)}"
    pipeline = site.make(f"Killed at {point}", **APPEND, output=table)
    before = site.pids("server")
    site.die_at(point)
    run = site.start(pipeline)
    found = site.ended(run)
    eventually(lambda: site.points_left == "" and not any(map(started, before)), 60)
    assert found["state"] == "succeeded", (found, site.log(run))
    assert totals(site, table) == ONCE
    assert len(found["written"]) == 1


def test_a_commit_whose_answer_was_lost_is_there_once(site: Works) -> None:
    """Of a statement, which has no run to begin it again: Spark itself asks whether it was made."""
    site.rows("CREATE TABLE trusted.stated (id BIGINT)")
    site.die_at("server: committed")
    answer = site.send("POST", "/api/sql/statements", json={"sql": "INSERT INTO trusted.stated VALUES (1), (2)"})
    eventually(lambda: site.get(f"/api/sql/statements/{answer['id']}")["state"] in {"succeeded", "failed"}, 120)
    assert site.points_left == ""
    assert site.rows("SELECT id FROM trusted.stated ORDER BY id") == [[1], [2]]


def test_the_spark_of_members_that_is_killed_is_started_again(site: Works) -> None:
    run = site.start(site.make("Slow", kind="query", sql=SLOW, output="trusted.slow", write="append"))
    eventually(lambda: (site.show(run)["progress"] or {}).get("tasks_total"), 60)
    assert site.kill("member spark")
    found = site.ended(run)
    assert found["state"] == "succeeded", (found, site.log(run))
    assert site.fence(run) == 2
    assert site.rows("SELECT count(*) FROM trusted.slow") == [[1]]


@pytest.mark.parametrize("kind", ["platform spark", "step"])
def test_a_landing_whose_spark_or_process_is_killed_lands_once(site: Works, kind: str) -> None:
    table = f"landed_{kind[:4]}"
    stream = {"name": "*.csv", "table": table, "write": "append"}
    pipeline = site.make(f"Landing, {kind}", kind="source", volume="raw.landing", output_layer="raw", streams=[stream])
    if not site.pids("platform spark"):
        warm = {"kind": "source", "volume": "raw.landing", "output_layer": "raw"}
        warming = site.make("Warm", **warm, streams=[{**stream, "table": "warmed"}])
        assert site.ended(site.start(warming))["state"] == "succeeded"
    run = site.start(pipeline)
    eventually(lambda: in_step(site, run), 60)
    # Until it had one: the step may take a moment to come to its process.
    eventually(lambda: site.fence(run) > 1 or (site.kill(kind) and False), 60)
    found = site.ended(run)
    assert found["state"] == "succeeded", (found, site.log(run))
    assert site.fence(run) > 1
    assert (found["rows_out"], site.rows(f"SELECT count(*), count(DISTINCT id) FROM raw.{table}")) == (
        100,
        [[100, 100]],
    )


def test_a_sandbox_that_is_killed_ends_its_run_with_words_and_the_next_is_clean(site: Works) -> None:
    """And the server dies wherever it puts the files of the next one into their volume."""
    volume = site.volume("kept")
    outputs = {"outputs": [{"table": "trusted.noted", "write": "append"}], "output_volumes": ["raw.kept"]}
    definition = {"kind": "notebook", "inputs": ["raw.known"], "cells": [{"source": CELLS}], **outputs}
    pipeline = site.make("Noted", **definition, parameters={"seconds": 60})
    run = site.start(pipeline)
    # It has saved, and goes on.
    eventually(lambda: any(site.one.folder.glob(f"warehouse/staging/{run}/*/saved/files/index.jsonl")), 90)
    below = site.kill("sandbox")
    assert len(below) > 3
    found = site.ended(run)
    assert (found["state"], found["error_code"]) == ("failed", "NOTEBOOK_ENDED")
    assert "it was killed, or called exit" in found["error"]
    eventually(lambda: not any(map(started, below)) and site.pids("sandbox") == [], 60)
    site.die_at(*FILE_POINTS)
    body = {"parameters": {"seconds": 0}}
    again = site.send("POST", f"/api/pipelines/{pipeline}/runs", json=body)["id"]
    found = site.ended(again)
    assert found["state"] == "succeeded", (found, site.log(again))
    eventually(lambda: site.points_left == "" and site.files(volume) == {f"out/{one}.txt": 1 for one in "abc"}, 60)
    assert site.rows("SELECT count(*), count(DISTINCT id) FROM trusted.noted") == [[100, 100]]


def test_a_supervisor_that_is_killed_goes_on_when_it_is_started_again(site: Works) -> None:
    slow = {**APPEND, "sql": f"SELECT k.id, k.id * 2 AS twice FROM raw.known k CROSS JOIN ({SLOW}) s"}
    run = site.start(site.make("All of it", **slow, output="trusted.all_of_it"))
    eventually(lambda: (site.show(run)["progress"] or {}).get("tasks_total"), 60)
    left = [pid for kind in ("server", "worker", "scheduler", "member spark") for pid in site.pids(kind)]
    site.kill_all()
    found = site.ended(run)
    assert found["state"] == "succeeded", (found, site.log(run))
    assert site.fence(run) == 2
    assert totals(site, "trusted.all_of_it") == ONCE
    eventually(lambda: not any(map(started, left)), 60)
