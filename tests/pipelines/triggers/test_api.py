"""Triggers over HTTP: who makes, sees and changes them, what is shown of them, and what is refused."""

import json
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest

from headgate.kit.clock import now
from headgate.pipelines.triggers.service import MOST
from tests.pipelines.triggers.support import Yard, iso

HOURLY = {"kind": "cron", "cron": "0 * * * *"}


def made(yard: Yard, member: str, pipeline: str | None = None, **body: Any) -> Any:
    path = f"/api/pipelines/{pipeline or yard.land}/triggers"
    return yard.as_(member).post(path, {"name": "Every hour", "when": HOURLY, **body})


def patched(yard: Yard, member: str, trigger: str, **body: Any) -> Any:
    return yard.as_(member).request("PATCH", f"/api/triggers/{trigger}", json=body)


def test_what_is_saved_is_shown(yard: Yard) -> None:
    when = {"kind": "cron", "cron": "30 6 * * 1-5", "time_zone": "Europe/Berlin", "catch_up": "all"}
    parameters = {"days": 3, "name": "ö", "share": 0.5, "dry": False, "none": None}
    answer = made(yard, "Tess", when=when, full_refresh=True, parameters=parameters)
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
    assert yard.as_("Tess").get(f"/api/triggers/{found['id']}").json() == found
    [item] = [
        one
        for one in yard.as_("Tess").get(f"/api/pipelines/{yard.land}/triggers").json()["items"]
        if one["id"] == found["id"]
    ]
    assert item == {name: value for name, value in found.items() if name != "blocked_by"}


def test_a_trigger_is_seen_with_its_pipeline_and_managed_by_its_editors(yard: Yard) -> None:
    trigger = made(yard, "Tom").json()["id"]
    path = f"/api/triggers/{trigger}"
    assert [yard.as_(who).get(path).status_code for who in ("Tess", "Tom", "Adam", "Ana", "Ben")] == [200] * 3 + [
        404
    ] * 2
    assert made(yard, "Ana").status_code == 404
    viewer = {"change": "grant", "resource": "table:raw.payments", "to": "Bea", "level": "viewer"}
    yard.as_("Olga").change(**viewer).raise_for_status()
    assert yard.as_("Bea").get(path).json()["allowed"] == ["see"]
    refused = patched(yard, "Bea", trigger, name="mine")
    assert (refused.status_code, bool(refused.json()["ways"])) == (403, True)
    for what in ("pause", "resume"):
        assert yard.as_("Bea").post(f"{path}/{what}", {}).status_code == 403
    assert yard.as_("Bea").request("DELETE", path).status_code == 403
    assert made(yard, "Bea", name="hers").status_code == 403
    assert yard.as_("Tess").request("DELETE", path).json() == {"id": trigger, "name": "Every hour"}
    assert yard.as_("Tess").get(path).status_code == 404


def test_a_trigger_of_a_task_follows_the_space(yard: Yard) -> None:
    trigger = made(yard, "Tom", yard.task).json()["id"]
    path = f"/api/triggers/{trigger}"
    found = {who: yard.as_(who).get(path).status_code for who in ("Tom", "Bea", "Ana", "Dora", "Adam")}
    assert found == {"Tom": 200, "Bea": 200, "Ana": 200, "Dora": 200, "Adam": 200}
    assert made(yard, "Ana", yard.task, name="hers").status_code == 403
    assert patched(yard, "Bea", trigger, name="hers").status_code == 403
    # Can edit is enough to schedule; what else a fire needs is judged when it fires, and said before.
    bea = {"change": "give_space_role", "space": "Sales data", "to": "Bea", "space_role": "can_edit"}
    yard.as_("Olga").change(**bea).raise_for_status()
    taken = patched(yard, "Bea", trigger, name="hers").json()
    assert taken["author"]["name"] == "Bea"
    assert taken["blocked_by"]
    assert not any("raw.orders" in one for one in taken["blocked_by"])


def test_whoever_saves_it_last_is_its_author(yard: Yard) -> None:
    trigger = made(yard, "Tom").json()["id"]
    assert yard.shown(trigger)["author"]["name"] == "Tom"
    assert patched(yard, "Tess", trigger, name="Hours").json()["author"]["name"] == "Tess"
    assert yard.as_("Tom").post(f"/api/triggers/{trigger}/pause", {}).json()["author"]["name"] == "Tess"
    assert yard.as_("Tom").post(f"/api/triggers/{trigger}/resume", {}).json()["author"]["name"] == "Tom"


def test_a_change_keeps_what_it_leaves_out(yard: Yard) -> None:
    trigger = made(yard, "Tess", parameters={"a": 1}).json()["id"]
    before = yard.row(trigger)
    found = patched(yard, "Tess", trigger, full_refresh=True).json()
    assert (found["full_refresh"], found["parameters"], found["when"]["cron"]) == (True, {"a": 1}, "0 * * * *")
    assert yard.row(trigger)["next_at"] == before["next_at"]
    found = patched(yard, "Tess", trigger, when={"kind": "tables", "tables": ["RAW.orders"]}).json()
    assert [one["name"] for one in found["when"]["sources"]] == ["raw.orders"]
    assert (found["next"], yard.row(trigger)["next_at"]) == ([], None)


