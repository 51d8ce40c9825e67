"""What a fire does: it starts a run, it is left out, or it is blocked; and what is missed is caught up as wanted."""

import errno
import json
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import update

from headgate.kit.clock import now
from headgate.pipelines.models import pipeline_definition_table
from headgate.pipelines.runs.models import run_table
from headgate.pipelines.runs.start import MAX_DEPTH
from headgate.pipelines.triggers import scheduler as scheduling
from headgate.pipelines.triggers.fire import MOST_CAUGHT_UP
from headgate.pipelines.triggers.models import trigger_table
from headgate.platform.authorization.fact_tables import grant_table
from headgate.platform.notifications.dispatcher import dispatch_one
from headgate.platform.notifications.templates import reason
from headgate.platform.webhooks import service as webhooks
from tests.pipelines.triggers.support import Yard, iso

pytestmark = pytest.mark.both_databases


def test_a_due_trigger_starts_a_run_once(yard: Yard) -> None:
    trigger = yard.trigger(yard.land, "* * * * *", parameters={"days": 3}, full_refresh=True)
    due = iso(yard.shown(trigger)["next"][0])
    yard.round()
    assert yard.states() == []
    yard.clock.set(due)
    yard.round()
    yard.round()
    [run] = yard.runs()
    assert (run["parent_id"], run["state"], run["due_at"]) == (yard.land, "queued", due)
    assert (run["trigger_id"], run["started_by_id"], run["depth"]) == (trigger, None, 0)
    assert (run["full_refresh"], run["parameters"]) == (True, {"days": 3})
    assert yard.fires() == [(due, run["id"])]
    assert yard.shown(trigger)["last"]["run"] == run["id"]
    assert yard.row(trigger)["next_at"] == due + timedelta(minutes=1)


def test_one_that_is_paused_or_whose_pipeline_is_off_does_not_fire(yard: Yard) -> None:
    paused = yard.trigger(yard.land, "* * * * *")
    yard.as_("Tess").post(f"/api/triggers/{paused}/pause", {}).raise_for_status()
    yard.trigger(yard.refine, "* * * * *")
    off = update(pipeline_definition_table).values(active=False)
    yard.database.write(lambda connection: connection.execute(off).rowcount)
    for _ in range(3):
        yard.minute()
    assert yard.runs() == []
    on = update(pipeline_definition_table).values(active=True)
    yard.database.write(lambda connection: connection.execute(on).rowcount)
    yard.minute()
    assert [run["parent_id"] for run in yard.runs()] == [yard.refine]


def test_a_run_that_still_waits_is_not_joined_by_another(yard: Yard) -> None:
    yard.trigger(yard.land, "* * * * *")
    for _ in range(3):
        yard.minute()
    assert yard.states() == ["queued", "skipped", "skipped"]
    assert "still queued" in yard.runs()[1]["error"]
    yard.end()
    yard.minute()
    assert yard.states() == ["succeeded", "skipped", "skipped", "queued"]


def test_a_run_that_is_tried_again_is_joined_by_one_that_sees_what_is_new(yard: Yard) -> None:
    """A delivery that is tried again sends the snapshot that it began with; what changed since needs another run."""
    yard.trigger(yard.land, "* * * * *")
    yard.minute()
    begun = update(run_table).values(fence=1, not_before=yard.clock() + timedelta(hours=1))
    yard.database.write(lambda connection: connection.execute(begun).rowcount)
    for _ in range(3):
        yard.minute()
    assert yard.states() == ["queued", "queued", "skipped", "skipped"]


