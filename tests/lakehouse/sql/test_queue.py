"""Between members and workers: claims, leases, fences, cancellation, and who may call."""

import time
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest

from headgate.kit.clock import now
from headgate.lakehouse.catalog.work_tokens import identify_work
from headgate.lakehouse.sql.job import LEASE
from headgate.organization.tokens.service import revoke
from tests.lakehouse.sql.support import STATEMENTS, Hand, page_of, submit
from tests.support.company import Api, Company

pytestmark = pytest.mark.both_databases

PAGE = pa.table({"n": [1]})


def state(millrace: Company, statement: str, member: str = "Ben") -> Any:
    found = millrace.as_(member).get(f"{STATEMENTS}/{statement}").json()
    return found["state"], found["error"] and found["error"]["code"]


def lives(millrace: Company, secret: str) -> bool:
    with millrace.database.read() as connection:
        return identify_work(connection, secret, now()) is not None


def test_statements_are_claimed_once_the_oldest_first(millrace: Company) -> None:
    made = [submit(millrace, who) for who in ("Ben", "Tess", "Ana")]
    one, other = Hand(millrace), Hand(millrace)
    assert [job["id"] for job in one.claim(2)] == made[:2]
    assert [job["id"] for job in other.claim(2)] == made[2:]
    assert one.claim() == other.claim() == []


def who(millrace: Company, jobs: list[dict[str, Any]]) -> list[str]:
    """Whose statements these are."""
    owners = dict(millrace.rows("SELECT s.id, m.name FROM statements s JOIN members m ON m.id = s.member_id"))
    return [owners[job["id"]] for job in jobs]


def test_one_member_never_fills_a_worker(millrace: Company) -> None:
    mine = [submit(millrace, "Ben") for _ in range(4)]
    hand = Hand(millrace)
    jobs = hand.claim(4, total=4)
    assert [job["id"] for job in jobs] == mine[:3]
    assert hand.claim(1, total=4) == []
    other = submit(millrace, "Tess")
    assert [job["id"] for job in hand.claim(1, total=4)] == [other]
    hand.finish(jobs[0], "succeeded", PAGE)
    assert hand.claim(1, total=4) == [], "the last free slot, and Ben runs two"
    hand.finish(jobs[1], "succeeded", PAGE)
    assert [job["id"] for job in hand.claim(1, total=4)] == mine[3:], "asked with one free, but two are by now"


def test_the_last_slot_is_for_a_member_who_runs_nothing_on_the_worker(millrace: Company) -> None:
    first = [submit(millrace, name) for name in ("Ben", "Tess")]
    hand = Hand(millrace)
    assert [job["id"] for job in hand.claim(3, total=3)] == first
    more = [submit(millrace, name) for name in ("Ben", "Tess")]
    assert hand.claim(1, total=3) == []
    third = submit(millrace, "Ana")
    assert [job["id"] for job in hand.claim(1, total=3)] == [third]
    assert [job["id"] for job in Hand(millrace).claim(2, total=2)] == more, "another worker has room for each of them"


def test_who_runs_fewest_is_next_and_then_who_waits_longest(millrace: Company) -> None:
    busy, hand = Hand(millrace), Hand(millrace)
    submit(millrace, "Ben")
    submit(millrace, "Ben")
    assert who(millrace, busy.claim(2, total=8)) == ["Ben", "Ben"]
    for name in ("Ben", "Tess", "Tess", "Ana"):
        submit(millrace, name)
    assert who(millrace, hand.claim(8, total=8)) == ["Tess", "Ana", "Tess", "Ben"]


def test_a_worker_of_one_slot_gives_it_to_whoever_waits(millrace: Company) -> None:
    mine, hand = [submit(millrace, "Ben") for _ in range(2)], Hand(millrace)
    (job,) = hand.claim(1, total=1)
    hand.finish(job, "succeeded", PAGE)
    assert [one["id"] for one in hand.claim(1, total=1)] == mine[1:]


def test_a_worker_waits_while_there_is_nothing_that_it_would_get(millrace: Company) -> None:
    for _ in range(2):
        submit(millrace, "Ben")
    hand = Hand(millrace)
    assert len(hand.claim(2, total=2)) == 1
    begun = time.monotonic()
    assert hand.claim(1, total=2, wait=0.6) == []
    assert time.monotonic() - begun >= 0.5, "it would ask again and again"
    submit(millrace, "Tess")
    begun = time.monotonic()
    assert who(millrace, hand.claim(1, total=2, wait=20)) == ["Tess"]
    assert time.monotonic() - begun < 18


def test_the_token_for_the_work_lives_from_claim_to_end_and_is_stored_nowhere(millrace: Company) -> None:
    submit(millrace, "Ben")
    hand = Hand(millrace)
    (job,) = hand.claim()
    assert job["token"].startswith("hgw_")
    assert lives(millrace, job["token"])
    with millrace.database.read() as connection:
        identity = identify_work(connection, job["token"], now())
    assert identity is not None
    assert identity.member == millrace.id("member", "Ben")
    assert job["token"] not in str(
        millrace.rows("SELECT * FROM work_tokens") + millrace.rows("SELECT * FROM statements")
    )
    hand.finish(job, "succeeded", PAGE)
    assert not lives(millrace, job["token"])


