"""Triggers over HTTP: who makes, sees and changes them, what is shown of them, and what is refused."""

import json
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest

from headgate.kit.clock import now
from headgate.pipelines.triggers.service import MOST
from tests.pipelines.triggers.support import TriggerBench, iso

HOURLY = {"kind": "cron", "cron": "0 * * * *"}


def made(trigger_bench: TriggerBench, member: str, pipeline: str | None = None, **body: Any) -> Any:
    path = f"/api/pipelines/{pipeline or trigger_bench.land}/triggers"
    return trigger_bench.as_(member).post(path, {"name": "Every hour", "when": HOURLY, **body})


def patched(trigger_bench: TriggerBench, member: str, trigger: str, **body: Any) -> Any:
    return trigger_bench.as_(member).request("PATCH", f"/api/triggers/{trigger}", json=body)


def test_what_is_saved_is_shown(trigger_bench: TriggerBench) -> None:
    when = {"kind": "cron", "cron": "30 6 * * 1-5", "time_zone": "Europe/Berlin", "catch_up": "all"}
    parameters = {"days": 3, "name": "ö", "share": 0.5, "dry": False, "none": None}
    answer = made(trigger_bench, "Tess", when=when, full_refresh=True, parameters=parameters)
    assert answer.status_code == 200, answer.text
    found = answer.json()
    assert found["when"] == {**when, "says": "At 06:30 on Monday through Friday"}
    assert (found["full_refresh"], found["parameters"]) == (True, parameters)
    assert (found["enabled"], found["paused_because"], found["blocked_by"], found["last"]) == (True, None, [], None)
    assert found["author"]["name"] == "Tess"
    nexts = [iso(one) for one in found["next"]]
    assert len(nexts) == 5
    assert nexts == sorted(nexts)
    assert all(one > now() and one.minute == 30 for one in nexts)
    assert set(found["allowed"]) >= {"see", "manage"}
    assert trigger_bench.as_("Tess").get(f"/api/triggers/{found['id']}").json() == found
    [item] = [
        one
        for one in trigger_bench.as_("Tess").get(f"/api/pipelines/{trigger_bench.land}/triggers").json()["items"]
        if one["id"] == found["id"]
    ]
    assert item == {name: value for name, value in found.items() if name != "blocked_by"}


def test_a_trigger_is_seen_with_its_pipeline_and_managed_by_its_editors(trigger_bench: TriggerBench) -> None:
    trigger = made(trigger_bench, "Tom").json()["id"]
    path = f"/api/triggers/{trigger}"
    assert [trigger_bench.as_(who).get(path).status_code for who in ("Tess", "Tom", "Adam", "Ana", "Ben")] == [
        200
    ] * 3 + [404] * 2
    assert made(trigger_bench, "Ana").status_code == 404
    viewer = {"change": "grant", "resource": "table:raw.payments", "to": "Bea", "level": "viewer"}
    trigger_bench.as_("Olga").change(**viewer).raise_for_status()
    assert trigger_bench.as_("Bea").get(path).json()["allowed"] == ["see"]
    refused = patched(trigger_bench, "Bea", trigger, name="mine")
    assert (refused.status_code, bool(refused.json()["ways"])) == (403, True)
    for what in ("pause", "resume"):
        assert trigger_bench.as_("Bea").post(f"{path}/{what}", {}).status_code == 403
    assert trigger_bench.as_("Bea").request("DELETE", path).status_code == 403
    assert made(trigger_bench, "Bea", name="hers").status_code == 403
    assert trigger_bench.as_("Tess").request("DELETE", path).json() == {"id": trigger, "name": "Every hour"}
    assert trigger_bench.as_("Tess").get(path).status_code == 404


def test_a_trigger_of_a_task_follows_the_space(trigger_bench: TriggerBench) -> None:
    trigger = made(trigger_bench, "Tom", trigger_bench.task).json()["id"]
    path = f"/api/triggers/{trigger}"
    found = {who: trigger_bench.as_(who).get(path).status_code for who in ("Tom", "Bea", "Ana", "Dora", "Adam")}
    assert found == {"Tom": 200, "Bea": 200, "Ana": 200, "Dora": 200, "Adam": 200}
    assert made(trigger_bench, "Ana", trigger_bench.task, name="hers").status_code == 403
    assert patched(trigger_bench, "Bea", trigger, name="hers").status_code == 403
    # Can edit is enough to schedule; what else a fire needs is judged when it fires, and said before.
    bea = {"change": "give_space_role", "space": "Sales data", "to": "Bea", "space_role": "can_edit"}
    trigger_bench.as_("Olga").change(**bea).raise_for_status()
    taken = patched(trigger_bench, "Bea", trigger, name="hers").json()
    assert taken["author"]["name"] == "Bea"
    assert taken["blocked_by"]
    assert not any("raw.orders" in one for one in taken["blocked_by"])


