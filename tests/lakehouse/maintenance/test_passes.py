"""Passes: asked for by admins, due by schedule, one at a time, and taken up where a death cut them short."""

import json
from datetime import timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from headgate.kit.clock import now
from headgate.lakehouse.maintenance import repository
from headgate.lakehouse.maintenance import scheduler as passing
from headgate.lakehouse.maintenance.scheduler import Maintainer
from headgate.pipelines.runs import checkpoints
from tests.lakehouse.catalog.support import MORE, Lake
from tests.lakehouse.maintenance.support import count, later, make, services, whole_pass
from tests.lakehouse.maintenance.test_orphans import refused

PASSES = "/api/maintenance/passes"


def shown(lake: Lake, pass_id: str) -> dict[str, Any]:
    return dict(lake.api("Adam").get(f"{PASSES}/{pass_id}").json())


@pytest.fixture
def events(served_on_sqlite: Lake) -> Lake:
    make(served_on_sqlite)
    return served_on_sqlite


def test_a_pass_tells_what_it_did(served: Lake) -> None:
    events = served
    make(events)
    left = refused(events)
    asked = events.api("Adam").post(PASSES, {"table": "raw.events"})
    assert asked.status_code == 200, asked.text
    assert (asked.json()["state"], asked.json()["items"]) == ("queued", [])
    passing.work(services(events), checkpoints, later(4))
    found = shown(events, asked.json()["id"])
    assert (found["state"], found["tables"], found["looked_at"]) == ("succeeded", 1, 1)
    assert found["summary"]["files_removed"] == len(left)
    assert found["summary"]["bytes_removed"] > 0
    [table] = found["items"]
    assert (table["name"], table["outcome"], table["files"]) == ("raw.events", "done", len(left))
    assert events.api("Adam").get(PASSES).json()["items"][0]["id"] == found["id"]
    told = events.rows("SELECT event, actor_id FROM audit_events WHERE event LIKE 'maintenance.%' ORDER BY id")
    adam = events.company.id("member", "Adam")
    assert told == [
        ("maintenance.asked", adam),
        ("maintenance.removes", "system"),
        ("maintenance.ended", "system"),
    ]


def test_only_admins_ask_and_only_for_what_there_is(events: Lake) -> None:
    assert events.api("Tess").post(PASSES, {}).status_code == 403
    assert events.api("Tess").get(PASSES).status_code == 403
    for name in ("raw.nothing", "nothing", "tbl_00000000000000000000", "", "raw.`x`; DROP", "volume:raw.invoices"):
        assert events.api("Adam").post(PASSES, {"table": name}).status_code == 404, name
    assert events.api("Adam").post(PASSES, {"tables": "raw.events"}).status_code == 422
    assert events.api("Adam").get(f"{PASSES}/mnt_00000000000000000000").status_code == 404
    assert not events.rows("SELECT 1 FROM maintenance_passes")


def test_passes_come_by_pages(events: Lake) -> None:
    api = events.api("Adam")
    made = [api.post(PASSES, {"dry_run": True}).json()["id"] for _ in range(3)]
    first = api.get(PASSES, limit=2).json()
    rest = api.get(PASSES, limit=2, cursor=first["next_cursor"]).json()
    assert [one["id"] for page in (first, rest) for one in page["items"]] == made[::-1]
    assert rest["next_cursor"] is None
    assert api.get(PASSES, cursor="' OR 1=1").status_code == 422


def test_a_dry_run_changes_nothing(events: Lake) -> None:
    refused(events)
    identifier = whole_pass(events, dry_run=True)
    found = shown(events, identifier)
    assert (found["state"], found["dry_run"], found["summary"]["files_removed"]) == ("succeeded", True, 3)
    assert shown(events, whole_pass(events))["summary"]["files_removed"] == 3, "they were still there"


