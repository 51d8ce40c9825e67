"""Asking: who may ask for what, what stops them, who is told, and who sees the request."""

import json
import threading
from datetime import UTC, datetime
from typing import Any

import pytest

from headgate.kit.errors import NotFound
from headgate.kit.ids import new_id
from headgate.organization.sessions import throttle
from tests.organization.access_requests.conftest import PLACE, Asking
from tests.support.company import Company


def without_id(answer: Any) -> Any:
    return answer.status_code, answer.json() | {"request_id": 0}


def test_a_request_is_kept_recorded_and_shown_to_its_maker(asking: Asking) -> None:
    answer = asking.ask("Bea", "edit", "table:service.revenue", "  I mend the rates  ")
    assert answer.status_code == 200, answer.text
    made = answer.json()
    table = asking.company.id("table", "service.revenue")
    assert (made["state"], made["action"], made["kind"], made["resource"]) == ("open", "edit", "table", table)
    assert (made["name"], made["reason"], made["member"]["name"]) == ("service.revenue", "I mend the rates", "Bea")
    assert made["answered_at"] is made["answered_by"] is made["comment"] is made["change"] is None
    shown = asking.show("Bea", made["id"]).json()
    assert (shown.pop("proposals"), shown.pop("obstacle")) == ([], None)
    assert shown == made
    told = asking.events("access.requested")
    assert len(told) == 1
    assert told[0]["actor"] == told[0]["after"]["member"] == asking.company.id("member", "Bea")
    assert (told[0]["action"], told[0]["resource"], told[0]["allowed"]) == ("edit", table, True)
    assert told[0]["after"]["request"] == made["id"]
    assert told[0]["request_id"] == answer.headers["x-request-id"]


@pytest.mark.parametrize(
    ("who", "action", "resource", "expected"),
    [
        ("Bea", "edit", "table:service.revenue", {"Adam", "Olga", "Tess"}),
        ("Tom", "delete", "table:raw.orders", {"Adam", "Olga"}),
        ("Ana", "edit", "data_mart:Revenue", {"Adam", "Olga", "Tess"}),
        ("Bea", "edit", "data_mart:Revenue", {"Adam", "Olga"}),
        ("Ana", "edit", "destination:Finance sheet", {"Adam", "Olga", "Ben"}),
        ("Bea", "run", "report:Weekly revenue", {"Adam", "Olga", "Ben", "Tess"}),
        ("Ana", "manage", "data_mart_trigger:Every night", {"Adam", "Olga", "Tess"}),
        ("Bea", "control", "pipeline:Land shop orders", {"Adam", "Olga", "Dora", "Tess"}),
        ("Dora", "update", "pipeline:Land shop orders", {"Adam", "Olga"}),
        ("Adam", "edit", "connection:Shop database", {"Olga", "Dora"}),
        ("Bea", "create_space", "organization", {"Adam", "Olga"}),
    ],
)
def test_those_who_could_give_it_are_told_and_can_see_it_and_nobody_else(
    asking: Asking, who: str, action: str, resource: str, expected: set[str]
) -> None:
    request = asking.asked(who, action, resource)
    (told,) = asking.told("request.made")
    assert told["to"] == expected
    assert told["actor"] == told["member"] == asking.company.id("member", who)
    assert told["facts"] == {"request": request, "action": action}
    assert (told["channel"], told["needs"]) == ("access", None)
    if resource != "organization":
        assert told["resource"] == asking.company.id(told["kind"], resource.partition(":")[2])
    for member in {"Olga", "Adam", "Tess", "Tom", "Ana", "Ben", "Bea", "Dora"} - {who}:
        assert (asking.show(member, request).status_code == 200) == (member in expected), member
        assert (request in asking.listed(member)) == (member in expected), member
        assert asking.listed(member, mine=True) == []
    assert asking.listed(who, mine=True) == [request]
    assert asking.listed(who) == []


