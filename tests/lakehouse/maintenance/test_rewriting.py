"""Tables that a worker rewrites: which, by what token, and what it cannot do with it."""

from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import Connection, text, update

from headgate.kit.clock import now
from headgate.kit.ids import new_id
from headgate.lakehouse.maintenance import scheduler as passing
from headgate.lakehouse.maintenance.models import table_rewrite_table
from headgate.lakehouse.maintenance.rewrite_job import LEASE, TABLE_REWRITES
from headgate.pipelines.runs import checkpoints
from headgate.platform.jobs.cleanup import LeaseSweeper
from headgate.platform.jobs.models import worker_table
from tests.lakehouse.catalog.support import MORE, ROWS, SCHEMA, Lake, appending, error_of, table_path
from tests.lakehouse.maintenance.support import count, make, services, whole_pass
from tests.support.company import Api

EVENTS = table_path("events")
WORK = "/api/worker/jobs/table_rewrite"


class Hand:
    """A worker, without a Spark."""

    def __init__(self, lake: Lake) -> None:
        self.lake, self.id = lake, new_id("worker")
        self.api = Api(lake.company.client, services(lake).worker_secret)
        self.seen()

    def about(self) -> dict[str, Any]:
        return {"worker": self.id, "name": "by hand", "version": "1", "state": {}}

    def seen(self) -> None:
        """Be heard of."""
        assert self.api.post("/api/worker/jobs/heartbeat", {**self.about(), "running": []}).status_code == 200

    def claim(self) -> Any:
        """The job, with its payload; None if there is none."""
        jobs = self.api.post(f"{WORK}/claim", {**self.about(), "slots": 1}).json()["jobs"]
        return {**jobs[0], **jobs[0]["payload"]} if jobs else None

    def finish(self, job: Any, **counts: Any) -> Any:
        """The state of the job after the report of what it did."""
        body = {"worker": self.id, "fence": job["fence"], "state": "succeeded", "result": counts}
        return self.api.post(f"{WORK}/{job['id']}/finish", body).json()["state"]


@pytest.fixture
def events(served_on_sqlite: Lake) -> Lake:
    return filled(served_on_sqlite)


def filled(lake: Lake) -> Lake:
    """A table of five small files, which are enough, and one of two, which are not."""
    table = make(lake)
    for _ in range(4):
        table.append(MORE)
    make(lake, "raw.other").append(ROWS)
    services(lake, compact_min_files=5, compact_minutes=10)
    return lake


class Times:
    """What the scheduler sees of the clock, which can be set, and of the ticks, which nobody sets."""

    def __init__(self, lake: Lake) -> None:
        self.lake, self.off, self.ticks = lake, timedelta(), 100.0
        self._sweeper = LeaseSweeper(TABLE_REWRITES, services(lake).settings, lake.company.database, lambda: self.ticks)
        self.look()

    def look(self) -> list[Any]:
        """The scheduler looks once; the state of the pass."""
        moment = now() + self.off
        self._sweeper.sweep(moment)
        passing.work(services(self.lake), checkpoints, moment)
        return state_of(self.lake)

    def after(self, **more: float) -> list[Any]:
        """Time has passed, by both."""
        self.off += timedelta(**more)
        self.ticks += timedelta(**more).total_seconds()
        return self.look()

    def jumps(self, **by: float) -> list[Any]:
        """The clock is set; nobody has waited."""
        self.off += timedelta(**by)
        return self.look()

    def hear(self) -> None:
        """The workers send their heartbeats, by the clock as it is."""
        at = now() + self.off

        def beat(connection: Connection) -> None:
            connection.execute(update(worker_table).values(seen_at=at))
            running = update(table_rewrite_table).where(table_rewrite_table.c.state == "running")
            connection.execute(running.values(lease_until=at + LEASE))

        self.lake.company.database.write(beat)


def state_of(lake: Lake) -> list[Any]:
    return lake.rows("SELECT state FROM maintenance_passes")


