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
from tests.pipelines.triggers.support import TriggerBench, iso

pytestmark = pytest.mark.both_databases


def test_a_due_trigger_starts_a_run_once(trigger_bench: TriggerBench) -> None:
    trigger = trigger_bench.trigger(trigger_bench.land, "* * * * *", parameters={"days": 3}, full_refresh=True)
    due = iso(trigger_bench.shown(trigger)["next"][0])
    trigger_bench.round()
    assert trigger_bench.states() == []
    trigger_bench.clock.set(due)
    trigger_bench.round()
    trigger_bench.round()
    [run] = trigger_bench.runs()
    assert (run["parent_id"], run["state"], run["due_at"]) == (trigger_bench.land, "queued", due)
    assert (run["trigger_id"], run["started_by_id"], run["depth"]) == (trigger, None, 0)
    assert (run["full_refresh"], run["parameters"]) == (True, {"days": 3})
    assert trigger_bench.fires() == [(due, run["id"])]
    assert trigger_bench.shown(trigger)["last"]["run"] == run["id"]
    assert trigger_bench.row(trigger)["next_at"] == due + timedelta(minutes=1)


def test_one_that_is_paused_or_whose_pipeline_is_off_does_not_fire(trigger_bench: TriggerBench) -> None:
    paused = trigger_bench.trigger(trigger_bench.land, "* * * * *")
    trigger_bench.as_("Tess").post(f"/api/triggers/{paused}/pause", {}).raise_for_status()
    trigger_bench.trigger(trigger_bench.refine, "* * * * *")
    off = update(pipeline_definition_table).values(active=False)
    trigger_bench.database.write(lambda connection: connection.execute(off).rowcount)
    for _ in range(3):
        trigger_bench.minute()
    assert trigger_bench.runs() == []
    on = update(pipeline_definition_table).values(active=True)
    trigger_bench.database.write(lambda connection: connection.execute(on).rowcount)
    trigger_bench.minute()
    assert [run["parent_id"] for run in trigger_bench.runs()] == [trigger_bench.refine]


def test_a_run_that_still_waits_is_not_joined_by_another(trigger_bench: TriggerBench) -> None:
    trigger_bench.trigger(trigger_bench.land, "* * * * *")
    for _ in range(3):
        trigger_bench.minute()
    assert trigger_bench.states() == ["queued", "skipped", "skipped"]
    assert "still queued" in trigger_bench.runs()[1]["error"]
    trigger_bench.end()
    trigger_bench.minute()
    assert trigger_bench.states() == ["succeeded", "skipped", "skipped", "queued"]


def test_a_run_that_is_tried_again_is_joined_by_one_that_sees_what_is_new(trigger_bench: TriggerBench) -> None:
    """A delivery that is tried again sends the snapshot that it began with; what changed since needs another run."""
    trigger_bench.trigger(trigger_bench.land, "* * * * *")
    trigger_bench.minute()
    begun = update(run_table).values(fence=1, not_before=trigger_bench.clock() + timedelta(hours=1))
    trigger_bench.database.write(lambda connection: connection.execute(begun).rowcount)
    for _ in range(3):
        trigger_bench.minute()
    assert trigger_bench.states() == ["queued", "queued", "skipped", "skipped"]