def test_whoever_saves_it_last_is_its_author(trigger_bench: TriggerBench) -> None:
    trigger = made(trigger_bench, "Tom").json()["id"]
    assert trigger_bench.shown(trigger)["author"]["name"] == "Tom"
    assert patched(trigger_bench, "Tess", trigger, name="Hours").json()["author"]["name"] == "Tess"
    assert trigger_bench.as_("Tom").post(f"/api/triggers/{trigger}/pause", {}).json()["author"]["name"] == "Tess"
    assert trigger_bench.as_("Tom").post(f"/api/triggers/{trigger}/resume", {}).json()["author"]["name"] == "Tom"


def test_a_change_keeps_what_it_leaves_out(trigger_bench: TriggerBench) -> None:
    trigger = made(trigger_bench, "Tess", parameters={"a": 1}).json()["id"]
    before = trigger_bench.row(trigger)
    found = patched(trigger_bench, "Tess", trigger, full_refresh=True).json()
    assert (found["full_refresh"], found["parameters"], found["when"]["cron"]) == (True, {"a": 1}, "0 * * * *")
    assert trigger_bench.row(trigger)["next_at"] == before["next_at"]
    found = patched(trigger_bench, "Tess", trigger, when={"kind": "tables", "tables": ["RAW.orders"]}).json()
    assert [one["name"] for one in found["when"]["sources"]] == ["raw.orders"]
    assert (found["next"], trigger_bench.row(trigger)["next_at"]) == ([], None)


def test_pausing_and_resuming(trigger_bench: TriggerBench) -> None:
    trigger, tess = made(trigger_bench, "Tess").json()["id"], trigger_bench.as_("Tess")
    path = f"/api/triggers/{trigger}"
    assert tess.post(f"{path}/resume", {}).status_code == 409
    paused = tess.post(f"{path}/pause", {}).json()
    assert (paused["enabled"], paused["next"]) == (False, [])
    assert tess.post(f"{path}/pause", {}).status_code == 409
    assert patched(trigger_bench, "Tess", trigger, name="Still off").json()["enabled"] is False
    assert trigger_bench.row(trigger)["next_at"] is None
    resumed = tess.post(f"{path}/resume", {}).json()
    assert (resumed["enabled"], len(resumed["next"])) == (True, 5)
    assert trigger_bench.row(trigger)["next_at"] == iso(resumed["next"][0])


def test_every_change_is_in_the_audit_log(trigger_bench: TriggerBench) -> None:
    trigger = made(trigger_bench, "Tess").json()["id"]
    patched(trigger_bench, "Tess", trigger, name="x")
    for what in ("pause", "resume"):
        trigger_bench.as_("Tess").post(f"/api/triggers/{trigger}/{what}", {})
    trigger_bench.as_("Tess").request("DELETE", f"/api/triggers/{trigger}")
    items = trigger_bench.as_("Olga").get("/api/audit", limit=50).json()["items"]
    found = [one["after"]["change"] for one in items if one["resource"] == trigger and one["after"]]
    assert sorted(found) == [f"{what}_trigger" for what in ("change", "create", "delete", "pause", "resume")]


# What is refused


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({"when": {"kind": "cron", "cron": "0 0 30 2 *"}}, "never matches"),
        ({"when": {"kind": "cron", "cron": "0 0 0 0 0"}}, "bad day-of-month"),
        ({"when": {"kind": "cron", "cron": "x" * 5000}}, "200"),
        ({"when": {"kind": "cron", "cron": "* * * * *", "time_zone": "Europe/Atlantis"}}, "time zone"),
        ({"when": {"kind": "cron", "cron": "* * * * *", "time_zone": "../../etc/passwd"}}, "time zone"),
        ({"when": {"kind": "cron", "cron": "* * * * *", "catch_up": "some"}}, "latest"),
        ({"when": {"kind": "cron"}}, "cron"),
        ({"when": {"kind": "moon"}}, "kind"),
        ({"when": {"kind": "tables", "tables": []}}, "tables"),
        ({"when": {"kind": "tables", "tables": ["orders"]}}, "has no layer"),
        ({"when": {"kind": "tables", "tables": ["raw.nowhere"]}}, "no table raw.nowhere that you may see"),
        ({"when": {"kind": "tables", "tables": [f"tbl_{'0' * 20}"]}}, "no table"),
        ({"when": {"kind": "tables", "tables": ["raw.orders"], "at_most_every": "soon"}}, "duration"),
        ({"when": {"kind": "pipelines", "pipelines": [f"pip_{'0' * 20}"]}}, "no pipeline"),
        ({"when": {"kind": "pipelines", "pipelines": ["Refine orders"]}}, "pipelines"),
        ({"name": "  "}, "name"),
        ({"name": "a\nb"}, "name"),
        ({"parameters": {"x": [1]}}, "parameters"),
        ({"parameters": {"x": 1e400}}, "a number is too large"),
        ({"parameters": {"x": "y" * 20_000}}, "parameters"),
        ({"parameters": {str(n): n for n in range(101)}}, "parameters"),
        ({"retries": 3}, "retries"),
    ],
)
def test_bad_bodies_say_what_to_do(yard_on_sqlite: TriggerBench, body: dict[str, Any], says: str) -> None:
    answer = yard_on_sqlite.as_("Tess").request(
        "POST",
        f"/api/pipelines/{yard_on_sqlite.land}/triggers",
        content=json.dumps({"name": "n", "when": HOURLY, **body}),
        headers={"content-type": "application/json"},
    )
    assert answer.status_code == 422, answer.text
    assert says in answer.text