def test_cancel_ends_the_token_first_and_then_tells_the_worker(millrace: Company) -> None:
    statement, hand = submit(millrace, "Ben"), Hand(millrace)
    (job,) = hand.claim()
    assert hand.beat(job) == {"cancel": [], "lost": []}
    assert millrace.as_("Ben").post(f"{STATEMENTS}/{statement}/cancel", None).json()["state"] == "cancelling"
    assert not lives(millrace, job["token"])
    assert hand.beat(job) == {"cancel": [statement], "lost": []}
    assert hand.finish(job, "failed", error_code="OPERATION_CANCELED", error="stopped").json()["state"] == "cancelled"
    assert state(millrace, statement) == ("cancelled", None)


def test_rows_that_come_after_a_cancel_are_dropped_but_a_commit_before_it_is_told(millrace: Company) -> None:
    for has_committed, expected in ((False, "cancelled"), (True, "succeeded")):
        statement, hand = submit(millrace, "Ben"), Hand(millrace)
        (job,) = hand.claim()
        if has_committed:
            hand.commit(statement, "service.revenue")
        millrace.as_("Ben").post(f"{STATEMENTS}/{statement}/cancel", None)
        assert hand.finish(job, "succeeded", PAGE).json()["state"] == expected


def test_a_worker_that_is_silent_loses_its_statement_and_cannot_finish_it(millrace: Company) -> None:
    statement, dead = submit(millrace, "Ben"), Hand(millrace)
    (before,) = dead.claim()
    dead.sweep(now() + LEASE - timedelta(seconds=5))
    assert state(millrace, statement) == ("running", None)
    dead.sweep()
    assert state(millrace, statement) == ("queued", None)
    assert not lives(millrace, before["token"])
    other = Hand(millrace)
    (again,) = other.claim()
    assert (again["id"], again["fence"]) == (statement, before["fence"] + 1)
    assert dead.beat(before)["lost"] == [statement]
    assert dead.upload(before, 1, page_of(PAGE)).status_code == 409
    assert dead.finish(before, "succeeded", PAGE).status_code == 409
    # Not even the same worker, with the number that it had before.
    assert other.finish({**again, "fence": before["fence"]}, "succeeded", PAGE).status_code == 409
    assert other.finish(again, "succeeded", PAGE).json()["state"] == "succeeded"
    assert other.finish(again, "failed", error="late").json()["state"] == "succeeded", "told again, it changes nothing"


def test_a_statement_is_begun_again_once_and_then_fails_as_a_fault_of_ours(millrace: Company) -> None:
    statement = submit(millrace, "Ben")
    for expected in ("queued", "failed"):
        hand = Hand(millrace)
        hand.claim()
        hand.sweep()
        assert state(millrace, statement)[0] == expected
    assert state(millrace, statement)[1] == "WORKER_LOST"
    assert Hand(millrace).claim() == []


def test_one_that_has_written_is_never_begun_again(millrace: Company) -> None:
    statement, hand = submit(millrace, "Ben"), Hand(millrace)
    hand.claim()
    hand.commit(statement, "service.revenue")
    hand.sweep()
    error = millrace.as_("Ben").get(f"{STATEMENTS}/{statement}").json()["error"]
    assert "look at the table's history" in error["message"]


def test_a_stopped_worker_gives_back_and_a_lost_spark_is_tried_again(millrace: Company) -> None:
    statement, hand = submit(millrace, "Ben"), Hand(millrace)
    for _ in range(3):
        (job,) = hand.claim()
        assert hand.finish(job, "returned").json()["state"] == "queued"
    for expected in ("queued", "failed"):
        (job,) = hand.claim()
        lost = hand.finish(job, "lost", error_code="ENGINE_DOWN", error="Spark ended")
        assert lost.json()["state"] == expected
    assert state(millrace, statement) == ("failed", "ENGINE_DOWN")


def test_a_cancelled_statement_whose_worker_died_is_cancelled(millrace: Company) -> None:
    statement, hand = submit(millrace, "Ben"), Hand(millrace)
    hand.claim()
    millrace.as_("Ben").post(f"{STATEMENTS}/{statement}/cancel", None)
    hand.sweep()
    assert state(millrace, statement) == ("cancelled", None)


def test_what_was_submitted_by_a_token_that_has_ended_does_not_run(millrace: Company) -> None:
    secret = millrace.token("Ben", read_only=True)
    headers = {"Authorization": f"Bearer {secret}"}
    statement = millrace.client.post(STATEMENTS, json={"sql": "SELECT 1"}, headers=headers).json()["id"]
    (row,) = millrace.rows(f"SELECT token_id FROM statements WHERE id = '{statement}'")
    millrace.database.write(lambda connection: revoke(connection, row[0], now(), by=None))
    assert Hand(millrace).claim() == []
    assert state(millrace, statement) == ("failed", "TOKEN_ENDED")


