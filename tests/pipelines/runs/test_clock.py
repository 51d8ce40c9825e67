"""Clocks that are set, by hours: no run is lost or done twice, whichever way."""

from datetime import datetime, timedelta

import pytest
from sqlalchemy import update

from headgate.kit import clock
from headgate.kit.crash_points import VARIABLE, crash_point
from headgate.pipelines.runs.job import RUNS
from headgate.pipelines.runs.models import run_table
from headgate.platform.jobs.cleanup import LeaseSweeper
from tests.pipelines.runs.support import RunHand, make, show, start
from tests.support.company import Company

pytestmark = pytest.mark.both_databases

HOURS = timedelta(hours=3)
WAYS = pytest.mark.parametrize("jump", [HOURS, -HOURS], ids=["forward", "back"])


class Times:
    """A machine's clock, which can be set, and its ticks, which nobody sets."""

    def __init__(self, company: Company, monkeypatch: pytest.MonkeyPatch) -> None:
        self.company, self.off, self.ticks = company, timedelta(), 100.0
        real = clock.now
        self.now = lambda: real() + self.off
        for place in ("headgate.platform.unit_of_work.stages.clock", "headgate.platform.jobs.worker_endpoints.now"):
            monkeypatch.setattr(place, self.now)
        self.sweeper = LeaseSweeper(RUNS, company.settings, company.database, lambda: self.ticks)
        self.look()

    def look(self) -> None:
        """The scheduler looks once."""
        self.sweeper.sweep(self.now())

    def passes(self, seconds: float) -> None:
        """Time passes, by both."""
        self.off += timedelta(seconds=seconds)
        self.ticks += seconds
        self.look()

    def jumps(self, by: timedelta) -> None:
        """The clock is set; nobody has waited."""
        self.off += by
        self.look()


@pytest.fixture
def times(millrace: Company, monkeypatch: pytest.MonkeyPatch) -> Times:
    return Times(millrace, monkeypatch)


@WAYS
def test_a_worker_that_lives_keeps_its_run(millrace: Company, times: Times, jump: timedelta) -> None:
    run = start(millrace, make(millrace, timeout="1 hour"))
    hand = RunHand(millrace)
    (job,) = hand.claim()
    times.passes(5)
    times.jumps(jump)
    assert hand.beat(job) == {"cancel": [], "lost": []}
    times.passes(20)
    assert hand.beat(job) == {"cancel": [], "lost": []}
    times.passes(20)
    # Its token too: what ends it is its worker's time limit, by ticks.
    headers = {"Authorization": f"Bearer {job['token']}"}
    assert millrace.client.get("/iceberg/v1/namespaces", headers=headers).status_code == 200
    hand.do(job)
    assert hand.finish(job).json()["state"] == "succeeded"
    assert show(millrace, run)["state"] == "succeeded"
    assert millrace.rows(f"SELECT fence, losses FROM runs WHERE id = '{run}'") == [(1, 0)]


@WAYS
def test_a_worker_that_died_loses_its_run_soon(millrace: Company, times: Times, jump: timedelta) -> None:
    run = start(millrace, make(millrace))
    dead, other = RunHand(millrace), RunHand(millrace)
    (job,) = dead.claim()
    times.jumps(jump)
    times.passes(10)
    assert other.claim() == [], "it may live, and only not have renewed its lease yet"
    times.passes(35)
    (again,) = other.claim()
    assert (again["id"], again["fence"]) == (run, 2)
    assert dead.finish(job).status_code == 409
    other.do(again)
    assert other.finish(again).json()["state"] == "succeeded"


@WAYS
def test_another_try_waits_no_longer_than_its_delay(millrace: Company, times: Times, jump: timedelta) -> None:
    start(millrace, make(millrace, retries={"times": 1, "delay": "1 minute"}))
    hand = RunHand(millrace)
    (job,) = hand.claim()
    assert hand.finish(job, "failed", error_code="X", error="why").json()["state"] == "queued"
    times.jumps(jump)
    assert bool(hand.claim()) == (jump > timedelta())
    if jump < timedelta():
        times.passes(61)
        assert len(hand.claim()) == 1


def test_one_whose_definition_cannot_be_read_does_not_stop_the_scheduler(millrace: Company, times: Times) -> None:
    run = start(millrace, make(millrace, retries={"times": 1, "delay": "1 hour"}))
    hand = RunHand(millrace)
    (job,) = hand.claim()
    hand.finish(job, "failed", error_code="X", error="why")
    later = update(run_table).where(run_table.c.id == run).values(definition={"kind": "of a later version"})
    millrace.database.write(lambda connection: connection.execute(later))
    times.jumps(-HOURS)
    assert hand.claim() == []
    assert show(millrace, run)["state"] in {"failed", "blocked"}


def test_a_machine_that_slept_takes_nothing_from_those_that_wake_with_it(millrace: Company, times: Times) -> None:
    """Ticks stand still while a machine sleeps; its clock does not."""
    run = start(millrace, make(millrace))
    hand = RunHand(millrace)
    (job,) = hand.claim()
    times.jumps(timedelta(minutes=10))
    assert hand.beat(job) == {"cancel": [], "lost": []}
    assert show(millrace, run)["state"] == "running"


def test_a_point_that_no_one_named_ends_nothing(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    crash_point("here")
    for other in ("", "there", f"@{tmp_path}/no-such-file"):
        monkeypatch.setenv(VARIABLE, other)
        crash_point("here")


def test_the_end_of_a_run_can_be_told_twice(millrace: Company) -> None:
    """Its worker may not have heard the first answer: the server died before it gave it."""
    run = start(millrace, make(millrace))
    hand = RunHand(millrace)
    (job,) = hand.claim()
    hand.do(job)
    for _ in range(2):
        assert hand.finish(job).json() == {"state": "succeeded"}
    assert hand.finish({**job, "fence": 2}).status_code == 409
    assert RunHand(millrace).finish(job).status_code == 409
    ended = datetime.fromisoformat(show(millrace, run)["ended_at"])
    assert hand.finish(job, "failed").json()["state"] == "succeeded"
    assert datetime.fromisoformat(show(millrace, run)["ended_at"]) == ended
