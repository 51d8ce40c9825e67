"""Runs that are killed: whatever dies, and when, the tables are those of one clean run."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from headgate.kit.database import Database
from tests.lakehouse.sql.conftest import opened
from tests.pipelines.runs.conftest import PipelineBench
from tests.pipelines.runs.support import RunHand, lose
from tests.support.installation import eventually
from tests.support.spark import SharedSpark, within

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

POINTS = ("in step 0", "after the work of step 0", "after step 0", "after the work of step 1", "before the finish")
APPEND = {
    "kind": "query",
    "sql": "SELECT id, id * 2 AS twice FROM raw.known",
    "output": "trusted.kept",
    "write": "append",
    "expectations": [{"table": "trusted.kept", "check": "not_null", "columns": ["id"]}],
}
SLOW = "SELECT id FROM range(0, 30000000, 1, 4) WHERE sha2(CAST(id AS STRING), 512) LIKE 'aaaaa%'"


@contextmanager
def mortal(pipeline_bench: PipelineBench, folder: Path, point: str = "") -> Iterator["subprocess.Popen[str]"]:
    """A worker in a process of its own that dies at a point."""
    millrace, member = pipeline_bench.millrace, pipeline_bench.spark.member
    folder.mkdir(exist_ok=True)
    plan = {
        "server": pipeline_bench.address,
        "secret": millrace.client.app.state.services.worker_secret,  # type: ignore[attr-defined]
        "folder": str(folder / "mortal"),
        "settings": {"data_dir": str(folder), "warehouse": pipeline_bench.spark.warehouse},
        "spark": asdict(member._server.address),
    }
    file = folder / "plan.json"
    file.write_text(json.dumps(plan), encoding="utf-8")
    command = [sys.executable, "-m", "tests.pipelines.runs.mortal_worker", str(file)]
    process = subprocess.Popen(command, env={**os.environ, "HEADGATE_CRASH_AT": point}, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def idle(shared_spark: SharedSpark, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PipelineBench]:
    """The company with no worker that takes runs; statements have one."""
    folder = tmp_path_factory.mktemp("idle")
    with opened(shared_spark, Database(f"sqlite:///{folder}/headgate.db"), folder) as found:
        one = PipelineBench(found.millrace, found.spark, found.address, folder)
        with one.worker():
            one.rows("Tess", "CREATE TABLE raw.known AS SELECT id FROM range(100)")
            yield one


def totals(pipeline_bench: PipelineBench, table: str) -> Any:
    return pipeline_bench.rows("Tess", f"SELECT count(*), count(DISTINCT id), sum(twice) FROM {table}")


def owner(pipeline_bench: PipelineBench, run: str) -> str | None:
    """The worker that has a run, or had it last."""
    [(found,)] = pipeline_bench.millrace.rows(f"SELECT worker_id FROM runs WHERE id = '{run}'")
    return found  # type: ignore[no-any-return]


@pytest.mark.parametrize("point", POINTS)
def test_a_worker_that_is_killed_loses_and_doubles_nothing(idle: PipelineBench, tmp_path: Path, point: str) -> None:
    table = f"trusted.killed_{POINTS.index(point)}"
    definition = json.loads(json.dumps(APPEND).replace("trusted.kept", table))
    pipeline = idle.make("Tess", f"Killed {point}", **definition)
    run = idle.start("Tess", pipeline)
    with mortal(idle, tmp_path, point) as process:
        assert process.wait(240) == -signal.SIGKILL
    assert idle.show("Tess", run)["state"] == "running"
    lose(idle.millrace)
    with mortal(idle, tmp_path):
        found = idle.ended("Tess", run)
    assert found["state"] == "succeeded", found
    assert totals(idle, table) == [[100, 100, 9900]]
    assert len(found["written"]) == 1


def test_cancel_stops_spark_and_nothing_is_published(idle: PipelineBench, tmp_path: Path) -> None:
    endless = SLOW.replace("30000000", "3000000000")
    definition = {**APPEND, "sql": endless, "output": "trusted.stopped", "expectations": []}
    run = idle.start("Tess", idle.make("Tess", "Stopped", **definition))
    with mortal(idle, tmp_path):
        eventually(lambda: (idle.show("Tess", run)["progress"] or {}).get("tasks_total"), 240)
        idle.millrace.as_("Tess").post(f"/api/runs/{run}/cancel", None)
        found = idle.ended("Tess", run)
        assert (found["state"], found["written"]) == ("cancelled", [])
        within(60, idle.spark.is_calm)


def test_a_table_that_moved_under_a_run_is_written_from_its_new_state(idle: PipelineBench, tmp_path: Path) -> None:
    idle.rows("Tess", "CREATE TABLE trusted.moving (id BIGINT, twice BIGINT)")
    definition = {**APPEND, "output": "trusted.moving", "expectations": []}
    run = idle.start("Tess", idle.make("Tess", "Moving", **definition))
    with mortal(idle, tmp_path, "before the finish") as process:
        assert process.wait(240) == -signal.SIGKILL
    idle.rows("Tess", "INSERT INTO trusted.moving VALUES (1000, 2000)")
    lose(idle.millrace)
    with mortal(idle, tmp_path):
        found = idle.ended("Tess", run)
    assert found["state"] == "succeeded", found
    assert totals(idle, "trusted.moving") == [[101, 101, 11900]]


def test_a_worker_that_is_stopped_and_wakes_up_commits_nothing_and_works_on(
    idle: PipelineBench, tmp_path: Path
) -> None:
    """Two workers: the first stands still under its run, which the second does; then the first goes on."""
    slow = f"SELECT k.id, k.id * 2 AS twice FROM raw.known k CROSS JOIN (SELECT count(*) FROM ({SLOW})) s"
    definition = {**APPEND, "sql": slow.replace("30000000", "4000000"), "output": "trusted.woken", "expectations": []}
    pipeline = idle.make("Tess", "Woken", **definition)
    run = idle.start("Tess", pipeline)
    with mortal(idle, tmp_path / "first") as first:
        eventually(lambda: (idle.show("Tess", run)["progress"] or {}).get("tasks_total"), 240)
        before = owner(idle, run)
        first.send_signal(signal.SIGSTOP)
        with mortal(idle, tmp_path / "second"):
            lose(idle.millrace)
            eventually(lambda: owner(idle, run), 60)
            if owner(idle, run) == before:
                # It had asked for more before it stood still, and was given the run once more.
                lose(idle.millrace)
            assert idle.ended("Tess", run)["state"] == "succeeded"
            assert owner(idle, run) != before
            first.send_signal(signal.SIGCONT)
        assert totals(idle, "trusted.woken") == [[100, 100, 9900]]
        assert idle.ran("Tess", pipeline)["state"] == "succeeded"
    assert totals(idle, "trusted.woken") == [[200, 100, 19800]]


def test_a_worker_that_slept_commits_nothing(idle: PipelineBench, tmp_path: Path) -> None:
    """Its lease is over and another has the run; when it wakes up, its writes do not count."""
    definition = {**APPEND, "output": "trusted.slept", "expectations": []}
    run = idle.start("Tess", idle.make("Tess", "Slept", **definition))
    (job,) = RunHand(idle.millrace).claim()
    lose(idle.millrace)
    with mortal(idle, tmp_path):
        assert idle.ended("Tess", run)["state"] == "succeeded"
    with idle.spark.session(job["token"]) as session, pytest.raises(Exception, match="valid token"):
        list(session.run("INSERT INTO trusted.slept VALUES (1, 2)").batches)
    assert totals(idle, "trusted.slept") == [[100, 100, 9900]]