def test_a_token_that_ends_takes_the_running_work_with_it(millrace: Company) -> None:
    secret = millrace.token("Ben", read_only=True)
    millrace.client.post(STATEMENTS, json={"sql": "SELECT 1"}, headers={"Authorization": f"Bearer {secret}"})
    (job,) = Hand(millrace).claim()
    assert lives(millrace, job["token"])
    (row,) = millrace.rows(f"SELECT token_id FROM statements WHERE id = '{job['id']}'")
    millrace.database.write(lambda connection: revoke(connection, row[0], now(), by=None))
    assert not lives(millrace, job["token"])


def test_a_removed_member_has_no_work(millrace: Company) -> None:
    waiting, running = submit(millrace, "Bea"), submit(millrace, "Bea")
    (job,) = Hand(millrace).claim(1)
    millrace.as_("Olga").change(change="remove_member", member="Bea").raise_for_status()
    assert not lives(millrace, job["token"])
    assert Hand(millrace).claim() == []
    states = dict(millrace.rows("SELECT id, state FROM statements"))
    assert states == {waiting: "running", running: "failed"}


def test_progress_is_shown_while_it_runs(millrace: Company) -> None:
    statement, hand = submit(millrace, "Ben"), Hand(millrace)
    (job,) = hand.claim()
    stage = {"id": 1, "tasks": 4, "done": 3, "bytes_read": 10, "complete": False}
    progress = {"tasks_done": 3, "tasks_total": 4, "bytes_read": 10, "stages": [stage]}
    hand.beat(job, progress=progress)
    assert millrace.as_("Ben").get(f"{STATEMENTS}/{statement}").json()["progress"] == progress
    hand.finish(job, "succeeded", PAGE)
    assert millrace.as_("Ben").get(f"{STATEMENTS}/{statement}").json()["progress"] is None


def test_pages_of_what_failed_are_deleted(millrace_on_sqlite: Company) -> None:
    millrace = millrace_on_sqlite
    statement, hand = submit(millrace, "Ben"), Hand(millrace)
    (job,) = hand.claim()
    for _ in range(2):
        assert hand.upload(job, 1, page_of(PAGE)).status_code == 200
    store = millrace.client.app.state.services.store  # type: ignore[attr-defined]
    assert len(list(store.files(f"results/{statement}"))) == 1
    hand.finish(job, "failed", error_code="X", error="x")
    assert list(store.files(f"results/{statement}")) == []


@pytest.mark.parametrize("path", ["/jobs/statement/claim", "/jobs/heartbeat", f"/jobs/statement/stm_{'0' * 20}/finish"])
def test_only_the_worker_secret_opens_the_workers_routes(millrace_on_sqlite: Company, path: str) -> None:
    millrace = millrace_on_sqlite
    hand = Hand(millrace)
    body = {**hand.about(), "slots": 1, "running": [], "fence": 1, "state": {}}
    if path.endswith("finish"):
        body = {"worker": hand.id, "fence": 1, "state": "lost"}
    right, expected = hand.secret, 409 if path.endswith("finish") else 200
    for secret, status in ((right, expected), (right[:-1], 401), (millrace.token("Olga"), 401), ("", 401), ("é", 401)):
        hand.secret = secret
        found = hand.request("POST", path, json=body, headers={"Authorization": f"Bearer {secret}".encode("latin-1")})
        assert found.status_code == status, secret
    bare = millrace.client.post(f"/api/worker{path}", json=body)
    assert (bare.status_code, "headgate worker token" in bare.json()["detail"]) == (401, True)
    assert millrace.client.get(STATEMENTS, headers={"Authorization": f"Bearer {right}"}).status_code == 401


def test_a_table_that_has_no_data_yet_is_told_from_one_that_is_missing(millrace: Company) -> None:
    """To Spark, neither is there; the catalog knows which it was asked for, and who may see it."""
    for member, says in (("Tess", "Table raw.payments has no data and no columns yet"), ("Ana", "There is no table")):
        statement, hand = submit(millrace, member, "SELECT * FROM raw.Payments"), Hand(millrace)
        (job,) = hand.claim()
        for name in ("pay", "payments"):
            path = f"/iceberg/v1/namespaces/raw/tables/{name}"
            assert Api(millrace.client, job["token"]).get(path).status_code == 404
        told = {"error_code": "TABLE_OR_VIEW_NOT_FOUND", "error": "There is no table raw.Payments that you may see"}
        assert hand.finish(job, "failed", **told).json() == {"state": "failed"}
        error = millrace.as_(member).get(f"{STATEMENTS}/{statement}").json()["error"]
        assert (error["code"], error["message"].startswith(says)) == ("TABLE_OR_VIEW_NOT_FOUND", True), error