def test_pausing_and_resuming(yard: Yard) -> None:
    trigger, tess = made(yard, "Tess").json()["id"], yard.as_("Tess")
    path = f"/api/triggers/{trigger}"
    assert tess.post(f"{path}/resume", {}).status_code == 409
    paused = tess.post(f"{path}/pause", {}).json()
    assert (paused["enabled"], paused["next"]) == (False, [])
    assert tess.post(f"{path}/pause", {}).status_code == 409
    assert patched(yard, "Tess", trigger, name="Still off").json()["enabled"] is False
    assert yard.row(trigger)["next_at"] is None
    resumed = tess.post(f"{path}/resume", {}).json()
    assert (resumed["enabled"], len(resumed["next"])) == (True, 5)
    assert yard.row(trigger)["next_at"] == iso(resumed["next"][0])


def test_every_change_is_in_the_audit_log(yard: Yard) -> None:
    trigger = made(yard, "Tess").json()["id"]
    patched(yard, "Tess", trigger, name="x")
    for what in ("pause", "resume"):
        yard.as_("Tess").post(f"/api/triggers/{trigger}/{what}", {})
    yard.as_("Tess").request("DELETE", f"/api/triggers/{trigger}")
    items = yard.as_("Olga").get("/api/audit", limit=50).json()["items"]
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
def test_bad_bodies_say_what_to_do(yard_on_sqlite: Yard, body: dict[str, Any], says: str) -> None:
    answer = yard_on_sqlite.as_("Tess").request(
        "POST",
        f"/api/pipelines/{yard_on_sqlite.land}/triggers",
        content=json.dumps({"name": "n", "when": HOURLY, **body}),
        headers={"content-type": "application/json"},
    )
    assert answer.status_code == 422, answer.text
    assert says in answer.text


def test_what_is_hidden_and_what_is_missing_are_refused_alike(yard: Yard) -> None:
    answers = []
    for source in (yard.refine, f"pip_{'0' * 20}"):
        when = {"kind": "pipelines", "pipelines": [source]}
        answer = made(yard, "Tom", when=when)
        answers.append((answer.status_code, answer.json()["detail"].replace(source, "it")))
    for table in ("trusted.orders", "trusted.nothing"):
        answer = made(yard, "Tom", when={"kind": "tables", "tables": [table]})
        answers.append((answer.status_code, answer.json()["detail"].replace(table, "it")))
    assert answers[0] == answers[1]
    assert answers[2] == answers[3]


def test_what_one_may_not_see_of_a_trigger_is_counted(yard: Yard) -> None:
    trigger = yard.trigger(yard.land, {"kind": "tables", "tables": ["service.revenue", "raw.orders"]})
    when = yard.shown(trigger, "Tom")["when"]
    assert ([one["name"] for one in when["sources"]], when["hidden"]) == (["raw.orders"], 1)
    # Whoever saves it would be its author: they must see all that it waits for.
    assert patched(yard, "Tom", trigger, name="mine").status_code == 422


def test_names_are_of_one_pipeline(yard: Yard) -> None:
    assert made(yard, "Tess").status_code == 200
    again = made(yard, "Tess", name="EVERY  hour".replace("  ", " "))
    assert (again.status_code, "already" in again.json()["detail"]) == (409, True)
    other = made(yard, "Tess", yard.refine)
    assert other.status_code == 200
    second = made(yard, "Tess", name="Another").json()["id"]
    assert patched(yard, "Tess", second, name="Every hour").status_code == 409


def test_a_pipeline_has_a_bounded_number_of_triggers(yard_on_sqlite: Yard) -> None:
    found = [made(yard_on_sqlite, "Tess", name=str(n)).status_code for n in range(MOST + 1)]
    assert found.count(200) == MOST - 1
    assert found[-1] == 409


def test_one_that_was_never_saved_here_is_shown_and_can_be_saved(yard: Yard) -> None:
    trigger = yard.company.id("pipeline_trigger", "Hourly")
    shown = yard.shown(trigger)
    assert (shown["when"], shown["next"], shown["author"]["name"]) == (None, [], "Tess")
    assert patched(yard, "Tess", trigger, name="x").status_code == 422
    assert yard.as_("Tess").post(f"/api/triggers/{trigger}/pause", {}).status_code == 200
    assert yard.as_("Tess").post(f"/api/triggers/{trigger}/resume", {}).status_code == 409
    assert patched(yard, "Tess", trigger, when=HOURLY).json()["when"]["cron"] == "0 * * * *"


# Before saving


def test_a_schedule_can_be_tried(yard_on_sqlite: Yard) -> None:
    tried = yard_on_sqlite.as_("Bea").post("/api/triggers/preview", {"cron": "0 6 * * *", "time_zone": "Asia/Tokyo"})
    assert tried.status_code == 200
    nexts = [iso(one) for one in tried.json()["next"]]
    assert tried.json()["says"] == "At 06:00 every day"
    assert [one.hour for one in nexts] == [21] * 5
    assert all(two - one == timedelta(days=1) for one, two in pairwise(nexts))
    refused = yard_on_sqlite.as_("Bea").post("/api/triggers/preview", {"cron": "0 0 31 4 *"})
    assert (refused.status_code, "never matches" in refused.text) == (422, True)


def test_a_narrowed_token_is_held_to_its_limits(yard: Yard) -> None:
    trigger = made(yard, "Tess").json()["id"]
    reader = yard.as_("Tess", read_only=True)
    assert reader.get(f"/api/triggers/{trigger}").json()["allowed"] == ["see"]
    assert reader.request("PATCH", f"/api/triggers/{trigger}", json={"name": "x"}).status_code == 403
    assert reader.post(f"/api/pipelines/{yard.land}/triggers", {"name": "x", "when": HOURLY}).status_code == 403
    listed = yard.as_("Tess", only=[yard.company.id("table", "raw.orders")])
    assert listed.get(f"/api/triggers/{trigger}").status_code == 404
    assert listed.get(f"/api/pipelines/{yard.land}/triggers").status_code == 404