def test_a_full_queue_is_not_joined_by_the_runs_of_many_triggers(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headgate.pipelines.runs.start.MOST_WAITING", 2)
    triggers = [yard.trigger(yard.land, "* * * * *") for _ in range(3)]
    yard.minute()
    assert sorted(yard.states()) == ["queued", "queued", "skipped"]
    [left_out] = [run for run in yard.runs() if run["state"] == "skipped"]
    assert "already queued" in left_out["error"]
    assert all(yard.shown(one)["enabled"] for one in triggers)
    yard.end()
    yard.minute()
    assert yard.states().count("queued") == 2


def test_one_that_cannot_start_as_it_stands_is_left_out_and_says_why(yard: Yard) -> None:
    unresolved = update(pipeline_definition_table).values(unresolved="raw.nowhere does not exist")
    yard.database.write(lambda connection: connection.execute(unresolved).rowcount)
    trigger = yard.trigger(yard.land, "* * * * *")
    yard.minute()
    [run] = yard.runs()
    assert (run["state"], run["error_code"]) == ("skipped", "SKIPPED")
    assert "raw.nowhere" in run["error"]
    assert yard.shown(trigger)["enabled"]


# Catching up


@pytest.mark.parametrize(
    ("catch_up", "expected"),
    [("skip", ["skipped"]), ("latest", ["queued"]), ("all", ["queued"] * 5)],
)
def test_what_was_missed_is_caught_up_as_wanted(yard: Yard, catch_up: str, expected: list[str]) -> None:
    trigger = yard.trigger(yard.land, {"kind": "cron", "cron": "0 * * * *", "catch_up": catch_up})
    first = iso(yard.shown(trigger)["next"][0])
    yard.clock.set(first + timedelta(hours=4, minutes=10))
    for _ in range(8):
        yard.round()
    assert yard.states() == expected
    dues = [run["due_at"] for run in yard.runs()]
    last = first + timedelta(hours=4)
    assert dues == ([last] if catch_up != "all" else [first + timedelta(hours=n) for n in range(5)])
    assert yard.row(trigger)["next_at"] == last + timedelta(hours=1)
    yard.clock.set(last + timedelta(hours=1, seconds=1))
    yard.end()
    yard.round()
    assert yard.states()[-1] == "queued"


def test_a_fire_that_is_a_little_late_was_not_missed(yard: Yard) -> None:
    trigger = yard.trigger(yard.land, {"kind": "cron", "cron": "0 * * * *", "catch_up": "skip"})
    yard.clock.set(iso(yard.shown(trigger)["next"][0]) + timedelta(seconds=50))
    yard.round()
    assert yard.states() == ["queued"]


def test_catching_up_all_has_an_end(yard_on_sqlite: Yard) -> None:
    yard = yard_on_sqlite
    trigger = yard.trigger(yard.land, {"kind": "cron", "cron": "* * * * *", "catch_up": "all"})
    yard.clock.advance(days=400)
    for _ in range(MOST_CAUGHT_UP + 20):
        yard.round()
    assert yard.states() == ["queued"] * MOST_CAUGHT_UP
    assert yard.row(trigger)["next_at"] > yard.clock()
    yard.minute()
    assert yard.states()[-1] == "skipped"


# Judgment


def _blocked(yard: Yard, trigger: str) -> str:
    """Fire, and say why it was blocked."""
    yard.minute()
    [run] = yard.runs()
    row = yard.row(trigger)
    assert (run["state"], run["error_code"], run["trigger_id"]) == ("blocked", "BLOCKED", trigger)
    assert (row["enabled"], row["next_at"], row["paused_because"]) == (False, None, run["error"])
    yard.clock.advance(minutes=5)
    yard.round()
    assert len(yard.runs()) == 1
    return str(run["error"])


def _drop_grants(yard: Yard, member: str) -> None:
    gone = grant_table.delete().where(grant_table.c.grantee_id == yard.company.id("member", member))
    yard.database.write(lambda connection: connection.execute(gone).rowcount)


def test_the_author_must_have_the_right_at_each_fire(yard: Yard) -> None:
    trigger = yard.trigger(yard.land, "* * * * *", by="Tom")
    yard.minute()
    assert yard.states() == ["queued"]
    yard.database.write(lambda connection: connection.execute(run_table.delete()).rowcount)
    _drop_grants(yard, "Tom")
    assert _blocked(yard, trigger).startswith("The trigger's author may no longer start this pipeline; a member who")


def test_an_author_who_left_blocks_it(yard: Yard) -> None:
    trigger = yard.trigger(yard.land, "* * * * *", by="Tom")
    yard.as_("Olga").change(change="remove_member", member="Tom").raise_for_status()
    assert _blocked(yard, trigger).startswith("The trigger's author is no longer a member")
    assert yard.shown(trigger, "Adam")["author"] is None


def test_whom_it_acts_for_must_have_the_rights_at_each_fire(yard: Yard) -> None:
    trigger = yard.trigger(yard.refine, "* * * * *", by="Adam")
    _drop_grants(yard, "Tess")
    assert yard.shown(trigger, "Adam")["blocked_by"]
    assert _blocked(yard, trigger).startswith("Whom this pipeline acts for may not read all that it reads")


def test_a_trigger_of_a_task_is_judged_by_the_rules_of_tasks(yard: Yard) -> None:
    trigger = yard.trigger(yard.task, "* * * * *", by="Tom")
    assert yard.shown(trigger, "Tom")["blocked_by"] == []
    yard.minute()
    assert yard.states() == ["queued"]
    yard.database.write(lambda connection: connection.execute(run_table.delete()).rowcount)
    _drop_grants(yard, "Tom")
    assert _blocked(yard, trigger).startswith("The trigger's author may no longer start")


def _told(yard: Yard) -> dict[str, Any]:
    """What the one notice tells of the run."""
    [(facts,)] = yard.company.rows("SELECT facts FROM notices")
    return dict(json.loads(facts) if isinstance(facts, str) else facts)


def test_those_who_could_take_it_over_are_told_and_nobody_else(yard: Yard) -> None:
    trigger = yard.trigger(yard.land, "* * * * *", by="Tom")
    _drop_grants(yard, "Tom")
    _blocked(yard, trigger)
    [(notice, event)] = yard.company.rows("SELECT id, event FROM notices")
    assert event == "run.blocked"
    assert (_told(yard)["state"], _told(yard)["code"]) == ("blocked", "BLOCKED")
    yard.database.write(lambda connection: dispatch_one(connection, notice, now(), webhooks.enqueue, by_mail=False))
    told = "SELECT m.name FROM notifications n JOIN members m ON m.id = n.member_id ORDER BY m.name"
    assert [row[0] for row in yard.company.rows(told)] == ["Adam", "Olga", "Tess"]
    [item] = yard.as_("Tess").get("/api/notifications").json()["items"]
    assert item["sentence"] == "A run of the pipeline Land payments was blocked, and its trigger is paused"
    denied = "SELECT action, resource_id FROM audit_events WHERE event = 'access.denied'"
    assert ("fire", trigger) in yard.company.rows(denied)


def test_who_lost_the_right_meanwhile_is_not_told(yard: Yard) -> None:
    trigger = yard.trigger(yard.task, "* * * * *", by="Tom")
    _drop_grants(yard, "Tess")
    _blocked(yard, trigger)
    change = {"change": "take_space_role", "space": "Sales data", "to": "Tom", "space_role": "can_edit"}
    answer = yard.as_("Olga").change(**change)
    assert answer.status_code == 200, answer.text
    [(notice,)] = yard.company.rows("SELECT id FROM notices WHERE event = 'run.blocked'")
    yard.database.write(lambda connection: dispatch_one(connection, notice, now(), webhooks.enqueue, by_mail=False))
    told = "SELECT m.name FROM notifications n JOIN members m ON m.id = n.member_id ORDER BY m.name"
    assert [row[0] for row in yard.company.rows(told)] == ["Adam", "Olga", "Tess"]


@pytest.mark.parametrize("how", ["resume", "save"])
def test_whoever_takes_it_over_is_its_author(yard: Yard, how: str) -> None:
    trigger = yard.trigger(yard.land, "* * * * *", by="Tom")
    _drop_grants(yard, "Tom")
    _blocked(yard, trigger)
    tess = yard.as_("Tess")
    taken = (
        tess.post(f"/api/triggers/{trigger}/resume", {})
        if how == "resume"
        else tess.request("PATCH", f"/api/triggers/{trigger}", json={})
    )
    assert taken.status_code == 200, taken.text
    assert (taken.json()["author"]["name"], taken.json()["enabled"]) == ("Tess", True)
    assert (taken.json()["paused_because"], taken.json()["blocked_by"]) == (None, [])
    yard.minute()
    assert yard.states() == ["blocked", "queued"]


def test_a_chain_without_an_end_is_ended(yard: Yard) -> None:
    yard.trigger(yard.refine, {"kind": "pipelines", "pipelines": [yard.land]})
    yard.succeed(yard.land, depth=MAX_DEPTH - 1)
    yard.round()
    assert [(run["state"], run["depth"]) for run in yard.runs()] == [("queued", MAX_DEPTH)]
    yard.end()
    yard.clock.advance(seconds=1)
    yard.succeed(yard.land, depth=MAX_DEPTH)
    yard.round()
    assert yard.states() == ["succeeded", "blocked"]
    assert "an endless loop" in yard.runs()[-1]["error"]
    assert "like an endless loop" in str(reason("run.blocked", _told(yard)))


def test_a_fault_of_ours_pauses_one_and_holds_up_no_other(yard: Yard) -> None:
    broken, sound = yard.trigger(yard.land, "* * * * *"), yard.trigger(yard.refine, "* * * * *")
    spec = {"when": {"kind": "cron", "cron": "* * * * *", "time_zone": "Europe/Atlantis"}}
    spoil = update(trigger_table).where(trigger_table.c.id == broken).values(spec=spec)
    yard.database.write(lambda connection: connection.execute(spoil).rowcount)
    yard.minute()
    assert [run["trigger_id"] for run in yard.runs()] == [sound]
    assert "save the trigger again" in yard.row(broken)["paused_because"]


def test_a_full_disk_pauses_no_trigger(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    triggers = [yard.trigger(yard.land, "* * * * *") for _ in range(2)]

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(scheduling, "fire", full)
        with pytest.raises(OSError, match="No space left"):
            yard.minute()
    assert [yard.row(one)["enabled"] for one in triggers] == [True, True]
    yard.round()
    assert len(yard.runs()) == 2
