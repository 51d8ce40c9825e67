"""The life of statements on a worker: slots, stopping, limits and losses. What Spark itself does is tried elsewhere."""

import threading
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from headgate.execution.worker.attempts import Attempt
from headgate.kit.clock import now
from headgate.kit.database import Database
from headgate.lakehouse.sql.job import LEASE
from tests.execution.worker.support import StandIn, done, port_of, served, working
from tests.lakehouse.sql.support import STATEMENTS, Hand, submit
from tests.support.company import Company, company
from tests.support.installation import eventually
from tests.support.spark import Doorway


@pytest.fixture
def address(millrace: Company) -> Any:
    with served(millrace) as found:
        yield found


def running_state(millrace: Company, statement: str, member: str = "Ben") -> str:
    return str(millrace.as_(member).get(f"{STATEMENTS}/{statement}").json()["state"])


def test_rows_come_back_in_pages(millrace: Company, address: str) -> None:
    with working(millrace, address, StandIn()):
        found = done(millrace, "Ben", submit(millrace, "Ben", "rows 2500"))
        assert (found["rows"], found["pages"], found["truncated"], len(found["data"])) == (2500, 3, False, 1000)
        last = millrace.as_("Ben").get(f"{STATEMENTS}/{found['id']}/pages/2").json()["data"]
        assert (last[0], last[-1]) == ([2000], [2499])
        short = done(millrace, "Ben", submit(millrace, "Ben", "rows 2500", max_rows=10))
        assert (short["rows"], short["truncated"]) == (10, True)


def test_a_statement_begins_as_soon_as_it_is_there(tmp_path: Path, database: Database) -> None:
    """Also where the process that took it is not the one that the worker asks."""
    several = {"processes": 2}
    with (
        company(database, tmp_path, server=several) as millrace,
        served(millrace) as address,
        working(millrace, address, StandIn()),
    ):
        done(millrace, "Ben", submit(millrace, "Ben", "rows 1"))
        time.sleep(0.5)
        began = time.monotonic()
        done(millrace, "Ben", submit(millrace, "Ben", "rows 1"))
        assert time.monotonic() - began < 10


def test_failures_are_told_in_their_own_words(millrace: Company, address: str) -> None:
    with working(millrace, address, StandIn()):
        failed = done(millrace, "Ben", submit(millrace, "Ben", "fail SYNTAX"))
        assert failed["error"] == {"code": "SYNTAX", "message": "because"}
        refused = done(millrace, "Ben", submit(millrace, "Ben", "refuse"))
        assert refused["error"] == {"code": "REFUSED", "message": "not here"}


def test_cancel_reaches_the_engine_at_once(millrace: Company, address: str) -> None:
    spark = StandIn()
    with working(millrace, address, spark):
        statement = submit(millrace, "Ben", "sleep 60")
        eventually(lambda: spark.ran)
        began = time.monotonic()
        millrace.as_("Ben").post(f"{STATEMENTS}/{statement}/cancel", None)
        assert done(millrace, "Ben", statement)["state"] == "cancelled"
        assert time.monotonic() - began < 30
        eventually(lambda: spark.open_now == 0)


def test_progress_is_told_while_it_runs(millrace: Company, address: str) -> None:
    with working(millrace, address, StandIn()):
        statement = submit(millrace, "Ben", "sleep 3")
        eventually(lambda: millrace.as_("Ben").get(f"{STATEMENTS}/{statement}").json()["progress"])
        found = millrace.as_("Ben").get(f"{STATEMENTS}/{statement}").json()["progress"]
        assert (found["tasks_done"], found["tasks_total"], found["stages"][0]["done"]) == (1, 2, 1)


@pytest.mark.slow
def test_a_long_statement_outlives_its_first_lease(millrace: Company, address: str) -> None:
    """Those who look see what they would see soon: had it not been renewed, it would be over by then."""
    spark, soon = StandIn(), LEASE - timedelta(seconds=5)
    with working(millrace, address, spark):
        statement = submit(millrace, "Ben", "sleep 8")
        eventually(lambda: spark.ran)
        for _ in range(13):
            time.sleep(0.5)
            Hand(millrace).sweep(now() + soon)
        assert done(millrace, "Ben", statement)["state"] == "succeeded"
    assert spark.ran == ["sleep 8"]


