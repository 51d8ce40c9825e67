"""A statement that ran when Spark died is begun again once, alone; how that is kept, without a Spark."""

from typing import Any

import pyarrow as pa
import pytest

from headgate.lakehouse.sql import fair_share
from headgate.platform.jobs.kinds import WorkerSlots
from tests.lakehouse.sql.support import STATEMENTS, Hand, submit
from tests.support.company import Company

pytestmark = pytest.mark.both_databases

PAGE = pa.table({"n": [1]})
DEAD = {"error_code": "ENGINE_DOWN", "error": "Spark ended"}


def lose(hand: Hand, *jobs: dict[str, Any]) -> list[str]:
    """Spark died under these; their states then."""
    return [hand.finish(job, "lost", **DEAD).json()["state"] for job in jobs]


def waits(millrace: Company, hand: Hand) -> bool:
    """Whether the worker would be woken to claim."""
    with millrace.database.read() as connection:
        return fair_share.is_waiting(connection, WorkerSlots(hand.id, 1, 4))


def test_all_that_ran_at_a_death_runs_again_alone(millrace: Company) -> None:
    mine = [submit(millrace, name) for name in ("Ben", "Tess", "Bea")]
    hand = Hand(millrace)
    jobs = hand.claim(4, total=4)
    assert [job["isolated"] for job in jobs] == [False, False, False]
    assert lose(hand, *jobs) == ["queued"] * 3
    for statement in mine:
        (again,) = hand.claim(4, total=4)
        assert (again["id"], again["isolated"], again["fence"]) == (statement, True, 2)
        # Those beside it wait, and the worker is not asked to claim what it would not get.
        assert hand.claim(3, total=4) == []
        assert not waits(millrace, hand)
        assert hand.finish(again, "succeeded", PAGE).json()["state"] == "succeeded"
    assert not waits(millrace, hand)


def test_another_worker_takes_the_next_and_new_ones_go_on(millrace: Company) -> None:
    mine = [submit(millrace, name) for name in ("Ben", "Tess")]
    hand, other = Hand(millrace), Hand(millrace)
    lose(hand, *hand.claim(4, total=4))
    assert [job["id"] for job in hand.claim(4, total=4)] == mine[:1]
    new = submit(millrace, "Bea")
    assert waits(millrace, hand)
    assert [(job["id"], job["isolated"]) for job in hand.claim(3, total=4)] == [(new, False)]
    assert [job["id"] for job in other.claim(4, total=4)] == mine[1:]


def test_a_second_death_is_its_own(millrace: Company) -> None:
    statement, hand = submit(millrace, "Ben"), Hand(millrace)
    lose(hand, *hand.claim())
    (job,) = hand.claim()
    full = {"error_code": "OUT_OF_MEMORY", "error": "This statement needs more memory than Spark has here"}
    assert hand.finish(job, "lost", **full).json()["state"] == "failed"
    error = millrace.as_("Ben").get(f"{STATEMENTS}/{statement}").json()["error"]
    assert (error["code"], error["message"]) == tuple(full.values())
    assert hand.claim() == []


def test_a_worker_that_dies_or_stops_meanwhile_forgets_nothing(millrace: Company) -> None:
    """Whether it runs alone is in the row: the worker that ran it before knows nothing any more."""
    statement = submit(millrace, "Ben")
    killed, stopped, last = Hand(millrace), Hand(millrace), Hand(millrace)
    killed.claim()
    killed.sweep()
    (job,) = stopped.claim()
    assert job["isolated"]
    stopped.finish(job, "returned")
    (again,) = last.claim()
    assert (again["id"], again["isolated"]) == (statement, True)
    last.sweep()
    assert millrace.as_("Ben").get(f"{STATEMENTS}/{statement}").json()["error"]["code"] == "WORKER_LOST"


def test_what_only_stopped_workers_gave_back_is_not_alone(millrace: Company) -> None:
    submit(millrace, "Ben")
    hand = Hand(millrace)
    for _ in range(3):
        (job,) = hand.claim()
        assert not job["isolated"]
        hand.finish(job, "returned")
