"""What a step tells while it runs is there for whoever begins it again; and what a delivery waits for."""

from typing import Any

from sqlalchemy import update

from headgate.platform.external_systems.models import place_secret_table
from tests.pipelines.runs.support import RunHand, lose, make, show, start
from tests.spaces.connections.support import PLACE, SECRET
from tests.support.company import Company


def remember(hand: RunHand, job: dict[str, Any], **memory: Any) -> int:
    return int(hand.step(job, 0, "running", memory=memory).status_code)


def destination(millrace: Company, member: str = "Tess", **place: Any) -> str:
    body = {"name": "Finance", "place": {**PLACE, **place}, "secrets": {"password": SECRET}}
    answer = millrace.as_(member).post("/api/destinations", body)
    assert answer.status_code == 200, answer.text
    return str(answer.json()["id"])


def delivery(millrace: Company, to: str, name: str = "Out") -> str:
    tables = [{"table": "raw.orders", "target": "public.orders"}]
    body = {"name": name, "definition": {"kind": "delivery", "destination": to, "tables": tables}}
    answer = millrace.as_("Tess").post("/api/pipelines", body)
    assert answer.status_code == 200, answer.text
    return str(answer.json()["id"])


def test_it_survives_the_worker_and_the_end_of_the_run(millrace: Company) -> None:
    run = start(millrace, make(millrace))
    first, second = RunHand(millrace), RunHand(millrace)
    (job,) = first.claim()
    assert job["memories"] == {}
    assert remember(first, job, batch=1) == 409, "no step runs yet"
    first.step(job, 0, "running")
    assert remember(first, job, batch=1) == 200
    assert remember(first, job, batch=2) == 200
    lose(millrace)
    (again,) = second.claim()
    assert again["memories"] == {"0": {"batch": 2}}
    assert remember(first, job, batch=9) == 409, "it is no longer its own"
    second.step(again, 0, "running")
    second.step(again, 0, "failed")
    second.finish(again, "failed", error_code="X", error="why")
    assert millrace.as_("Tess").post(f"/api/runs/{run}/resume", None).status_code == 200
    (resumed,) = second.claim()
    assert resumed["memories"] == {"0": {"batch": 2}}


def test_who_asks_to_remember_is_told_of_a_cancel(millrace: Company) -> None:
    run = start(millrace, make(millrace))
    hand = RunHand(millrace)
    (job,) = hand.claim()
    hand.step(job, 0, "running")
    millrace.as_("Tess").post(f"/api/runs/{run}/cancel", None)
    assert remember(hand, job, batch=1) == 409


def test_runs_of_one_delivery_do_not_overtake_each_other(millrace: Company) -> None:
    to = destination(millrace)
    one, other = delivery(millrace, to), delivery(millrace, to, "Other")
    first, second, third = start(millrace, one), start(millrace, one), start(millrace, other)
    hand = RunHand(millrace)
    jobs = {job["id"]: job for job in hand.claim()}
    assert set(jobs) == {first, third}
    assert [found["pipeline"] for found in jobs.values()] == [one, other]
    hand.do(jobs[first])
    hand.finish(jobs[first])
    assert [job["id"] for job in hand.claim()] == [second]


def test_a_run_that_waited_is_not_sent_to_where_its_destination_points_since(millrace: Company) -> None:
    to = destination(millrace)
    pipeline = delivery(millrace, to)
    run, tess = start(millrace, pipeline), millrace.as_("Tess")
    moved = tess.request("PATCH", f"/api/destinations/{to}", json={"place": {**PLACE, "host": "evil.example.com"}})
    assert moved.status_code == 200
    assert RunHand(millrace).claim() == []
    found = show(millrace, run)
    assert (found["state"], "confirm" in found["error"]) == ("blocked", True)
    assert tess.post(f"/api/pipelines/{pipeline}/runs", {}).status_code == 409
    assert tess.post(f"/api/pipelines/{pipeline}/confirm", {"versions": {to: 2}}).status_code == 200
    again = start(millrace, pipeline)
    (job,) = RunHand(millrace).claim()
    assert job["id"] == again
    assert (job["endpoints"][0]["config"]["host"], job["endpoints"][0]["secrets"]) == ("evil.example.com", {})


def test_a_secret_that_cannot_be_opened_ends_its_run_and_no_other(millrace: Company) -> None:
    broken, fine = start(millrace, delivery(millrace, destination(millrace))), start(millrace, make(millrace))
    lost = update(place_secret_table).values(value="not sealed by us")
    millrace.database.write(lambda connection: connection.execute(lost))
    assert [job["id"] for job in RunHand(millrace).claim()] == [fine]
    found = show(millrace, broken)
    assert (found["state"], found["error_code"]) == ("failed", "CONNECTION")
    assert "set them again" in found["error"]