def test_the_time_limit_holds(tmp_path: Path, database: Database) -> None:
    with (
        company(database, tmp_path, sql={"statement_seconds": 1}) as millrace,
        served(millrace) as address,
        working(millrace, address, StandIn()),
    ):
        found = done(millrace, "Ben", submit(millrace, "Ben", "sleep 60"))["error"]
        assert found["code"] == "TIME_LIMIT"
        assert found["message"] == "The statement exceeded its timeout of 1 second"


def test_no_more_run_at_a_time_than_there_are_slots_and_forty_all_end(tmp_path: Path, database: Database) -> None:
    spark = StandIn()
    with (
        company(database, tmp_path, sql={"concurrent": 40}) as millrace,
        served(millrace) as address,
        working(millrace, address, spark, slots=3),
    ):
        made = [submit(millrace, "Ben", "sleep 0.05") for _ in range(40)]
        assert {done(millrace, "Ben", one, 60)["state"] for one in made} == {"succeeded"}
    assert spark.open_most <= 3
    assert len(spark.ran) == 40


def test_two_workers_share_the_work_and_run_nothing_twice(tmp_path: Path, database: Database) -> None:
    meeting = threading.Barrier(2)
    one, other = StandIn(meeting=meeting), StandIn(meeting=meeting)
    with (
        company(database, tmp_path, sql={"concurrent": 40}) as millrace,
        served(millrace) as address,
        working(millrace, address, one, slots=1),
        working(millrace, address, other, slots=1),
    ):
        # Two at a time are more than one of them can run.
        made = [submit(millrace, "Ben", f"meet {n}") for n in range(2)]
        made += [submit(millrace, "Ben", f"sleep 0.{n:02}") for n in range(20)]
        assert {done(millrace, "Ben", made_, 60)["state"] for made_ in made} == {"succeeded"}
    assert len(one.ran) + len(other.ran) == 22
    assert one.ran
    assert other.ran
    assert not set(one.ran) & set(other.ran)


def test_without_an_engine_statements_say_what_to_do(millrace: Company, address: str) -> None:
    with working(millrace, address, StandIn(is_down=True)):
        error = done(millrace, "Ben", submit(millrace, "Ben", "rows 1"))["error"]
        assert (error["code"], "headgate doctor" in error["message"]) == ("ENGINE_DOWN", True)
        assert "no Java here" not in error["message"]


def test_an_engine_that_dies_under_a_statement_is_tried_once_more(millrace: Company, address: str) -> None:
    spark = StandIn()
    spark.isolated = StandIn()
    with working(millrace, address, spark):
        error = done(millrace, "Ben", submit(millrace, "Ben", "die"))["error"]
        assert error["code"] == "ENGINE_DOWN"
        assert spark.ran == spark.isolated.ran == ["die"], "the second time on a server of its own"
        assert done(millrace, "Ben", submit(millrace, "Ben", "rows 1"))["state"] == "succeeded"


def test_a_worker_that_stops_gives_back_what_it_runs(millrace: Company, address: str) -> None:
    first = StandIn()
    began = time.monotonic()
    with working(millrace, address, first):
        statement = submit(millrace, "Ben", "sleep 60")
        eventually(lambda: first.ran)
    assert time.monotonic() - began < 50
    assert running_state(millrace, statement) == "queued"
    assert first.closed == 1
    with working(millrace, address, StandIn(is_quick=True)):
        assert done(millrace, "Ben", statement)["state"] == "succeeded"


def test_what_does_not_stop_is_given_up(millrace: Company, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Attempt, "grace", 1.0)
    spark = StandIn()
    with working(millrace, address, spark, slots=1):
        statement = submit(millrace, "Ben", "hang 1")
        eventually(lambda: spark.ran)
        millrace.as_("Ben").post(f"{STATEMENTS}/{statement}/cancel", None)
        assert done(millrace, "Ben", statement)["state"] == "cancelled"
        assert done(millrace, "Ben", submit(millrace, "Ben", "rows 1"))["state"] == "succeeded"
        spark.over.set()


def test_a_server_that_was_away_gets_the_result_when_it_is_back(millrace: Company) -> None:
    spark = StandIn()
    doorway = Doorway()
    with working(millrace, f"http://127.0.0.1:{doorway.port}", spark):
        with served(millrace) as address, doorway.leads_to(port_of(address)):
            statement = submit(millrace, "Ben", "hang 1")
            eventually(lambda: spark.ran)
        spark.over.set()
        time.sleep(1)
        assert running_state(millrace, statement) == "running"
        with served(millrace) as address, doorway.leads_to(port_of(address)):
            assert done(millrace, "Ben", statement)["state"] == "succeeded"
    assert spark.ran == ["hang 1"]
    doorway.close()
