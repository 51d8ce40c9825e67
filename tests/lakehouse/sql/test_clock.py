"""Clocks that are set, by hours: no statement is lost or run twice, and none waits for hours, whichever way."""

from datetime import timedelta

import pyarrow as pa
import pytest
from sqlalchemy import func, select

from headgate.kit import clock
from headgate.lakehouse.catalog.models import work_token_table
from headgate.lakehouse.sql import job as statements
from headgate.platform.jobs.cleanup import LeaseSweeper
from tests.lakehouse.sql.support import Hand, submit
from tests.support.company import Company

pytestmark = pytest.mark.both_databases

HOURS = timedelta(hours=3)
WAYS = pytest.mark.parametrize("jump", [HOURS, -HOURS], ids=["forward", "back"])
LEASE = statements.LEASE.total_seconds()


class Times:
    """A machine's clock, which can be set, and its ticks, which nobody sets."""

    def __init__(self, company: Company, monkeypatch: pytest.MonkeyPatch) -> None:
        self.off, self.ticks = timedelta(), 100.0
        real = clock.now
        self.now = lambda: real() + self.off
        monkeypatch.setattr("headgate.platform.unit_of_work.stages.clock", self.now)
        self.sweeper = LeaseSweeper(statements.STATEMENTS, company.settings, company.database, lambda: self.ticks)
        self.sweeper.sweep(self.now())

    def passes(self, seconds: float) -> None:
        """Time passes, by both."""
        self.off += timedelta(seconds=seconds)
        self.ticks += seconds
        self.sweeper.sweep(self.now())

    def jumps(self, by: timedelta) -> None:
        """The clock is set; nobody has waited."""
        self.off += by
        self.sweeper.sweep(self.now())


@pytest.fixture
def times(millrace: Company, monkeypatch: pytest.MonkeyPatch) -> Times:
    return Times(millrace, monkeypatch)


@WAYS
def test_a_worker_that_lives_keeps_its_statement(millrace: Company, times: Times, jump: timedelta) -> None:
    submit(millrace, "Tess")
    hand = Hand(millrace)
    (job,) = hand.claim()
    times.jumps(jump)
    for _ in range(4):
        assert hand.beat(job) == {"cancel": [], "lost": []}
        times.passes(LEASE * 0.75)
    headers = {"Authorization": f"Bearer {job['token']}"}
    assert millrace.client.get("/iceberg/v1/namespaces", headers=headers).status_code == 200
    assert hand.finish(job, "succeeded", pa.table({"n": [1]})).json() == {"state": "succeeded"}


@WAYS
def test_a_worker_that_died_loses_its_statement_soon(millrace: Company, times: Times, jump: timedelta) -> None:
    statement = submit(millrace, "Tess")
    dead, other = Hand(millrace), Hand(millrace)
    (job,) = dead.claim()
    times.jumps(jump)
    times.passes(LEASE / 2)
    assert other.claim() == [], "it may live, and only not have renewed its lease yet"
    times.passes(LEASE * 0.75)
    (again,) = other.claim()
    assert (again["id"], again["fence"]) == (statement, 2)
    assert dead.finish(job).status_code == 409


def test_a_token_does_not_outlive_its_statement_by_being_kept_alive(millrace: Company, times: Times) -> None:
    submit(millrace, "Tess")
    hand = Hand(millrace)
    (job,) = hand.claim()
    before = _expires(millrace)
    times.passes(5)
    hand.beat(job)
    assert _expires(millrace) == before, "only a clock that was set moves it"
    assert hand.finish(job, "failed", error_code="X", error="why").json() == {"state": "failed"}
    headers = {"Authorization": f"Bearer {job['token']}"}
    assert millrace.client.get("/iceberg/v1/namespaces", headers=headers).status_code == 401


def _expires(millrace: Company) -> object:
    with millrace.database.read() as connection:
        return connection.execute(select(func.max(work_token_table.c.expires_at))).scalar_one()
