"""Answering: approved by an ordinary change with the approver's own rights, declined with a reason, or withdrawn."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

from tests.organization.access_requests.conftest import PLACE, Asking
from tests.support.company import Company

END = "2090-01-01T00:00:00Z"


def at_once(*functions: Callable[[], Any]) -> list[Any]:
    """What functions answer that begin at the same time."""
    barrier, answers = threading.Barrier(len(functions)), [None] * len(functions)

    def run(number: int, function: Callable[[], Any]) -> None:
        barrier.wait()
        answers[number] = function()

    threads = [threading.Thread(target=run, args=pair) for pair in enumerate(functions)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


@pytest.mark.parametrize(
    ("asker", "action", "resource", "approver", "sort"),
    [
        ("Bea", "edit", "table:service.revenue", "Tess", "grant"),
        ("Bea", "edit", "layer:service", "Tess", "grant"),
        ("Ana", "edit", "data_mart:Revenue", "Tess", "share"),
        ("Ana", "delete", "data_mart:Revenue", "Tess", "add_owner"),
        ("Ana", "edit", "destination:Finance sheet", "Ben", "add_owner"),
        ("Ana", "copy_credentials", "storage:Warehouse", "Tess", "share"),
        ("Bea", "run", "report:Weekly revenue", "Ben", "add_owner"),
        ("Ana", "edit", "report:Weekly revenue", "Tess", "share"),
        ("Ana", "manage", "report_trigger:Monday morning", "Tess", "share"),
        ("Tom", "delete", "pipeline:Land payments", "Adam", "grant"),
        ("Bea", "control", "pipeline:Land shop orders", "Tess", "give_space_role"),
        ("Bea", "control", "pipeline:Land shop orders", "Adam", "join_group"),
        ("Bea", "view_data", "pipeline:Land shop orders", "Tess", "give_space_role"),
        ("Ben", "update", "space:Sales data", "Dora", "give_space_role"),
        ("Tom", "operate", "project:Shop", "Dora", "give_space_role"),
        ("Adam", "edit", "connection:Shop database", "Olga", "change_owner"),
        ("Bea", "create_space", "organization", "Adam", "give_security_role"),
        ("Tess", "manage_billing", "organization", "Olga", "set_role"),
    ],
)
def test_what_is_approved_is_the_ordinary_change(
    asking: Asking, asker: str, action: str, resource: str, approver: str, sort: str
) -> None:
    api, request = asking.company.as_(asker), asking.asked(asker, action, resource)
    assert not api.may(action, resource)
    change = asking.proposal(approver, request, sort)
    answer = asking.approve(approver, request, change, comment="Have it")
    assert answer.status_code == 200, answer.text
    assert api.may(action, resource)
    found = answer.json()
    assert (found["state"], found["comment"], found["answered_by"]["name"]) == ("approved", "Have it", approver)
    assert found["change"] == change
    assert found["answered_at"] >= found["created_at"]
    (changed,), (answered,) = asking.events("access.changed"), asking.events("access.answered")
    assert changed["after"]["change"] == sort
    assert changed["actor"] == answered["actor"] == asking.company.id("member", approver)
    assert changed["request_id"] == answered["request_id"] == answer.headers["x-request-id"]
    assert answered["via"] == changed["via"] != []
    assert answered["action"] == action
    assert answered["after"] == {
        "request": request,
        "member": asking.company.id("member", asker),
        "state": "approved",
        "comment": "Have it",
    }
    (told,) = asking.told("request.approved")
    assert told["to"] == {asker}
    assert told["actor"] == asking.company.id("member", approver)
    assert told["facts"] == {"request": request, "action": action}
    assert asking.show(asker, request).json()["proposals"] == []


def test_who_asked_learns_the_sort_of_change_and_not_what_it_names(asking: Asking) -> None:
    request = asking.asked("Bea", "control", "pipeline:Land shop orders")
    asking.approve("Adam", request, asking.proposal("Adam", request, "join_group")).raise_for_status()
    group = asking.company.id("group", "analysts")
    assert asking.show("Adam", request).json()["change"]["group"] == group
    assert asking.show("Bea", request).json()["change"] == {"change": "join_group"}
    assert group not in asking.show("Bea", request).text


def test_any_other_change_that_gives_it_will_do(asking: Asking) -> None:
    request = asking.asked("Bea", "edit", "table:service.revenue")
    change = {"change": "grant", "to": "group:All", "resource": "layer:service", "level": "editor"}
    assert asking.approve("Tess", request, change).status_code == 200
    assert asking.company.as_("Bea").may("edit", "table:service.revenue")


@pytest.mark.parametrize(
    "change",
    [
        {"change": "grant", "to": "Bea", "resource": "table:service.revenue", "level": "viewer"},
        {"change": "grant", "to": "Ben", "resource": "table:service.revenue", "level": "editor"},
        {"change": "share", "resource": "data_mart:Revenue", "for_maintenance": True},
    ],
)
def test_a_change_that_does_not_give_it_is_not_made(asking: Asking, change: dict[str, Any]) -> None:
    request = asking.asked("Bea", "edit", "table:service.revenue")
    grants, events = asking.count("grants"), asking.count("audit_events WHERE event LIKE 'access.%'")
    answer = asking.approve("Tess", request, change)
    assert answer.status_code == 409
    assert "would not give" in answer.json()["detail"]
    assert asking.count("grants") == grants
    assert asking.count("audit_events WHERE event LIKE 'access.%'") == events
    assert not asking.company.as_("Ana").may("edit", "data_mart:Revenue")
    assert asking.state(request) == "open"
    assert asking.told("request.approved") == []


def test_the_rights_of_the_approver_decide(asking: Asking) -> None:
    """Tess may give Editor, but not Manager, nor a role."""
    request = asking.asked("Bea", "edit", "table:service.revenue")
    for change in (
        {"change": "grant", "to": "Bea", "resource": "table:service.revenue", "level": "manager"},
        {"change": "set_role", "member": "Bea", "role": "admin"},
    ):
        before = asking.count("audit_events WHERE event = 'access.denied'")
        answer = asking.approve("Tess", request, change)
        assert answer.status_code == 403, answer.text
        assert asking.count("audit_events WHERE event = 'access.denied'") == before + 1
        assert asking.state(request) == "open"
    assert not asking.company.as_("Bea").may("edit", "table:service.revenue")
    hidden = {"change": "give_space_role", "space": "Tom's own", "to": "Bea", "space_role": "can_view"}
    assert asking.approve("Tess", request, hidden).status_code == 404


# Ends


def test_an_approval_can_end(asking: Asking) -> None:
    request = asking.asked("Bea", "edit", "table:service.revenue")
    (offered, *_) = asking.proposals("Tess", request)
    assert offered["takes_end"]
    answer = asking.approve("Tess", request, offered["change"], expires="2090-01-01T02:00:00+02:00")
    assert answer.status_code == 200, answer.text
    assert answer.json()["change"]["expires"] == END
    assert asking.show("Bea", request).json()["change"] == {"change": "grant", "level": "editor", "expires": END}
    bea = asking.company.id("member", "Bea")
    rows = asking.company.rows(f"SELECT expires_at FROM grants WHERE grantee_id = '{bea}' AND level = 2")
    assert str(rows[0][0]).startswith("2090-01-01 00:00:00")


@pytest.mark.parametrize(
    ("change", "expires", "says"),
    [
        ({"change": "set_role", "member": "Bea", "role": "admin"}, END, "only a grant"),
        ({"change": "grant", "to": "Bea", "resource": "table:service.revenue", "level": "editor"}, "2020-01-01T00:00:00Z", "future"),
        ({"change": "grant", "to": "Bea", "resource": "table:service.revenue", "level": "editor", "expires": "2089-01-01T00:00:00Z"}, END, "another end"),
        ({"change": "grant", "to": "Bea", "resource": "table:service.revenue", "level": "editor"}, "2090-01-01T00:00:00", "with a time zone"),
        ({"change": "fly"}, None, "fly"),
    ],
)  # fmt: skip
def test_an_end_that_makes_no_sense_is_refused(
    asking: Asking, change: dict[str, Any], expires: str | None, says: str
) -> None:
    request = asking.asked("Bea", "edit", "table:service.revenue")
    answer = asking.approve("Adam", request, change, expires=expires)
    assert answer.status_code == 422, answer.text
    assert says in answer.json()["detail"]
    assert asking.state(request) == "open"
    assert not asking.company.as_("Bea").may("edit", "table:service.revenue")


def test_a_manager_for_a_time_is_offered_a_grant_for_that_time(asking: Asking) -> None:
    change = {"change": "grant", "to": "Tom", "resource": "table:service.revenue", "level": "manager", "expires": END}
    asking.company.as_("Adam").change(**change).raise_for_status()
    request = asking.asked("Bea", "edit", "table:service.revenue")
    assert "Tom" in asking.told("request.made")[0]["to"]
    (offered,) = asking.proposals("Tom", request)
    assert offered["change"]["expires"] == END
    assert offered["sentence"].endswith(f"until {END}")
    endless = {key: value for key, value in offered["change"].items() if key != "expires"}
    assert asking.approve("Tom", request, endless).status_code == 403
    assert asking.approve("Tom", request, offered["change"]).status_code == 200
    assert asking.company.as_("Bea").may("edit", "table:service.revenue")


# Declined, withdrawn, answered


def test_declining_says_why_and_changes_nothing(asking: Asking) -> None:
    request = asking.asked("Ana", "edit", "destination:Finance sheet")
    assert asking.company.as_("Ben").post(f"{PLACE}/{request}/decline", {}).status_code == 422
    assert asking.decline("Ben", request, "   ").status_code == 422
    answer = asking.decline("Ben", request, "Use your own")
    assert answer.status_code == 200
    shown = asking.show("Ana", request).json()
    assert (shown["state"], shown["comment"], shown["answered_by"]["name"]) == ("declined", "Use your own", "Ben")
    assert not asking.company.as_("Ana").may("edit", "destination:Finance sheet")
    assert asking.told("request.declined")[0]["to"] == {"Ana"}
    (event,) = asking.events("access.answered")
    assert (event["after"]["state"], event["after"]["comment"]) == ("declined", "Use your own")
    assert asking.events("access.changed") == []


def test_only_who_asked_withdraws(asking: Asking) -> None:
    request = asking.asked("Ana", "edit", "destination:Finance sheet")
    for who in ("Ben", "Adam"):
        assert asking.withdraw(who, request).status_code == 403
    assert asking.withdraw("Tom", request).status_code == 404
    assert asking.state(request) == "open"
    assert asking.withdraw("Ana", request).status_code == 200
    assert asking.state(request) == "withdrawn"
    assert asking.events("access.answered")[0]["after"]["state"] == "withdrawn"
    assert {one["event"] for one in asking.events("access.answered")} == {"access.answered"}
    assert asking.count("notices") == 1


@pytest.mark.parametrize("end", ["approved", "declined", "withdrawn"])
def test_an_answered_request_is_answered_no_more(asking: Asking, end: str) -> None:
    request = asking.asked("Bea", "edit", "table:service.revenue")
    change = asking.proposal("Tess", request, "grant")
    {
        "approved": lambda: asking.approve("Adam", request, change),
        "declined": lambda: asking.decline("Adam", request),
        "withdrawn": lambda: asking.withdraw("Bea", request),
    }[end]().raise_for_status()
    events = asking.count("audit_events WHERE event LIKE 'access.%'")
    for answer in (
        asking.approve("Tess", request, change),
        asking.approve("Adam", request, change),
        asking.decline("Tess", request),
        asking.withdraw("Bea", request),
    ):
        assert answer.status_code == 409, answer.text
        assert end in answer.json()["detail"]
    assert asking.count("audit_events WHERE event LIKE 'access.%'") == events
    assert asking.state(request) == end
    for who in ("Adam", "Tess", "Bea"):
        assert asking.show(who, request).json()["proposals"] == []


def test_nobody_answers_their_own_request(asking: Asking) -> None:
    """Dora manages the members of every space, and could give herself the role; but then not by her own approval."""
    request = asking.asked("Dora", "update", "project:Shop")
    change = {"change": "give_space_role", "space": "Sales data", "to": "Dora", "space_role": "can_edit"}
    for answer in (asking.approve("Dora", request, change), asking.decline("Dora", request)):
        assert answer.status_code == 403
        assert "somebody else" in answer.json()["detail"]
    assert asking.state(request) == "open"
    assert "Dora" not in asking.told("request.made")[0]["to"]
    assert asking.approve("Tess", request, change).status_code == 200


# Two at once


def test_of_two_approvals_at_once_one_wins(asking: Asking) -> None:
    for action in ("edit", "describe", "delete"):
        request = asking.asked("Bea", action, "table:service.revenue")
        changes = {who: asking.proposal(who, request, "grant") for who in ("Adam", "Olga")}
        before = asking.count("audit_events WHERE event = 'access.changed'")
        answers = at_once(
            lambda request=request, changes=changes: asking.approve("Adam", request, changes["Adam"]).status_code,
            lambda request=request, changes=changes: asking.approve("Olga", request, changes["Olga"]).status_code,
        )
        assert sorted(answers) == [200, 409]
        assert asking.count("audit_events WHERE event = 'access.changed'") == before + 1
        revoke = {
            "change": "revoke",
            "to": "Bea",
            "resource": "table:service.revenue",
            "level": changes["Adam"]["level"],
        }
        asking.company.as_("Adam").change(**revoke).raise_for_status()
    assert len(asking.told("request.approved")) == 3


def test_of_an_approval_by_an_admin_and_one_by_a_manager_one_wins(asking: Asking) -> None:
    request = asking.asked("Bea", "edit", "table:service.revenue")
    change = asking.proposal("Tess", request, "grant")
    asking.company.token("Adam")
    answers = at_once(
        lambda: asking.approve("Adam", request, change).status_code,
        lambda: asking.approve("Tess", request, change).status_code,
    )
    assert sorted(answers) == [200, 409]


def test_an_approval_and_a_withdrawal_at_once_leave_one_answer(asking: Asking) -> None:
    request = asking.asked("Bea", "edit", "table:service.revenue")
    change = asking.proposal("Tess", request, "grant")
    approved, withdrawn = at_once(
        lambda: asking.approve("Tess", request, change).status_code,
        lambda: asking.withdraw("Bea", request).status_code,
    )
    assert sorted((approved, withdrawn)) == [200, 409]
    assert asking.state(request) == ("approved" if approved == 200 else "withdrawn")
    assert asking.company.as_("Bea").may("edit", "table:service.revenue") == (approved == 200)


# What has changed since


def test_who_has_it_by_now_needs_no_approval(asking: Asking) -> None:
    request = asking.asked("Bea", "edit", "table:service.revenue")
    change = asking.proposal("Tess", request, "grant")
    asking.company.as_("Tess").change(**change).raise_for_status()
    grants = asking.count("grants")
    for who in ("Tess", "Adam"):
        answer = asking.approve(who, request, {**change, "resource": "layer:service"})
        assert answer.status_code == 409
        assert "Bea can do this by now" in answer.json()["detail"]
        shown = asking.show(who, request).json()
        assert (shown["obstacle"], shown["proposals"]) == ("Bea can do this by now", [])
    assert asking.count("grants") == grants
    assert asking.withdraw("Bea", request).status_code == 200


def test_a_request_of_a_removed_member_can_only_be_declined(asking: Asking) -> None:
    request = asking.asked("Bea", "edit", "table:service.revenue")
    change = {"change": "grant", "to": "group:All", "resource": "table:service.revenue", "level": "editor"}
    asking.company.as_("Olga").change(change="remove_member", member="Bea").raise_for_status()
    for who in ("Tess", "Adam"):
        answer = asking.approve(who, request, change)
        assert answer.status_code == 409, answer.text
        assert "no longer a member" in answer.json()["detail"]
        shown = asking.show(who, request).json()
        assert "no longer a member" in shown["obstacle"]
        assert (shown["member"], shown["proposals"]) == (None, [])
    assert asking.show("Ben", request).status_code == 404
    assert asking.decline("Tess", request).status_code == 200
    assert asking.told("request.declined") == []
    assert not asking.company.as_("Ana").may("edit", "table:service.revenue")


def test_an_approver_who_was_removed_is_not_named(asking: Asking) -> None:
    request = asking.asked("Bea", "edit", "table:service.revenue")
    asking.approve("Tess", request, asking.proposal("Tess", request, "grant")).raise_for_status()
    asking.company.as_("Olga").change(change="remove_member", member="Tess").raise_for_status()
    assert asking.show("Bea", request).json()["answered_by"] is None


def test_who_lost_the_right_no_longer_sees_nor_answers(asking: Asking) -> None:
    request = asking.asked("Bea", "edit", "table:service.revenue")
    change = asking.proposal("Tess", request, "grant")
    revoke = {"change": "revoke", "to": "Tess", "resource": "layer:service", "level": "manager"}
    asking.company.as_("Adam").change(**revoke).raise_for_status()
    assert asking.show("Tess", request).status_code == 404
    assert asking.approve("Tess", request, change).status_code == 404
    assert asking.decline("Tess", request).status_code == 404
    assert request not in asking.listed("Tess")
    assert asking.state(request) == "open"


def test_who_answered_still_sees_the_request_without_the_right(asking: Asking) -> None:
    request = asking.asked("Bea", "edit", "table:service.revenue")
    asking.approve("Tess", request, asking.proposal("Tess", request, "grant")).raise_for_status()
    for change in (
        {"change": "revoke", "to": "Tess", "resource": "layer:service", "level": "manager"},
        {"change": "grant", "to": "Tess", "resource": "layer:service", "level": "viewer"},
        {"change": "grant", "to": "Tom", "resource": "layer:service", "level": "viewer"},
    ):
        asking.company.as_("Adam").change(**change).raise_for_status()
    assert asking.show("Tess", request).json()["change"]["change"] == "grant"
    assert asking.show("Tom", request).status_code == 404


def test_who_did_not_answer_learns_no_role_of_the_requester(millrace: Company) -> None:
    made = (
        millrace.as_("Bea")
        .post("/api/access/requests", {"action": "edit", "resource": "data_mart:Revenue", "reason": "x"})
        .json()["id"]
    )
    change = {"change": "set_role", "member": "Bea", "role": "admin"}
    millrace.as_("Olga").post(f"/api/access/requests/{made}/approve", {"change": change}).raise_for_status()
    seen = {who: millrace.as_(who).get(f"/api/access/requests/{made}") for who in ("Olga", "Adam", "Tess", "Bea")}
    assert seen["Olga"].json()["change"]["role"] == seen["Adam"].json()["change"]["role"] == "admin"
    assert seen["Bea"].json()["change"] == {"change": "set_role", "role": "admin"}
    assert seen["Tess"].json()["change"] == {"change": "set_role"}