def test_what_is_hidden_and_what_is_missing_are_refused_alike(trigger_bench: TriggerBench) -> None:
    answers = []
    for source in (trigger_bench.refine, f"pip_{'0' * 20}"):
        when = {"kind": "pipelines", "pipelines": [source]}
        answer = made(trigger_bench, "Tom", when=when)
        answers.append((answer.status_code, answer.json()["detail"].replace(source, "it")))
    for table in ("trusted.orders", "trusted.nothing"):
        answer = made(trigger_bench, "Tom", when={"kind": "tables", "tables": [table]})
        answers.append((answer.status_code, answer.json()["detail"].replace(table, "it")))
    assert answers[0] == answers[1]
    assert answers[2] == answers[3]


def test_what_one_may_not_see_of_a_trigger_is_counted(trigger_bench: TriggerBench) -> None:
    trigger = trigger_bench.trigger(trigger_bench.land, {"kind": "tables", "tables": ["service.revenue", "raw.orders"]})
    when = trigger_bench.shown(trigger, "Tom")["when"]
    assert ([one["name"] for one in when["sources"]], when["hidden"]) == (["raw.orders"], 1)
    # Whoever saves it would be its author: they must see all that it waits for.
    assert patched(trigger_bench, "Tom", trigger, name="mine").status_code == 422


def test_names_are_of_one_pipeline(trigger_bench: TriggerBench) -> None:
    assert made(trigger_bench, "Tess").status_code == 200
    again = made(trigger_bench, "Tess", name="EVERY  hour".replace("  ", " "))
    assert (again.status_code, "already" in again.json()["detail"]) == (409, True)
    other = made(trigger_bench, "Tess", trigger_bench.refine)
    assert other.status_code == 200
    second = made(trigger_bench, "Tess", name="Another").json()["id"]
    assert patched(trigger_bench, "Tess", second, name="Every hour").status_code == 409


def test_a_pipeline_has_a_bounded_number_of_triggers(yard_on_sqlite: TriggerBench) -> None:
    found = [made(yard_on_sqlite, "Tess", name=str(n)).status_code for n in range(MOST + 1)]
    assert found.count(200) == MOST - 1
    assert found[-1] == 409


def test_one_that_was_never_saved_here_is_shown_and_can_be_saved(trigger_bench: TriggerBench) -> None:
    trigger = trigger_bench.company.id("pipeline_trigger", "Hourly")
    shown = trigger_bench.shown(trigger)
    assert (shown["when"], shown["next"], shown["author"]["name"]) == (None, [], "Tess")
    assert patched(trigger_bench, "Tess", trigger, name="x").status_code == 422
    assert trigger_bench.as_("Tess").post(f"/api/triggers/{trigger}/pause", {}).status_code == 200
    assert trigger_bench.as_("Tess").post(f"/api/triggers/{trigger}/resume", {}).status_code == 409
    assert patched(trigger_bench, "Tess", trigger, when=HOURLY).json()["when"]["cron"] == "0 * * * *"


# Before saving


def test_a_schedule_can_be_tried(yard_on_sqlite: TriggerBench) -> None:
    tried = yard_on_sqlite.as_("Bea").post("/api/triggers/preview", {"cron": "0 6 * * *", "time_zone": "Asia/Tokyo"})
    assert tried.status_code == 200
    nexts = [iso(one) for one in tried.json()["next"]]
    assert tried.json()["says"] == "At 06:00 every day"
    assert [one.hour for one in nexts] == [21] * 5
    assert all(two - one == timedelta(days=1) for one, two in pairwise(nexts))
    refused = yard_on_sqlite.as_("Bea").post("/api/triggers/preview", {"cron": "0 0 31 4 *"})
    assert (refused.status_code, "never matches" in refused.text) == (422, True)


def test_a_narrowed_token_is_held_to_its_limits(trigger_bench: TriggerBench) -> None:
    trigger = made(trigger_bench, "Tess").json()["id"]
    reader = trigger_bench.as_("Tess", read_only=True)
    assert reader.get(f"/api/triggers/{trigger}").json()["allowed"] == ["see"]
    assert reader.request("PATCH", f"/api/triggers/{trigger}", json={"name": "x"}).status_code == 403
    assert (
        reader.post(f"/api/pipelines/{trigger_bench.land}/triggers", {"name": "x", "when": HOURLY}).status_code == 403
    )
    listed = trigger_bench.as_("Tess", only=[trigger_bench.company.id("table", "raw.orders")])
    assert listed.get(f"/api/triggers/{trigger}").status_code == 404
    assert listed.get(f"/api/pipelines/{trigger_bench.land}/triggers").status_code == 404
