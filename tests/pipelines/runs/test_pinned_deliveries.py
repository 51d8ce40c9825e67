"""A delivery sees its tables as they were when it was claimed: what its checks judge is what is sent."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, select, update

from headgate.kit.database import Database
from headgate.kit.ids import new_id
from headgate.pipelines.runs.models import run_step_table
from tests.lakehouse.catalog.support import MORE, ROWS, Lake, error_of, lake, table_path
from tests.pipelines.runs.support import RunHand, lose, show, start
from tests.pipelines.runs.test_memory import destination
from tests.support.company import Api

EVENTS = table_path("events")
CHECK = {"table": "raw.events", "check": "rows", "most": 3}


@pytest.fixture
def events(database: Database, tmp_path: Path) -> Iterator[Lake]:
    """A lake in which Tess has made raw.events, of three rows."""
    with lake(database, tmp_path) as found:
        found.engine("Tess").create_table("raw.events", ROWS.schema).append(ROWS)
        yield found


def delivery(events: Lake) -> str:
    tables = [{"table": "raw.events", "target": "public.events"}]
    to = destination(events.company)
    definition = {"kind": "delivery", "destination": to, "tables": tables, "expectations": [CHECK]}
    answer = events.api("Tess").post("/api/pipelines", {"name": "Out", "definition": definition})
    assert answer.status_code == 200, answer.text
    return str(answer.json()["id"])


def snapshot(events: Lake, job: dict[str, Any]) -> int:
    """What the catalog shows a run as the newest snapshot."""
    answer = Api(events.company.client, job["token"]).get(EVENTS)
    assert answer.status_code == 200, answer.text
    return int(answer.json()["metadata"]["current-snapshot-id"])


def commit(events: Lake) -> int:
    """Another state of the table, which the check would refuse."""
    table = events.engine("Tess").load_table("raw.events")
    table.append(MORE)
    return int(table.current_snapshot().snapshot_id)


def test_a_commit_between_the_checks_and_the_sending_is_not_sent(events: Lake) -> None:
    run = start(events.company, delivery(events))
    hand = RunHand(events.company)
    (job,) = hand.claim()
    assert [one["kind"] for one in job["steps"]] == ["check", "deliver"]
    later = commit(events)
    first = snapshot(events, job)
    hand.step(job, 0, "running")
    hand.step(job, 0, "succeeded")
    assert commit(events) != later
    assert snapshot(events, job) == first
    hand.step(job, 1, "running")
    hand.step(job, 1, "succeeded")
    assert hand.finish(job).json()["state"] == "succeeded"
    assert show(events.company, run)["state"] == "succeeded"
    assert events.rows("SELECT COUNT(*) FROM run_pointers") == [(0,)]
    newest = events.engine("Tess").load_table("raw.events").current_snapshot()
    assert newest.snapshot_id not in {first, later}, "nothing was published over it"


def test_whoever_goes_on_with_it_sends_what_was_checked(events: Lake) -> None:
    run = start(events.company, delivery(events))
    first, second = RunHand(events.company), RunHand(events.company)
    (job,) = first.claim()
    seen = snapshot(events, job)
    first.step(job, 0, "running")
    first.step(job, 0, "succeeded")
    lose(events.company)
    newest = commit(events)
    (again,) = second.claim()
    assert (again["done"], snapshot(events, again)) == (1, seen)
    second.step(again, 1, "running")
    second.step(again, 1, "failed")
    second.finish(again, "failed", error_code="X", error="why")
    assert events.api("Tess").post(f"/api/runs/{run}/resume", None).status_code == 200
    (resumed,) = second.claim()
    assert (resumed["done"], snapshot(events, resumed)) == (1, seen)
    second.finish(resumed, "failed", error_code="X", error="why")
    start(events.company, show(events.company, run)["pipeline"])
    (next_one,) = second.claim()
    assert (next_one["done"], snapshot(events, next_one)) == (0, newest)


def test_one_that_died_before_its_checks_were_made_begins_with_the_newest(events: Lake) -> None:
    start(events.company, delivery(events))
    first, second = RunHand(events.company), RunHand(events.company)
    (job,) = first.claim()
    first.step(job, 0, "running")
    lose(events.company)
    newest = commit(events)
    (again,) = second.claim()
    assert (again["done"], snapshot(events, again)) == (0, newest)


def test_what_is_deleted_meanwhile_is_gone_for_the_delivery_too(events: Lake) -> None:
    start(events.company, delivery(events))
    (job,) = RunHand(events.company).claim()
    api = Api(events.company.client, job["token"])
    listed = "/iceberg/v1/namespaces/raw/tables"
    assert [one["name"] for one in api.get(listed).json()["identifiers"]] == ["events"]
    table = events.company.id("table", "raw.events")
    events.api("Tess").request("DELETE", f"/api/tables/{table}").raise_for_status()
    assert error_of(api.get(EVENTS)) == (404, "NoSuchTableException")
    assert api.get(listed).json()["identifiers"] == []
    events.engine("Tess").create_table("raw.events", ROWS.schema).append(MORE)
    assert error_of(api.get(EVENTS)) == (404, "NoSuchTableException"), "another table of that name was not declared"


def test_one_that_goes_on_after_a_layer_was_deleted_begins_anew(events: Lake) -> None:
    run = start(events.company, delivery(events))
    first, second = RunHand(events.company), RunHand(events.company)
    (job,) = first.claim()
    first.step(job, 0, "running")
    first.step(job, 0, "succeeded")
    lose(events.company)

    def elsewhere(connection: Connection) -> None:
        mine = (run_step_table.c.run_id == run, run_step_table.c.number == 0)
        kept = connection.execute(select(run_step_table.c.pointers).where(*mine)).scalar()
        moved = [{**one, "layer_id": new_id("layer")} for one in kept]
        assert moved
        connection.execute(update(run_step_table).where(*mine).values(pointers=moved))

    events.company.database.write(elsewhere)
    newest = commit(events)
    (again,) = second.claim()
    assert (again["done"], snapshot(events, again)) == (0, newest)


def test_a_table_that_took_the_name_of_another_is_not_sent_for_it(events: Lake) -> None:
    tess = events.engine("Tess")
    tess.create_table("raw.more", ROWS.schema).append(ROWS)
    tables = [{"table": f"raw.{name}", "target": f"public.{name}"} for name in ("events", "more")]
    definition = {"kind": "delivery", "destination": destination(events.company), "tables": tables}
    answer = events.api("Tess").post("/api/pipelines", {"name": "Both", "definition": definition})
    start(events.company, answer.json()["id"])
    hand = RunHand(events.company)
    (job,) = hand.claim()
    tess.rename_table("raw.events", "raw.gone")
    tess.rename_table("raw.more", "raw.events")
    api = Api(events.company.client, job["token"])
    for name in ("events", "more"):
        assert error_of(api.get(table_path(name))) == (404, "NoSuchTableException")
    hand.finish(job, "failed", error_code="X", error="why")
    assert events.api("Tess").post(f"/api/runs/{job['id']}/resume", None).status_code == 200
    (again,) = hand.claim()
    assert [one["table"]["name"] for one in again["steps"]] == ["gone", "events"]
    assert snapshot(events, again) == int(tess.load_table("raw.events").current_snapshot().snapshot_id)