def test_a_pass_that_was_cut_short_goes_on_after_the_last_table(events: Lake) -> None:
    refused(events)
    looks = iter([False, False, True])
    identifier = whole_pass(events, is_stopping=lambda: next(looks, True))
    found = shown(events, identifier)
    assert (found["state"], found["ended_at"]) == ("running", None)
    assert 0 < found["looked_at"] < found["tables"]
    # The next process knows of the pass by its row alone.
    passing.work(services(events), checkpoints, later(4))
    found = shown(events, identifier)
    assert (found["state"], found["looked_at"]) == ("succeeded", found["tables"])
    assert found["summary"]["files_removed"] == 3


def test_what_is_wrong_with_one_table_is_told_and_the_others_are_done(events: Lake) -> None:
    refused(events)
    make(events, "raw.other")
    other = events.company.id("table", "raw.other")
    for file in (events.warehouse / "metadata" / other).iterdir():
        file.write_bytes(b"{}")
    found = shown(events, whole_pass(events))
    assert (found["state"], found["summary"]["failed"], found["summary"]["files_removed"]) == ("succeeded", 1, 3)
    [wrong] = [one for one in found["items"] if one["table"] == other]
    assert "restore it from a backup" in wrong["note"]


def test_a_pass_is_due_once_whoever_looks(served: Lake) -> None:
    events = served
    found = services(events, schedule="0 3 * * *", time_zone="Europe/Berlin", compact=False)
    first, second = Maintainer(found, checkpoints), Maintainer(found, checkpoints)
    due = first._due
    assert due
    assert due.astimezone(ZoneInfo("Europe/Berlin")).hour == 3
    try:
        first.nudge(due - timedelta(seconds=1))
        assert not events.rows("SELECT 1 FROM maintenance_passes")
        for one in (first, second, first):
            one._fire(due + timedelta(seconds=1))
        assert events.rows("SELECT COUNT(*) FROM maintenance_passes") == [(1,)]
        first.nudge(due + timedelta(seconds=2))
        thread = first._thread
        assert thread
        thread.join(timeout=60)
        assert events.rows("SELECT state FROM maintenance_passes") == [("succeeded",)]
    finally:
        first.close()
        second.close()


def test_it_can_be_turned_off_but_for_what_is_asked(events: Lake) -> None:
    maintainer = Maintainer(services(events, enabled=False), checkpoints)
    assert maintainer._due
    maintainer._fire(maintainer._due + timedelta(seconds=1))
    assert not events.rows("SELECT 1 FROM maintenance_passes")
    maintainer.close()


def test_a_process_that_lost_the_lease_leaves_the_rest_to_another(events: Lake) -> None:
    found = services(events, compact=False)
    found.database.write(lambda c: repository.ask(c, now()))
    first, second = Maintainer(found, checkpoints), Maintainer(found, checkpoints)
    try:
        first.rest()
        first._round()
        assert events.rows("SELECT state, looked_at FROM maintenance_passes") == [("queued", 0)]
        second._round()
        assert events.rows("SELECT state FROM maintenance_passes") == [("succeeded",)]
    finally:
        first.close()
        second.close()


def test_the_record_of_long_ago_is_forgotten(events: Lake) -> None:
    identifier = whole_pass(events)
    maintainer = Maintainer(services(events), checkpoints)
    maintainer.forget(later(60))
    assert shown(events, identifier)["state"] == "succeeded"
    maintainer.forget(later(100))
    assert not events.rows("SELECT 1 FROM maintenance_passes")
    maintainer.close()


def test_a_table_is_read_and_written_while_a_pass_works(events: Lake) -> None:
    refused(events)
    found = services(events)
    found.database.write(lambda c: repository.ask(c, now()))

    def commit_in_between() -> bool:
        if not events.rows("SELECT 1 FROM maintenance_passes WHERE looked_at > 0"):
            events.engine("Tess").load_table("raw.events").append(MORE)
        return False

    passing.work(found, checkpoints, later(4), commit_in_between)
    written = events.rows("SELECT COUNT(*) FROM commits WHERE operation = 'append'")[0][0]
    assert count(events) == 3 + 2 * (written - 1)
    told = events.rows("SELECT after FROM audit_events WHERE event = 'maintenance.ended'")
    assert all((json.loads(one) if isinstance(one, str) else one)["failed"] == 0 for (one,) in told)
