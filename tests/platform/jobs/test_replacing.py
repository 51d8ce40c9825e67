"""A worker that died is replaced: what it held is given out again at once, and never that of one that may live."""

import os
import signal
import sqlite3
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest
from sqlalchemy import Connection, insert

from headgate.execution.worker.worker_files import WorkerRecords
from headgate.kit.clock import now
from headgate.kit.ids import new_id
from headgate.lakehouse.maintenance.models import maintenance_pass_table, table_rewrite_table
from tests.lakehouse.sql.support import Hand, submit
from tests.pipelines.runs.support import HISTORY, RunHand, make, show, start
from tests.platform.connection_checks.test_checks import asked, claimed
from tests.spaces.connections.support import added
from tests.support.company import Company
from tests.support.installation import Installation, eventually, installed

pytestmark = pytest.mark.both_databases


def replace(hand: Hand, *dead: str) -> Any:
    return hand.request("POST", "/replace", json={**hand.about(), "dead": list(dead)})


class Named:
    """A worker that is called as real ones are, HOST:PID."""

    name = "mill:1"

    def about(self) -> dict[str, Any]:
        return {**super().about(), "name": self.name}


class Worker(Named, Hand):
    """It speaks of statements."""


class RunWorker(Named, RunHand):
    """It speaks of runs."""


def both(millrace: Company, name: str = "mill:1") -> tuple[Worker, RunWorker]:
    """One worker, as it speaks of statements and of runs."""
    hand, runs = Worker(millrace), RunWorker(millrace)
    runs.id, runs.name, hand.name = hand.id, name, name
    assert hand.claim() == []
    return hand, runs


def test_what_a_dead_worker_held_is_given_to_another_at_once(millrace: Company) -> None:
    dead, dead_runs = both(millrace)
    statement, run = submit(millrace, "Tess"), start(millrace, make(millrace))
    [job], [run_job] = dead.claim(), dead_runs.claim()
    alive, alive_runs = both(millrace, "mill:2")
    assert (alive.claim(), alive_runs.claim()) == ([], [])
    answer = replace(alive, dead.id)
    assert (answer.status_code, answer.json()) == (200, {"released": 2})
    [again], [run_again] = alive.claim(), alive_runs.claim()
    assert (again["id"], again["fence"]) == (statement, job["fence"] + 1)
    assert (run_again["id"], run_again["fence"]) == (run, run_job["fence"] + 1)
    # Were it alive after all, nothing that it says would count any more.
    assert dead.finish(job, "failed", error_code="X", error="late").status_code == 409
    assert dead_runs.finish(run_job).status_code == 409
    assert dead_runs.step(run_job, 0, "running").status_code == 409
    alive_runs.do(run_again)
    assert alive_runs.finish(run_again).json()["state"] == "succeeded"
    assert replace(alive, dead.id).json() == {"released": 0}


def test_what_was_being_cancelled_is_cancelled_then(millrace: Company) -> None:
    dead, dead_runs = both(millrace)
    statement, run = submit(millrace, "Tess"), start(millrace, make(millrace))
    assert dead.claim()
    assert dead_runs.claim()
    millrace.as_("Tess").post(f"/api/sql/statements/{statement}/cancel", None).raise_for_status()
    millrace.as_("Tess").post(f"/api/runs/{run}/cancel", None).raise_for_status()
    assert replace(both(millrace, "mill:2")[0], dead.id).json() == {"released": 2}
    assert show(millrace, run)["state"] == "cancelled"
    assert millrace.as_("Tess").get(f"/api/sql/statements/{statement}").json()["state"] == "cancelled"


def test_a_check_of_a_connection_is_released_too(millrace: Company) -> None:
    dead = both(millrace)[0]
    check = asked(millrace, "Tess", added(millrace)["id"])
    [job] = claimed(millrace, slots=1, worker=dead.id, name=dead.name)
    alive = both(millrace, "mill:2")[0]
    assert replace(alive, dead.id).json() == {"released": 1}
    [again] = claimed(millrace, slots=1, worker=alive.id, name=alive.name)
    assert (again["id"], again["fence"]) == (check, job["fence"] + 1)


