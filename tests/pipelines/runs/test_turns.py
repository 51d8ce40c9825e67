"""Whose turn it is: how many runs of a pipeline may wait, and which of them begins."""

from datetime import timedelta
from typing import Any

import pytest

from headgate.kit.clock import now
from headgate.pipelines.runs import start as starting
from headgate.pipelines.runs.models import run_table
from headgate.pipelines.runs.waiting import waiting
from tests.pipelines.runs.support import HISTORY, RunHand, lose, make, show, start
from tests.pipelines.runs.test_memory import destination
from tests.support.company import Company

pytestmark = pytest.mark.both_databases

LATER = {"times": 3, "delay": "1 hour"}


def save(millrace: Company, pipeline: str, definition: dict[str, Any]) -> None:
    answer = millrace.as_("Tess").request("PATCH", f"/api/pipelines/{pipeline}", json={"definition": definition})
    assert answer.status_code == 200, answer.text


def deliver(millrace: Company, name: str, **sending: Any) -> str:
    """A delivery that is tried again after an hour."""
    tables = [{"table": "raw.orders", "target": "public.orders", **sending}]
    definition = {"kind": "delivery", "destination": destination(millrace), "tables": tables, "retries": LATER}
    answer = millrace.as_("Tess").post("/api/pipelines", {"name": name, "definition": definition})
    assert answer.status_code == 200, answer.text
    return str(answer.json()["id"])


def fail(hand: RunHand, job: dict[str, Any]) -> str:
    return str(hand.finish(job, "failed", error_code="X", error="why").json()["state"])


def come(millrace: Company) -> None:
    """As if the time had come for whatever waits for its next try."""
    change = run_table.update().values(not_before=now() - timedelta(seconds=1))
    millrace.database.write(lambda connection: connection.execute(change.where(run_table.c.state == "queued")))


# How many


@pytest.fixture
def two(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starting, "MOST_WAITING", 2)


@pytest.mark.usefixtures("two")
def test_more_than_some_runs_of_a_pipeline_do_not_wait(millrace: Company) -> None:
    pipeline, other = make(millrace), make(millrace, name="Others", output="trusted.others")
    first, second = start(millrace, pipeline), start(millrace, pipeline)
    answer = millrace.as_("Tess").post(f"/api/pipelines/{pipeline}/runs", {})
    assert answer.status_code == 409
    assert "already queued" in answer.json()["detail"]
    assert "cancel some" in answer.json()["detail"]
    assert len(millrace.as_("Tess").get(f"/api/pipelines/{pipeline}/runs").json()["items"]) == 2
    start(millrace, other)
    assert millrace.as_("Tess").post(f"/api/runs/{second}/cancel", None).status_code == 200
    third = start(millrace, pipeline)
    assert {job["id"] for job in RunHand(millrace).claim(1)} == {first}
    start(millrace, pipeline)
    # One that is begun again was let in before.
    lose(millrace)
    assert [show(millrace, run)["state"] for run in (first, third)] == ["queued", "queued"]


@pytest.mark.usefixtures("two")
def test_a_run_is_not_resumed_into_a_full_queue(millrace: Company) -> None:
    pipeline = make(millrace)
    run = start(millrace, pipeline)
    hand = RunHand(millrace)
    (job,) = hand.claim()
    assert fail(hand, job) == "failed"
    for _ in range(2):
        start(millrace, pipeline)
    answer = millrace.as_("Tess").post(f"/api/runs/{run}/resume", None)
    assert (answer.status_code, "already queued" in answer.json()["detail"]) == (409, True)
    assert show(millrace, run)["state"] == "failed"


# Which of them


@pytest.mark.parametrize("write", ["append", "overwrite"])
def test_a_delivery_that_waits_for_its_next_try_is_not_overtaken(millrace: Company, write: str) -> None:
    pipeline = deliver(millrace, "Out", write=write)
    older, newer = start(millrace, pipeline), start(millrace, pipeline)
    elsewhere = start(millrace, make(millrace))
    hand = RunHand(millrace)
    jobs = {job["id"]: job for job in hand.claim()}
    assert set(jobs) == {older, elsewhere}
    assert fail(hand, jobs[older]) == "queued"
    assert hand.claim() == [], "the newer one would bring its state first, and the older one would replace it"
    come(millrace)
    (again,) = hand.claim()
    assert again["id"] == older
    hand.do(again)
    assert hand.finish(again).json()["state"] == "succeeded"
    assert [job["id"] for job in hand.claim()] == [newer]


