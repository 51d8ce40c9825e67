"""Clocks that are set: a worker that lives answers its check, and one that died does not hold it for hours."""

from datetime import timedelta

import pytest

from headgate.kit import clock
from headgate.platform.connection_checks import job as checks
from headgate.platform.jobs.cleanup import LeaseSweeper
from tests.platform.connection_checks.test_checks import asked, claimed, finish, finished, state_of
from tests.spaces.connections.support import added
from tests.support.company import Company

pytestmark = pytest.mark.both_databases

FORWARD, BACK = timedelta(minutes=30), timedelta(hours=-3)
"""Forward by less than a check is kept."""
LEASE = checks.LEASE.total_seconds()
ANSWER = {"detail": "fine", "milliseconds": 1}


@pytest.mark.parametrize("jump", [FORWARD, BACK], ids=["forward", "back"])
def test_a_check_is_taken_from_the_dead_alone(
    millrace: Company, monkeypatch: pytest.MonkeyPatch, jump: timedelta
) -> None:
    real, set_by, ticks = clock.now, timedelta(), 100.0
    monkeypatch.setattr("headgate.platform.unit_of_work.stages.clock", lambda: real() + set_by)
    found = LeaseSweeper(checks.CONNECTION_CHECKS, millrace.settings, millrace.database, lambda: ticks)

    def passes(seconds: float) -> None:
        nonlocal set_by, ticks
        set_by += timedelta(seconds=seconds)
        ticks += seconds
        found.sweep(real() + set_by)

    place = added(millrace)["id"]
    lives, dies = asked(millrace, "Tess", place), asked(millrace, "Tess", place)
    jobs = {job["id"]: job for job in claimed(millrace)}
    passes(1)
    set_by += jump
    found.sweep(real() + set_by)
    passes(checks.SECONDS)
    assert claimed(millrace) == []
    assert finished(millrace, jobs[lives], result=ANSWER) == "succeeded"
    passes(LEASE - checks.SECONDS)
    (again,) = claimed(millrace)
    assert (again["id"], again["fence"]) == (dies, 2)
    assert finish(millrace, jobs[dies], result=ANSWER).status_code == 409
    assert finished(millrace, again, result=ANSWER) == "succeeded"
    assert state_of(millrace, "Tess", dies)["state"] == "succeeded"