def test_a_rewrite_of_a_table_is_given_up_for_the_next_pass(millrace: Company) -> None:
    dead = both(millrace)[0]
    counts = {"dry_run": False, "tables": 1, "looked_at": 1}
    pass_id, moment = new_id("maintenance"), now()

    def rewriting(connection: Connection) -> None:
        started = insert(maintenance_pass_table).values(id=pass_id, state="compacting", asked_at=moment, **counts)
        connection.execute(started)
        held = {"worker_id": dead.id, "queued_at": moment, "lease_until": moment + timedelta(hours=1)}
        table = millrace.id("table", "raw.orders")
        rewrite = {"id": new_id("table_rewrite"), "pass_id": pass_id, "table_id": table, "state": "running", "fence": 1}
        connection.execute(insert(table_rewrite_table).values(**rewrite, **held))

    millrace.database.write(rewriting)
    assert replace(both(millrace, "mill:2")[0], dead.id).json() == {"released": 1}
    [(state, note)] = millrace.rows("SELECT state, error FROM table_rewrites")
    assert (state, "the next pass tries again" in note) == ("failed", True)


def test_a_worker_of_another_machine_or_nobodys_is_left_alone(millrace: Company) -> None:
    elsewhere, runs = both(millrace, "other-mill:1")
    start(millrace, make(millrace))
    [job] = runs.claim()
    alive = both(millrace, "mill:2")[0]
    assert replace(alive, elsewhere.id, new_id("worker")).json() == {"released": 0}
    assert runs.beat(job) == {"cancel": [], "lost": []}
    assert replace(alive, alive.id).status_code == 422
    assert replace(alive).status_code == 422
    body = {**alive.about(), "dead": [elsewhere.id]}
    for who in (None, "Olga"):
        assert millrace.as_(who).post("/api/worker/replace", body).status_code == 401


@pytest.mark.processes
def test_only_the_files_of_processes_that_are_gone_are_found(tmp_path: Path) -> None:
    first, second = (WorkerRecords(tmp_path, new_id("worker")) for _ in range(2))
    assert (first.dead(), second.dead()) == ([], [])
    dead = new_id("worker")
    child = os.fork()
    if child == 0:
        try:
            WorkerRecords(tmp_path, dead)
            os.kill(os.getpid(), signal.SIGKILL)
        finally:
            os._exit(1)
    os.waitpid(child, 0)
    assert first.dead() == [dead]
    assert second.dead() == [], "the first replaces it"
    first.forget()
    assert (first.dead(), second.dead()) == ([], [])
    (tmp_path / "something else").touch()
    second.close()
    assert first.dead() == [], "the second ended in order"
    third = WorkerRecords(tmp_path, new_id("worker"))
    assert third.dead() == []
    first.close()
    third.close()


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_a_worker_that_is_killed_under_the_supervisor_is_followed_long_before_its_leases_end(tmp_path: Path) -> None:
    with installed(tmp_path, HEADGATE_RUNS__LEASE_SECONDS="3600") as one:
        one.fill()
        address, token = one.up(), one.token("Tess")
        with httpx.Client(base_url=address, headers={"Authorization": f"Bearer {token}"}, timeout=120) as tess:
            run = _started(tess)
            eventually(lambda: _held(one, run)[0] == "running", 120)
            worker = _held(one, run)[2]
            os.kill(_pid(one, worker), signal.SIGKILL)
            eventually(lambda: _held(one, run)[1] >= 2, 5)
            state, _, successor = _held(one, run)
            assert successor != worker, state
            tess.post(f"/api/runs/{run}/cancel").raise_for_status()


def _started(tess: httpx.Client) -> str:
    made = tess.post("/api/pipelines", json={"name": "Versions", "definition": HISTORY})
    assert made.status_code == 200, made.text
    begun = tess.post(f"/api/pipelines/{made.json()['id']}/runs", json={})
    assert begun.status_code == 200, begun.text
    return str(begun.json()["id"])


def _held(one: Installation, run: str) -> tuple[str, int, str]:
    with sqlite3.connect(one.folder / "headgate.db", timeout=60) as connection:
        row = connection.execute("SELECT state, fence, worker_id FROM runs WHERE id = ?", [run]).fetchone()
    return row[0], row[1], row[2]


def _pid(one: Installation, worker: str) -> int:
    with sqlite3.connect(one.folder / "headgate.db", timeout=60) as connection:
        [name] = connection.execute("SELECT name FROM workers WHERE id = ?", [worker]).fetchone()
    pid = int(name.rpartition(":")[2])
    assert pid in one.children()
    return pid