def test_a_newer_run_begins_when_the_older_one_has_failed_or_was_cancelled(millrace: Company) -> None:
    pipeline = make(millrace, retries={"times": 1, "delay": "1 hour"})
    runs = [start(millrace, pipeline) for _ in range(3)]
    hand = RunHand(millrace)
    (job,) = hand.claim()
    assert fail(hand, job) == "queued"
    come(millrace)
    (job,) = hand.claim()
    assert fail(hand, job) == "failed"
    (job,) = hand.claim()
    assert (job["id"], fail(hand, job)) == (runs[1], "queued")
    assert hand.claim() == []
    assert millrace.as_("Tess").post(f"/api/runs/{runs[1]}/cancel", None).status_code == 200
    assert [job["id"] for job in hand.claim()] == [runs[2]]


def test_a_run_that_was_begun_keeps_its_place_whatever_its_id(millrace: Company) -> None:
    """Ids are made of the time: after the clock was set back, a newer run has a lower one."""
    pipeline = make(millrace, retries=LATER)
    first, second = start(millrace, pipeline), start(millrace, pipeline)
    high, low = max(first, second), min(first, second)
    hand = RunHand(millrace)
    park = run_table.update().where(run_table.c.id == low)
    millrace.database.write(lambda connection: connection.execute(park.values(state="skipped")))
    (job,) = hand.claim()
    assert (job["id"], fail(hand, job)) == (high, "queued")
    millrace.database.write(lambda connection: connection.execute(park.values(state="queued")))
    assert hand.claim() == []
    come(millrace)
    assert [job["id"] for job in hand.claim()] == [high]


def test_runs_of_other_pipelines_with_the_same_output_do_not_wait_for_a_try(millrace: Company) -> None:
    start(millrace, make(millrace, retries=LATER))
    hand = RunHand(millrace)
    (job,) = hand.claim()
    assert fail(hand, job) == "queued"
    other = start(millrace, make(millrace, name="Others"))
    assert [job["id"] for job in hand.claim()] == [other]


def test_one_whose_pipeline_was_saved_since_holds_up_nobody(millrace: Company) -> None:
    pipeline = make(millrace, retries=LATER)
    run = start(millrace, pipeline)
    hand = RunHand(millrace)
    (job,) = hand.claim()
    assert fail(hand, job) == "queued"
    save(millrace, pipeline, {**HISTORY, "time_zone": "Europe/Berlin"})
    fixed = start(millrace, pipeline)
    claimed = [job["id"] for _ in range(2) for job in hand.claim()]
    assert claimed == [fixed]
    found = show(millrace, run)
    assert (found["state"], "saved since" in found["error"]) == ("blocked", True)


def test_looking_costs_little_while_a_newer_run_waits_behind(millrace: Company) -> None:
    pipeline = make(millrace, retries=LATER)
    start(millrace, pipeline)
    hand = RunHand(millrace)
    (job,) = hand.claim()
    assert fail(hand, job) == "queued"
    start(millrace, pipeline)
    with millrace.database.read() as connection:
        assert not waiting(connection, now())
        assert waiting(connection, now() + timedelta(hours=2))


# Resumed


@pytest.mark.parametrize(("write", "status"), [("append", 200), ("overwrite", 409), ("upsert", 409)])
def test_a_delivery_is_not_resumed_over_a_newer_one(millrace: Company, write: str, status: int) -> None:
    keys = {"keys": ["id"]} if write == "upsert" else {}
    pipeline = deliver(millrace, "Out", write=write, **keys)
    tess, hand = millrace.as_("Tess"), RunHand(millrace)
    old = start(millrace, pipeline)
    (job,) = hand.claim()
    assert hand.finish(job, "failed", error_code="DEFINITION", error="why").json()["state"] == "failed"
    assert tess.post(f"/api/runs/{old}/resume", None).status_code == 200, "nothing newer was sent"
    (job,) = hand.claim()
    assert hand.finish(job, "failed", error_code="DEFINITION", error="why").json()["state"] == "failed"
    start(millrace, pipeline)
    (job,) = hand.claim()
    hand.do(job)
    assert hand.finish(job).json()["state"] == "succeeded"
    answer = tess.post(f"/api/runs/{old}/resume", None)
    assert answer.status_code == status
    if status == 409:
        assert "start a new run" in answer.json()["detail"]