def test_a_full_queue_is_not_joined_by_the_runs_of_many_triggers(
    trigger_bench: TriggerBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headgate.pipelines.runs.start.MOST_WAITING", 2)
    triggers = [trigger_bench.trigger(trigger_bench.land, "* * * * *") for _ in range(3)]
    trigger_bench.minute()
    assert sorted(trigger_bench.states()) == ["queued", "queued", "skipped"]
    [left_out] = [run for run in trigger_bench.runs() if run["state"] == "skipped"]
    assert "already queued" in left_out["error"]
    assert all(trigger_bench.shown(one)["enabled"] for one in triggers)
    trigger_bench.end()
    trigger_bench.minute()
    assert trigger_bench.states().count("queued") == 2


def test_one_that_cannot_start_as_it_stands_is_left_out_and_says_why(trigger_bench: TriggerBench) -> None:
    unresolved = update(pipeline_definition_table).values(unresolved="raw.nowhere does not exist")
    trigger_bench.database.write(lambda connection: connection.execute(unresolved).rowcount)
    trigger = trigger_bench.trigger(trigger_bench.land, "* * * * *")
    trigger_bench.minute()
    [run] = trigger_bench.runs()
    assert (run["state"], run["error_code"]) == ("skipped", "SKIPPED")
    assert "raw.nowhere" in run["error"]
    assert trigger_bench.shown(trigger)["enabled"]


# Catching up


@pytest.mark.parametrize(
    ("catch_up", "expected"),
    [("skip", ["skipped"]), ("latest", ["queued"]), ("all", ["queued"] * 5)],
)
def test_what_was_missed_is_caught_up_as_wanted(
    trigger_bench: TriggerBench, catch_up: str, expected: list[str]
) -> None:
    trigger = trigger_bench.trigger(trigger_bench.land, {"kind": "cron", "cron": "0 * * * *", "catch_up": catch_up})
    first = iso(trigger_bench.shown(trigger)["next"][0])
    trigger_bench.clock.set(first + timedelta(hours=4, minutes=10))
    for _ in range(8):
        trigger_bench.round()
    assert trigger_bench.states() == expected
    dues = [run["due_at"] for run in trigger_bench.runs()]
    last = first + timedelta(hours=4)
    assert dues == ([last] if catch_up != "all" else [first + timedelta(hours=n) for n in range(5)])
    assert trigger_bench.row(trigger)["next_at"] == last + timedelta(hours=1)
    trigger_bench.clock.set(last + timedelta(hours=1, seconds=1))
    trigger_bench.end()
    trigger_bench.round()
    assert trigger_bench.states()[-1] == "queued"


def test_a_fire_that_is_a_little_late_was_not_missed(trigger_bench: TriggerBench) -> None:
    trigger = trigger_bench.trigger(trigger_bench.land, {"kind": "cron", "cron": "0 * * * *", "catch_up": "skip"})
    trigger_bench.clock.set(iso(trigger_bench.shown(trigger)["next"][0]) + timedelta(seconds=50))
    trigger_bench.round()
    assert trigger_bench.states() == ["queued"]


def test_catching_up_all_has_an_end(yard_on_sqlite: TriggerBench) -> None:
    trigger_bench = yard_on_sqlite
    trigger = trigger_bench.trigger(trigger_bench.land, {"kind": "cron", "cron": "* * * * *", "catch_up": "all"})
    trigger_bench.clock.advance(days=400)
    for _ in range(MOST_CAUGHT_UP + 20):
        trigger_bench.round()
    assert trigger_bench.states() == ["queued"] * MOST_CAUGHT_UP
    assert trigger_bench.row(trigger)["next_at"] > trigger_bench.clock()
    trigger_bench.minute()
    assert trigger_bench.states()[-1] == "skipped"


# Judgment


def _blocked(trigger_bench: TriggerBench, trigger: str) -> str:
    """Fire, and say why it was blocked."""
    trigger_bench.minute()
    [run] = trigger_bench.runs()
    row = trigger_bench.row(trigger)
    assert (run["state"], run["error_code"], run["trigger_id"]) == ("blocked", "BLOCKED", trigger)
    assert (row["enabled"], row["next_at"], row["paused_because"]) == (False, None, run["error"])
    trigger_bench.clock.advance(minutes=5)
    trigger_bench.round()
    assert len(trigger_bench.runs()) == 1
    return str(run["error"])


def _drop_grants(trigger_bench: TriggerBench, member: str) -> None:
    gone = grant_table.delete().where(grant_table.c.grantee_id == trigger_bench.company.id("member", member))
    trigger_bench.database.write(lambda connection: connection.execute(gone).rowcount)


def test_the_author_must_have_the_right_at_each_fire(trigger_bench: TriggerBench) -> None:
    trigger = trigger_bench.trigger(trigger_bench.land, "* * * * *", by="Tom")
    trigger_bench.minute()
    assert trigger_bench.states() == ["queued"]
    trigger_bench.database.write(lambda connection: connection.execute(run_table.delete()).rowcount)
    _drop_grants(trigger_bench, "Tom")
    assert _blocked(trigger_bench, trigger).startswith(
        "The trigger's author may no longer start this pipeline; a member who"
    )


def test_an_author_who_left_blocks_it(trigger_bench: TriggerBench) -> None:
    trigger = trigger_bench.trigger(trigger_bench.land, "* * * * *", by="Tom")
    trigger_bench.as_("Olga").change(change="remove_member", member="Tom").raise_for_status()
    assert _blocked(trigger_bench, trigger).startswith("The trigger's author is no longer a member")
    assert trigger_bench.shown(trigger, "Adam")["author"] is None


def test_whom_it_acts_for_must_have_the_rights_at_each_fire(trigger_bench: TriggerBench) -> None:
    trigger = trigger_bench.trigger(trigger_bench.refine, "* * * * *", by="Adam")
    _drop_grants(trigger_bench, "Tess")
    assert trigger_bench.shown(trigger, "Adam")["blocked_by"]
    assert _blocked(trigger_bench, trigger).startswith("Whom this pipeline acts for may not read all that it reads")


def test_a_trigger_of_a_task_is_judged_by_the_rules_of_tasks(trigger_bench: TriggerBench) -> None:
    trigger = trigger_bench.trigger(trigger_bench.task, "* * * * *", by="Tom")
    assert trigger_bench.shown(trigger, "Tom")["blocked_by"] == []
    trigger_bench.minute()
    assert trigger_bench.states() == ["queued"]
    trigger_bench.database.write(lambda connection: connection.execute(run_table.delete()).rowcount)
    _drop_grants(trigger_bench, "Tom")
    assert _blocked(trigger_bench, trigger).startswith("The trigger's author may no longer start")


def _told(trigger_bench: TriggerBench) -> dict[str, Any]:
    """What the one notice tells of the run."""
    [(facts,)] = trigger_bench.company.rows("SELECT facts FROM notices")
    return dict(json.loads(facts) if isinstance(facts, str) else facts)


def test_those_who_could_take_it_over_are_told_and_nobody_else(trigger_bench: TriggerBench) -> None:
    trigger = trigger_bench.trigger(trigger_bench.land, "* * * * *", by="Tom")
    _drop_grants(trigger_bench, "Tom")
    _blocked(trigger_bench, trigger)
    [(notice, event)] = trigger_bench.company.rows("SELECT id, event FROM notices")
    assert event == "run.blocked"
    assert (_told(trigger_bench)["state"], _told(trigger_bench)["code"]) == ("blocked", "BLOCKED")
    trigger_bench.database.write(
        lambda connection: dispatch_one(connection, notice, now(), webhooks.enqueue, by_mail=False)
    )
    told = "SELECT m.name FROM notifications n JOIN members m ON m.id = n.member_id ORDER BY m.name"
    assert [row[0] for row in trigger_bench.company.rows(told)] == ["Adam", "Olga", "Tess"]
    [item] = trigger_bench.as_("Tess").get("/api/notifications").json()["items"]
    assert item["sentence"] == "A run of the pipeline Land payments was blocked, and its trigger is paused"
    denied = "SELECT action, resource_id FROM audit_events WHERE event = 'access.denied'"
    assert ("fire", trigger) in trigger_bench.company.rows(denied)


def test_who_lost_the_right_meanwhile_is_not_told(trigger_bench: TriggerBench) -> None:
    trigger = trigger_bench.trigger(trigger_bench.task, "* * * * *", by="Tom")
    _drop_grants(trigger_bench, "Tess")
    _blocked(trigger_bench, trigger)
    change = {"change": "take_space_role", "space": "Sales data", "to": "Tom", "space_role": "can_edit"}
    answer = trigger_bench.as_("Olga").change(**change)
    assert answer.status_code == 200, answer.text
    [(notice,)] = trigger_bench.company.rows("SELECT id FROM notices WHERE event = 'run.blocked'")
    trigger_bench.database.write(
        lambda connection: dispatch_one(connection, notice, now(), webhooks.enqueue, by_mail=False)
    )
    told = "SELECT m.name FROM notifications n JOIN members m ON m.id = n.member_id ORDER BY m.name"
    assert [row[0] for row in trigger_bench.company.rows(told)] == ["Adam", "Olga", "Tess"]


@pytest.mark.parametrize("how", ["resume", "save"])
def test_whoever_takes_it_over_is_its_author(trigger_bench: TriggerBench, how: str) -> None:
    trigger = trigger_bench.trigger(trigger_bench.land, "* * * * *", by="Tom")
    _drop_grants(trigger_bench, "Tom")
    _blocked(trigger_bench, trigger)
    tess = trigger_bench.as_("Tess")
    taken = (
        tess.post(f"/api/triggers/{trigger}/resume", {})
        if how == "resume"
        else tess.request("PATCH", f"/api/triggers/{trigger}", json={})
    )
    assert taken.status_code == 200, taken.text
    assert (taken.json()["author"]["name"], taken.json()["enabled"]) == ("Tess", True)
    assert (taken.json()["paused_because"], taken.json()["blocked_by"]) == (None, [])
    trigger_bench.minute()
    assert trigger_bench.states() == ["blocked", "queued"]


def test_a_chain_without_an_end_is_ended(trigger_bench: TriggerBench) -> None:
    trigger_bench.trigger(trigger_bench.refine, {"kind": "pipelines", "pipelines": [trigger_bench.land]})
    trigger_bench.succeed(trigger_bench.land, depth=MAX_DEPTH - 1)
    trigger_bench.round()
    assert [(run["state"], run["depth"]) for run in trigger_bench.runs()] == [("queued", MAX_DEPTH)]
    trigger_bench.end()
    trigger_bench.clock.advance(seconds=1)
    trigger_bench.succeed(trigger_bench.land, depth=MAX_DEPTH)
    trigger_bench.round()
    assert trigger_bench.states() == ["succeeded", "blocked"]
    assert "an endless loop" in trigger_bench.runs()[-1]["error"]
    assert "like an endless loop" in str(reason("run.blocked", _told(trigger_bench)))


def test_a_fault_of_ours_pauses_one_and_holds_up_no_other(trigger_bench: TriggerBench) -> None:
    broken, sound = (
        trigger_bench.trigger(trigger_bench.land, "* * * * *"),
        trigger_bench.trigger(trigger_bench.refine, "* * * * *"),
    )
    spec = {"when": {"kind": "cron", "cron": "* * * * *", "time_zone": "Europe/Atlantis"}}
    spoil = update(trigger_table).where(trigger_table.c.id == broken).values(spec=spec)
    trigger_bench.database.write(lambda connection: connection.execute(spoil).rowcount)
    trigger_bench.minute()
    assert [run["trigger_id"] for run in trigger_bench.runs()] == [sound]
    assert "save the trigger again" in trigger_bench.row(broken)["paused_because"]


def test_a_full_disk_pauses_no_trigger(trigger_bench: TriggerBench, monkeypatch: pytest.MonkeyPatch) -> None:
    triggers = [trigger_bench.trigger(trigger_bench.land, "* * * * *") for _ in range(2)]

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(scheduling, "fire", full)
        with pytest.raises(OSError, match="No space left"):
            trigger_bench.minute()
    assert [trigger_bench.row(one)["enabled"] for one in triggers] == [True, True]
    trigger_bench.round()
    assert len(trigger_bench.runs()) == 2