def test_many_small_files_are_given_to_a_worker_and_the_pass_waits_for_it(served: Lake) -> None:
    events = filled(served)
    hand = Hand(events)
    assert hand.claim() is None
    identifier = whole_pass(events, days=0)
    assert state_of(events) == [("compacting",)]
    job = hand.claim()
    assert (job["layer"], job["name"], job["fence"], job["min_files"]) == ("raw", "events", 1, 5)
    assert hand.claim() is None, "the other table is fine as it is"
    passing.work(services(events), checkpoints, now())
    assert state_of(events) == [("compacting",)]
    assert hand.finish(job, files_before=5, files_after=1) == "succeeded"
    assert hand.finish(job, files_before=5, files_after=2) == "succeeded", "told again, it changes nothing"
    passing.work(services(events), checkpoints, now())
    found = events.api("Adam").get(f"/api/maintenance/passes/{identifier}").json()
    assert (found["state"], found["summary"]["files_before"], found["summary"]["files_after"]) == ("succeeded", 5, 1)


def test_a_dry_run_or_a_setting_gives_nothing_to_a_worker(events: Lake) -> None:
    identifier = whole_pass(events, days=0, dry_run=True)
    found = events.api("Adam").get(f"/api/maintenance/passes/{identifier}").json()
    assert (found["state"], found["summary"]["compactions_planned"]) == ("succeeded", 1)
    services(events, compact=False)
    whole_pass(events, days=0)
    assert Hand(events).claim() is None