def test_a_manager_who_does_not_see_the_pipeline_is_not_told_of_it(asking: Asking) -> None:
    """Tom would manage one of its tables, but sees nothing of the other."""
    for level, whom, resource in (
        ("viewer", "Ana", "layer:raw"),
        ("editor", "Ana", "table:trusted.orders"),
        ("manager", "Dora", "table:raw.orders"),
    ):
        change = {"change": "grant", "to": whom, "resource": resource, "level": level}
        asking.company.as_("Adam").change(**change).raise_for_status()
    request = asking.asked("Ana", "edit", "pipeline:Refine orders")
    assert asking.told("request.made")[0]["to"] == {"Adam", "Olga", "Tess"}
    assert asking.show("Dora", request).status_code == 404
    assert asking.proposal("Tess", request, "grant")["resource"] == asking.company.id("table", "raw.orders")


def test_what_is_hidden_cannot_be_asked_for_nor_told_from_what_is_missing(asking: Asking) -> None:
    for name in ("raw.orders", "raw.nothing", asking.company.id("table", "raw.orders"), f"tbl_{'0' * 20}"):
        answer = asking.ask("Bea", "see", name if name.startswith("tbl_") else f"table:{name}")
        told = {"type": "about:blank", "title": NotFound.title, "status": 404, "code": "not_found", "request_id": 0}
        assert without_id(answer) == (404, {**told, "detail": f"There is no table {name} that you may see"})
    assert asking.count("access_requests") == asking.count("notices") == 0


@pytest.mark.parametrize(
    ("who", "action", "resource", "status", "says"),
    [
        ("Ana", "use", "destination:Finance sheet", 409, "already"),
        ("Adam", "edit", "data_mart:Revenue", 409, "already"),
        ("Ben", "fly", "data_mart:Revenue", 422, "'fly'"),
        ("Ben", "execute", "data_mart:Revenue", 422, "'execute'"),
        ("Ben", "create", "data_mart:Revenue", 422, "'create'"),
        ("Ben", "ready", "data_mart:Revenue", 422, "'ready'"),
        ("Ben", "fire", "report_trigger:Monday morning", 422, "'fire'"),
        ("Ana", "trigger", "pipeline:Land shop orders", 422, "'trigger'"),
        ("Ben", "remove", "member:Bea", 422, "on a resource"),
        ("Ana", "delete", "saved_query:Largest orders", 422, "tables that it reads"),
        ("Adam", "delete", "saved_query:Largest orders", 404, "no saved query Largest orders"),
        ("Ben", "edit", "nonsense", 422, "kind:name"),
    ],
)
def test_what_makes_no_sense_is_refused_with_a_sentence(
    asking: Asking, who: str, action: str, resource: str, status: int, says: str
) -> None:
    answer = asking.ask(who, action, resource)
    assert answer.status_code == status, answer.text
    assert says in answer.json()["detail"]
    assert asking.count("access_requests") == asking.count("notices") == 0


@pytest.mark.parametrize("reason", ["", "   ", "x" * 2001, "half \ud800", "zero \0", None])
def test_a_reason_is_a_text_that_can_be_kept(asking_on_sqlite: Asking, reason: Any) -> None:
    body = {"action": "edit", "resource": "table:service.revenue", "reason": reason}
    api = asking_on_sqlite.company.as_("Bea")
    headers = {"content-type": "application/json"}
    answer = api.request("POST", PLACE, content=json.dumps(body), headers=headers)
    assert answer.status_code in {400, 422}, answer.text
    assert asking_on_sqlite.count("access_requests") == 0


def test_one_open_request_for_the_same(asking: Asking) -> None:
    request = asking.asked("Bea", "edit", "table:service.revenue")
    again = asking.ask("Bea", "edit", "table:service.revenue")
    assert again.status_code == 409
    assert again.json()["request"] == request
    assert request in again.json()["detail"]
    other = asking.asked("Bea", "describe", "table:service.revenue")
    assert asking.ask("Bea", "edit", "layer:service").status_code == 200
    assert asking.withdraw("Bea", request).status_code == 200
    renewed = asking.asked("Bea", "edit", "table:service.revenue")
    assert renewed not in {request, other}


