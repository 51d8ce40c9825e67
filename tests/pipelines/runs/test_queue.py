"""Runs between members and workers: who gets them, what survives a worker, what ends them."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sqlalchemy import Connection, update

from headgate.kit.clock import now
from headgate.pipelines.models import pipeline_definition_table
from headgate.pipelines.runs import job as run_jobs
from headgate.pipelines.runs.job import MOVES, RUNS, begin_anew
from headgate.pipelines.runs.models import run_table
from headgate.platform.jobs import queue
from tests.pipelines.runs.support import RunHand, lose, make, show, start
from tests.support.company import Company

pytestmark = pytest.mark.both_databases


def test_a_run_is_claimed_executed_and_published(millrace: Company) -> None:
    run = start(millrace, make(millrace))
    assert show(millrace, run)["state"] == "queued"
    hand = RunHand(millrace)
    (job,) = hand.claim()
    assert (job["id"], job["fence"], job["done"]) == (run, 1, 0)
    assert job["token"].startswith("hgw_")
    assert [one["kind"] for one in job["steps"]] == ["history"]
    assert show(millrace, run)["state"] == "running"
    hand.lines(job, "first", "second")
    hand.do(job, rows_in=5, rows_out=3)
    assert hand.finish(job).json() == {"state": "succeeded"}
    found = show(millrace, run)
    assert (found["state"], found["rows_in"], found["rows_out"], found["lines"]) == ("succeeded", 5, 3, 2)
    assert found["acts_for"] == found["started_by"] == millrace.id("member", "Tess")
    log = millrace.as_("Tess").get(f"/api/runs/{run}/log").json()
    assert [one["text"] for one in log["items"]] == ["first", "second"]
    assert log["ended"]


def test_a_run_whose_worker_was_lost_goes_on_from_its_last_finished_step(millrace: Company) -> None:
    check = {"table": "trusted.versions", "check": "rows", "least": 0}
    run = start(millrace, make(millrace, expectations=[check]))
    first, second = RunHand(millrace), RunHand(millrace)
    (job,) = first.claim()
    assert first.step(job, 0, "running").status_code == 200
    assert first.step(job, 0, "succeeded", rows_out=7).status_code == 200
    assert first.step(job, 1, "running").status_code == 200
    assert second.claim() == []
    lose(millrace)
    (again,) = second.claim()
    assert (again["id"], again["fence"], again["done"]) == (run, 2, 1)
    assert [one["state"] for one in show(millrace, run)["steps"]] == ["succeeded", "waiting"]
    # The first worker was only asleep: nothing that it says counts any more.
    assert first.step(job, 1, "succeeded").status_code == 409
    assert first.finish(job).status_code == 409
    assert first.lines(job, "late").status_code == 409
    assert first.beat(job) == {"cancel": [], "lost": [run]}
    second.do(again)
    assert second.finish(again).json()["state"] == "succeeded"


def test_a_run_under_which_spark_died_goes_on_with_a_spark_of_its_own(millrace: Company) -> None:
    """It may be what ended the Spark that it shared: it does so once."""
    start(millrace, make(millrace))
    hand = RunHand(millrace)
    for outcome, code, expected in (
        ("returned", None, False),
        ("lost", "STEP_LOST", False),
        ("lost", "ENGINE_DOWN", True),
        ("returned", None, True),
    ):
        (job,) = hand.claim()
        assert hand.finish(job, outcome, error_code=code).json()["state"] == "queued"
        ((isolated,),) = millrace.rows(f"SELECT isolated FROM runs WHERE id = '{job['id']}'")
        assert bool(isolated) is expected
    (job,) = hand.claim()
    assert job["isolated"]


def test_a_run_that_loses_every_worker_fails_in_the_end(millrace: Company) -> None:
    run = start(millrace, make(millrace))
    for _ in range(4):
        assert len(RunHand(millrace).claim()) == 1
        lose(millrace)
    found = show(millrace, run)
    assert (found["state"], found["error_code"]) == ("failed", "WORKER_LOST")
    assert RunHand(millrace).claim() == []


def test_of_runs_with_an_output_in_common_one_is_under_way(millrace: Company) -> None:
    one, other = make(millrace), make(millrace, name="Others", output="trusted.others")
    first, second, third = start(millrace, one), start(millrace, one), start(millrace, other)
    hand = RunHand(millrace)
    jobs = {job["id"]: job for job in hand.claim()}
    assert set(jobs) == {first, third}
    assert hand.claim() == []
    hand.do(jobs[first])
    hand.finish(jobs[first])
    assert [job["id"] for job in hand.claim()] == [second]


def test_a_definition_that_cannot_be_read_does_not_keep_others_waiting(millrace: Company) -> None:
    one, other = make(millrace), make(millrace, name="Others", output="trusted.others")
    strange, sound = start(millrace, one), start(millrace, other)
    later = {"definition": {"kind": "of a later version"}}
    for change in (
        update(run_table).where(run_table.c.id == strange).values(later),
        update(pipeline_definition_table).where(pipeline_definition_table.c.pipeline_id == one).values(later),
    ):
        millrace.database.write(lambda connection, change=change: connection.execute(change))
    assert [job["id"] for job in RunHand(millrace).claim()] == [sound]
    found = show(millrace, strange)
    assert (found["state"], found["error_code"]) == ("failed", "DEFINITION")
    assert "save the pipeline again" in found["error"]


def test_of_many_workers_that_claim_at_once_each_run_has_one(millrace: Company) -> None:
    names = [f"Versions {number}" for number in range(12)]
    made = [make(millrace, name=name, output=f"trusted.v{number}") for number, name in enumerate(names)]
    runs = [start(millrace, pipeline) for pipeline in made]
    hands = [RunHand(millrace) for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        claimed = [job["id"] for jobs in pool.map(lambda hand: [*hand.claim(2), *hand.claim(2)], hands) for job in jobs]
    claimed += [job["id"] for job in hands[0].claim(12)]
    assert sorted(claimed) == sorted(runs)


def test_cancel_of_one_that_waits_and_of_one_that_runs(millrace: Company) -> None:
    pipeline = make(millrace)
    run, waits = start(millrace, pipeline), start(millrace, pipeline)
    tess = millrace.as_("Tess")
    assert tess.post(f"/api/runs/{waits}/cancel", None).json()["state"] == "cancelled"
    hand = RunHand(millrace)
    (job,) = hand.claim()
    assert tess.post(f"/api/runs/{run}/cancel", None).json()["state"] == "cancelling"
    assert hand.beat(job) == {"cancel": [run], "lost": []}
    # Its token ended with the order: nothing is committed for it, whatever Spark still does.
    headers = {"Authorization": f"Bearer {job['token']}"}
    assert millrace.client.get("/iceberg/v1/namespaces", headers=headers).status_code == 401
    hand.do(job)
    assert hand.finish(job).json()["state"] == "cancelled"
    assert tess.post(f"/api/runs/{run}/cancel", None).json()["state"] == "cancelled"


def test_a_cancelled_run_whose_worker_is_gone_ends(millrace: Company) -> None:
    run = start(millrace, make(millrace))
    RunHand(millrace).claim()
    millrace.as_("Tess").post(f"/api/runs/{run}/cancel", None)
    lose(millrace)
    assert show(millrace, run)["state"] == "cancelled"


def test_a_failure_is_tried_again_as_often_as_the_pipeline_says(millrace: Company) -> None:
    run = start(millrace, make(millrace, retries={"times": 1, "delay": "0 seconds"}))
    hand = RunHand(millrace)
    for attempt, state in ((0, "queued"), (1, "failed")):
        (job,) = hand.claim()
        assert show(millrace, run)["attempt"] == attempt
        assert hand.finish(job, "failed", error_code="DIVIDE_BY_ZERO", error="why").json()["state"] == state
    assert show(millrace, run)["error"] == "why"


def test_a_retry_waits_for_its_time(millrace: Company) -> None:
    start(millrace, make(millrace, retries={"times": 1, "delay": "1 hour"}))
    hand = RunHand(millrace)
    (job,) = hand.claim()
    hand.finish(job, "failed", error_code="X", error="why")
    assert hand.claim() == []


def test_what_another_try_would_not_change_is_not_tried_again(millrace: Company) -> None:
    start(millrace, make(millrace, retries={"times": 5, "delay": "0 seconds"}))
    hand = RunHand(millrace)
    (job,) = hand.claim()
    assert hand.finish(job, "failed", error_code="EXPECTATION_FAILED", error="rows").json()["state"] == "failed"


def test_a_pipeline_that_fails_too_often_is_turned_off(millrace: Company) -> None:
    pipeline, tess = make(millrace), millrace.as_("Tess")
    assert tess.request("PATCH", f"/api/pipelines/{pipeline}", json={"deactivate_after": 2}).status_code == 200
    hand = RunHand(millrace)
    for active in (True, False):
        start(millrace, pipeline)
        (job,) = hand.claim()
        hand.finish(job, "failed", error_code="X", error="why")
        assert tess.get(f"/api/pipelines/{pipeline}").json()["active"] is active
    answer = tess.post(f"/api/pipelines/{pipeline}/runs", {})
    assert (answer.status_code, "activate" in answer.json()["detail"]) == (409, True)
    tess.request("PATCH", f"/api/pipelines/{pipeline}", json={"active": True})
    start(millrace, pipeline)


def test_resume_goes_on_where_it_failed(millrace: Company) -> None:
    check = {"table": "trusted.versions", "check": "rows", "least": 1}
    run = start(millrace, make(millrace, expectations=[check]))
    hand = RunHand(millrace)
    (job,) = hand.claim()
    hand.step(job, 0, "running")
    hand.step(job, 0, "succeeded")
    hand.finish(job, "failed", error_code="EXPECTATION_FAILED", error="rows")
    assert millrace.as_("Tess").post(f"/api/runs/{run}/resume", None).json()["state"] == "queued"
    (again,) = hand.claim()
    assert (again["id"], again["done"]) == (run, 1)


def test_who_lost_a_level_since_is_blocked_before_it_begins(millrace: Company) -> None:
    grant = {"resource": "layer:trusted", "level": "editor"}
    assert millrace.as_("Tess").change(change="grant", to="Tom", **grant).status_code == 200
    run = start(millrace, make(millrace, "Tom"), "Tom")
    assert millrace.as_("Tess").change(change="revoke", to="Tom", **grant).status_code == 200
    assert RunHand(millrace).claim() == []
    found = show(millrace, run, "Olga")
    assert (found["state"], found["error_code"]) == ("blocked", "BLOCKED")


def test_a_worker_that_stops_gives_its_run_back_without_a_mark(millrace: Company) -> None:
    run = start(millrace, make(millrace))
    for _ in range(6):
        hand = RunHand(millrace)
        (job,) = hand.claim()
        assert hand.finish(job, "returned").json()["state"] == "queued"
    assert show(millrace, run)["state"] == "queued"


def test_not_every_step_finished_is_not_published(millrace: Company) -> None:
    start(millrace, make(millrace))
    hand = RunHand(millrace)
    (job,) = hand.claim()
    assert hand.finish(job).status_code == 409


def told(answer: Any) -> Any:
    """What an answer tells."""
    return answer.status_code, {name: value for name, value in answer.json().items() if name != "request_id"}


def test_runs_are_seen_and_cancelled_by_those_who_may(millrace: Company) -> None:
    run = start(millrace, make(millrace))
    for member in ("Ben", "Bea", "Tom"):
        api = millrace.as_(member)
        missing = f"/api/runs/run_{'0' * 20}"
        for path in ("", "/log"):
            assert told(api.get(f"/api/runs/{run}{path}")) == told(api.get(f"{missing}{path}"))
        assert api.post(f"/api/runs/{run}/cancel", None).status_code == 404
    viewer = {"resource": "layer:raw", "level": "viewer"}
    assert millrace.as_("Tess").change(change="grant", to="Ana", **viewer).status_code == 200
    ana = millrace.as_("Ana")
    assert ana.get(f"/api/runs/{run}").status_code == 200
    assert ana.post(f"/api/runs/{run}/cancel", None).status_code == 403
    assert ana.post(f"/api/runs/{run}/resume", None).status_code == 403


def test_where_the_next_run_goes_on_is_what_was_published(millrace: Company) -> None:
    """A state that was reported and not published is not remembered."""
    pipeline = make(millrace)
    start(millrace, pipeline)
    hand = RunHand(millrace)
    (job,) = hand.claim()
    hand.do(job, cursor={"snapshot": "1"})
    hand.finish(job, "failed", error_code="X", error="why")
    start(millrace, pipeline)
    (job,) = hand.claim()
    assert job["states"] == {}


def test_the_log_is_bounded(millrace: Company, monkeypatch: pytest.MonkeyPatch) -> None:
    run = start(millrace, make(millrace))
    hand = RunHand(millrace)
    (job,) = hand.claim()
    settings: Any = millrace.client.app.state.services.settings  # type: ignore[attr-defined]
    monkeypatch.setattr(settings.runs, "log_lines", 100)
    for _ in range(3):
        assert hand.lines(job, *["x"] * 60).status_code == 200
    log = millrace.as_("Tess").get(f"/api/runs/{run}/log").json()["items"]
    assert len(log) == 100
    assert "runs.log_lines" in log[-1]["text"]


def test_a_run_that_cannot_begin_for_a_fault_of_ours_keeps_none_of_the_others_waiting(
    millrace: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = make(millrace), make(millrace, name="Others", output="trusted.others")
    bad, next_of_it, good = start(millrace, one), start(millrace, one), start(millrace, other)
    usual = run_jobs._payload

    def payload(call: Any, row: Any) -> Any:
        if row["id"] == bad:
            raise KeyError("what nobody thought of")
        return usual(call, row)

    monkeypatch.setattr(run_jobs, "_payload", payload)
    assert [job["id"] for job in RunHand(millrace).claim(slots=5)] == [next_of_it, good]
    found = show(millrace, bad)
    assert (found["state"], found["error_code"]) == ("failed", "FAULT")
    assert "see the server's log" in found["error"]
    assert show(millrace, good)["state"] == "running"
    locked = millrace.database.write(lambda c: queue.locked(RUNS, c, good))
    assert locked is None, "one that has begun by now goes on"
    assert show(millrace, good)["state"] == "running"


def test_a_step_that_is_told_again_changes_nothing(millrace: Company) -> None:
    check = {"table": "trusted.versions", "check": "rows", "least": 0}
    run = start(millrace, make(millrace, expectations=[check]))
    hand = RunHand(millrace)
    (job,) = hand.claim()
    hand.step(job, 0, "running")
    assert hand.step(job, 0, "succeeded", rows_out=7).status_code == 200
    hand.step(job, 1, "running")
    assert hand.step(job, 0, "succeeded", rows_out=9).status_code == 200, "its first answer was lost"
    assert hand.step(job, 0, "failed").status_code == 409
    first = show(millrace, run)["steps"][0]
    assert (first["state"], first["rows_out"]) == ("succeeded", 7)


def test_one_that_is_cancelled_while_a_table_moves_under_it_ends(millrace: Company) -> None:
    run = start(millrace, make(millrace))
    hand = RunHand(millrace)
    (job,) = hand.claim()
    assert millrace.as_("Tess").post(f"/api/runs/{run}/cancel", None).json()["state"] == "cancelling"

    def moved(connection: Connection) -> str:
        row = queue.owned(RUNS, connection, run, hand.id, job["fence"])
        return begin_anew(connection, now(), row, "it has moved")

    assert millrace.database.write(moved) == "cancelled"
    assert show(millrace, run)["state"] == "cancelled"
    assert hand.claim() == []


def test_one_under_which_tables_move_too_often_is_tried_again_from_the_start(millrace: Company) -> None:
    check = {"table": "trusted.versions", "check": "rows", "least": 0}
    wanted: dict[str, Any] = {"expectations": [check], "retries": {"times": 1, "delay": "0 seconds"}}
    run = start(millrace, make(millrace, **wanted))
    hand = RunHand(millrace)
    (job,) = hand.claim()
    hand.step(job, 0, "running")
    hand.step(job, 0, "succeeded")

    def moved(connection: Connection) -> str:
        often = update(run_table).where(run_table.c.id == run).values(losses=MOVES)
        connection.execute(often)
        return begin_anew(connection, now(), queue.owned(RUNS, connection, run, hand.id, job["fence"]), "it has moved")

    assert millrace.database.write(moved) == "queued"
    (again,) = hand.claim()
    assert (again["id"], again["done"]) == (run, 0)