def test_the_token_reaches_one_table_and_takes_no_history_away(events: Lake) -> None:
    pass_id = whole_pass(events, days=0)
    hand = Hand(events)
    job = hand.claim()
    spark = Api(events.company.client, job["token"])
    assert spark.get(EVENTS).status_code == 200
    assert spark.get(EVENTS).json()["config"]["io-impl"] == "headgate.guard.TableFileIO"
    for hidden in (table_path("other"), table_path("orders")):
        assert error_of(spark.get(hidden)) == (404, "NoSuchTableException")
    for path in ("/api/tables", "/api/me/sessions", "/api/maintenance/passes"):
        assert spark.get(path).status_code == 401, path
    assert spark.post("/iceberg/v1/namespaces/raw/tables", {"name": "x", "schema": SCHEMA}).status_code in {403, 404}
    assert spark.post("/iceberg/v1/namespaces", {"namespace": ["mine"]}).status_code in {403, 404}
    assert spark.request("DELETE", EVENTS).status_code == 403
    rename = {"source": {"namespace": ["raw"], "name": "events"}, "destination": {"namespace": ["raw"], "name": "x"}}
    assert spark.post("/iceberg/v1/tables/rename", rename).status_code == 403
    table = events.engine("Tess").load_table("raw.events")
    first = table.metadata.snapshots[0].snapshot_id
    gone = {"requirements": [], "updates": [{"action": "remove-snapshots", "snapshot-ids": [first]}]}
    assert spark.post(EVENTS, gone).status_code == 403
    back = {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": first}
    assert spark.post(EVENTS, {"requirements": [], "updates": [back]}).status_code == 403
    for path in ("/iceberg/v1/namespaces", "/iceberg/v1/namespaces/raw", "/iceberg/v1/namespaces/raw/tables"):
        answer = spark.get(path)
        assert answer.status_code in {200, 403, 404}, path
        assert "other" not in answer.text
    other = events.engine("Tess").load_table("raw.other")
    both = [(table, "events"), (other, "other")]
    changes = [{**appending(one), "identifier": {"namespace": ["raw"], "name": name}} for one, name in both]
    assert spark.post("/iceberg/v1/transactions/commit", {"table-changes": changes}).status_code == 404
    assert (count(events), count(events, "raw.other")) == (11, 6)
    assert spark.post(EVENTS, appending(table)).status_code == 200
    [(member, work)] = events.rows("SELECT member_id, work_id FROM commits ORDER BY at DESC, version DESC LIMIT 1")
    assert (member, work) == (None, pass_id)
    told = "SELECT actor_id FROM audit_events WHERE event = 'table.committed' ORDER BY id DESC LIMIT 1"
    assert events.rows(told) == [("system",)]
    assert hand.finish(job, files_before=5, files_after=1) == "succeeded"
    assert spark.get(EVENTS).status_code == 401


def test_a_run_that_began_meanwhile_refuses_the_rewriting(events: Lake) -> None:
    whole_pass(events, days=0)
    hand = Hand(events)
    job = hand.claim()
    spark = Api(events.company.client, job["token"])
    body = appending(events.engine("Tess").load_table("raw.events"))
    [(run,)] = events.rows("SELECT id FROM runs LIMIT 1")
    hold = text("INSERT INTO run_outputs (run_id, item_id) VALUES (:run, :item)")
    events.company.database.write(lambda c: c.execute(hold, {"run": run, "item": job["table_id"]}))
    before = events.rows("SELECT table_id, version FROM table_pointers ORDER BY table_id")
    assert error_of(spark.post(EVENTS, body)) == (409, "CommitFailedException")
    assert events.rows("SELECT table_id, version FROM table_pointers ORDER BY table_id") == before


def test_what_a_run_writes_by_now_is_not_given_out(events: Lake) -> None:
    whole_pass(events, days=0)
    [(run,)] = events.rows("SELECT id FROM runs LIMIT 1")
    hold = text("INSERT INTO run_outputs (run_id, item_id) VALUES (:run, :item)")
    item = events.company.id("table", "raw.events")
    events.company.database.write(lambda c: c.execute(hold, {"run": run, "item": item}))
    assert Hand(events).claim() is None
    passing.work(services(events), checkpoints, now())
    assert state_of(events) == [("succeeded",)]
    assert events.rows("SELECT error FROM table_rewrites WHERE state = 'failed'") == [("a run is writing it",)]


def test_a_worker_that_was_lost_holds_up_nothing(events: Lake) -> None:
    whole_pass(events, days=0)
    hand = Hand(events)
    job = hand.claim()
    spark = Api(events.company.client, job["token"])
    times = Times(events)
    assert times.look() == [("compacting",)]
    assert times.after(minutes=3) == [("succeeded",)]
    assert spark.get(EVENTS).status_code == 401, "what it still does counts no more"
    assert hand.finish(job, files_before=5, files_after=1) == "failed"
    assert count(events) == 11


def test_where_there_is_no_worker_nothing_waits_for_one(events: Lake) -> None:
    whole_pass(events, days=0)
    times = Times(events)
    assert times.after(minutes=1) == [("compacting",)]
    assert times.after(minutes=2) == [("succeeded",)]
    [(note,)] = events.rows("SELECT error FROM table_rewrites WHERE state = 'failed'")
    assert "There is no worker" in note


def test_a_clock_that_is_set_back_stretches_nothing(events: Lake) -> None:
    whole_pass(events, days=0)
    Hand(events).claim()
    times = Times(events)
    assert times.jumps(hours=-3) == [("compacting",)]
    assert times.after(minutes=1) == [("compacting",)], "those that live have time to be heard of"
    assert times.after(minutes=2) == [("succeeded",)], "it was heard of at a time that is still to come"


@pytest.mark.parametrize("hours", [3, -3])
def test_a_worker_that_lives_keeps_its_table_when_the_clock_is_set(events: Lake, hours: int) -> None:
    whole_pass(events, days=0)
    services(events, compact_min_files=5, compact_minutes=240)
    hand = Hand(events)
    job, times = hand.claim(), Times(events)
    assert times.jumps(hours=hours) == [("compacting",)]
    for _ in range(3):
        times.hear()
        assert times.after(minutes=1.5) == [("compacting",)]
    assert hand.finish(job, files_before=5, files_after=1) == "succeeded"


def test_what_waits_since_a_time_to_come_waits_no_longer_than_any(events: Lake) -> None:
    whole_pass(events, days=0)
    times = Times(events)
    times.jumps(hours=-3)
    assert times.after(minutes=1.5) == [("compacting",)]
    assert times.after(minutes=1.5) == [("succeeded",)]


def test_another_pass_does_not_wait_for_spark_and_gives_nothing_out_twice(events: Lake) -> None:
    first = whole_pass(events, days=0)
    second = whole_pass(events, days=0)
    states = {one["id"]: one["state"] for one in events.api("Adam").get("/api/maintenance/passes").json()["items"]}
    assert states == {first: "compacting", second: "succeeded"}
    hand = Hand(events)
    assert hand.claim() is not None
    assert events.rows("SELECT pass_id FROM table_rewrites") == [(first,)]
    assert hand.claim() is None