def test_two_equal_requests_at_once_are_one(asking: Asking) -> None:
    answers: list[int] = []
    asking.company.token("Bea")
    barrier = threading.Barrier(4)

    def ask() -> None:
        barrier.wait()
        answers.append(asking.ask("Bea", "edit", "table:service.revenue").status_code)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == [200, 409, 409, 409]
    assert asking.count("access_requests") == asking.count("notices") == 1


def test_open_requests_of_one_member_are_limited(asking_on_sqlite: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headgate.organization.access_requests.service.MAX_OPEN", 2)
    first = asking_on_sqlite.asked("Bea", "edit", "table:service.revenue")
    asking_on_sqlite.asked("Bea", "delete", "table:service.revenue")
    refused = asking_on_sqlite.ask("Bea", "describe", "table:service.revenue")
    assert (refused.status_code, "withdraw one" in refused.json()["detail"]) == (409, True)
    asking_on_sqlite.withdraw("Bea", first).raise_for_status()
    assert asking_on_sqlite.ask("Bea", "describe", "table:service.revenue").status_code == 200


def test_a_request_that_one_may_not_see_looks_like_one_that_is_missing(asking: Asking) -> None:
    request, missing = asking.asked("Bea", "edit", "table:service.revenue"), new_id("request")
    change = {"change": "grant", "to": "Bea", "resource": "table:service.revenue", "level": "editor"}
    for who in ("Ben", "Tom", "Dora"):
        before = asking.count("audit_events WHERE event = 'access.denied'")
        for one, other in (
            (asking.show(who, request), asking.show(who, missing)),
            (asking.approve(who, request, change), asking.approve(who, missing, change)),
            (asking.decline(who, request), asking.decline(who, missing)),
            (asking.withdraw(who, request), asking.withdraw(who, missing)),
        ):
            assert without_id(one) == without_id(other)
            assert one.status_code == 404
        assert asking.count("audit_events WHERE event = 'access.denied'") == before + 8
    assert asking.state(request) == "open"
    assert asking.show("Tess", request).status_code == 200


def test_an_id_that_is_none_is_refused(asking_on_sqlite: Asking) -> None:
    for text in ("req_1", "dm_01k6x3v9c2m4n8p0q7rs", "x" * 40):
        assert asking_on_sqlite.show("Adam", text).status_code == 422


def test_nobody_asks_unless_signed_in(asking_on_sqlite: Asking) -> None:
    body = {"action": "edit", "resource": "table:service.revenue", "reason": "x"}
    assert asking_on_sqlite.company.as_(None).post(PLACE, body).status_code == 401
    assert asking_on_sqlite.company.as_(None).get(PLACE).status_code == 401


@pytest.mark.parametrize("limits", ["read_only", "only", "expires"])
def test_a_narrowed_token_asks_for_nothing_and_answers_nothing(asking: Asking, limits: str) -> None:
    table = asking.company.id("table", "service.revenue")
    limited: dict[str, dict[str, Any]] = {
        "read_only": {"read_only": True},
        "only": {"only": [table]},
        "expires": {"expires": datetime(2100, 1, 1, tzinfo=UTC)},
    }
    given = limited[limits]
    request = asking.asked("Bea", "edit", table)
    bea, adam = asking.company.as_("Bea", **given), asking.company.as_("Adam", **given)
    change = {"change": "grant", "to": "Bea", "resource": table, "level": "editor"}
    for answer in (
        bea.post(PLACE, {"action": "delete", "resource": table, "reason": "x"}),
        bea.request("POST", f"{PLACE}/{request}/withdraw"),
        adam.post(f"{PLACE}/{request}/approve", {"change": change}),
        adam.post(f"{PLACE}/{request}/decline", {"comment": "x"}),
    ):
        assert answer.status_code == 403, answer.text
        assert "narrowed token" in answer.json()["detail"]
    assert asking.count("audit_events WHERE event = 'access.denied'") == 4
    assert asking.state(request) == "open"
    assert asking.count("access_requests") == 1


def test_a_token_with_a_list_sees_own_requests_about_what_it_lists_only(asking: Asking) -> None:
    inside = asking.asked("Bea", "edit", "table:service.revenue")
    outside = asking.asked("Bea", "run", "report:Weekly revenue")
    bea = asking.company.as_("Bea", only=[asking.company.id("table", "service.revenue")])
    assert [one["id"] for one in bea.get(PLACE, mine=True).json()["items"]] == [inside]
    assert bea.get(f"{PLACE}/{inside}").status_code == 200
    assert bea.get(f"{PLACE}/{outside}").status_code == 404
    assert set(asking.listed("Bea", mine=True)) == {inside, outside}


def test_a_narrowed_token_of_an_admin_is_shown_no_proposals(asking: Asking) -> None:
    request = asking.asked("Bea", "edit", "table:service.revenue")
    assert asking.proposals("Adam", request)
    assert asking.company.as_("Adam", read_only=True).get(f"{PLACE}/{request}").status_code == 404


def test_a_resource_that_its_asker_no_longer_sees_is_not_named(asking: Asking) -> None:
    request = asking.asked("Bea", "edit", "table:service.revenue")
    revoked = {"change": "revoke", "to": "Bea", "resource": "table:service.revenue", "level": "viewer"}
    asking.company.as_("Tess").change(**revoked).raise_for_status()
    shown = asking.show("Bea", request)
    assert shown.status_code == 200
    assert shown.json()["name"] is None
    assert "service.revenue" not in shown.text
    assert asking.show("Adam", request).json()["name"] == "service.revenue"


def test_lists_go_page_by_page_with_open_ones_first(asking: Asking) -> None:
    actions = ("edit", "describe", "delete", "grant", "see_access")
    made = [asking.asked("Bea", action, "table:service.revenue") for action in actions]
    asking.asked("Ana", "edit", "data_mart:Revenue")
    for request in (made[4], made[1]):
        asking.decline("Adam", request).raise_for_status()
    expected = [made[3], made[2], made[0], made[4], made[1]]
    for limit in (1, 2, 3, 5, 50):
        assert asking.listed("Bea", mine=True, limit=limit) == expected, limit
        assert [one for one in asking.listed("Adam", limit=limit) if one in expected] == expected, limit
    first = asking.company.as_("Bea").get(PLACE, mine=True, limit=1).json()["next_cursor"]
    for cursor, mine in ((first, False), (first + "x", True), ("nonsense", True)):
        assert asking.company.as_("Bea").get(PLACE, mine=mine, cursor=cursor).status_code == 422, cursor


def test_a_short_page_can_be_followed_by_more(asking_on_sqlite: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headgate.organization.access_requests.service.MAX_EXAMINED", 2)
    mine = asking_on_sqlite.asked("Ana", "edit", "destination:Finance sheet")
    for action in ("edit", "describe", "delete"):
        asking_on_sqlite.asked("Bea", action, "table:service.revenue")
    page = asking_on_sqlite.company.as_("Ben").get(PLACE).json()
    assert page["items"] == []
    assert page["next_cursor"]
    assert asking_on_sqlite.listed("Ben") == [mine]


def test_asking_and_withdrawing_floods_nobody(millrace: Company, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(throttle, "MAILS_BY_ONE", 3)
    ben, found = millrace.as_("Ben"), []
    for _ in range(5):
        body = {"action": "edit", "resource": "data_mart:Revenue", "reason": "again"}
        answer = ben.post("/api/access/requests", body)
        found.append(answer.status_code)
        if answer.status_code == 200:
            ben.request("POST", f"/api/access/requests/{answer.json()['id']}/withdraw").raise_for_status()
    assert found == [200] * 3 + [429] * 2
    assert millrace.rows("SELECT COUNT(*) FROM notices WHERE event = 'request.made'") == [(3,)]
