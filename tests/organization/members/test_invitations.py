"""Invitations: who invites whom (seed 001), how far an invitee reaches, and what happens on the way."""

import threading
from typing import Any

import pytest

from headgate.access.invitations import MemberScope
from headgate.kit.clock import now
from headgate.organization.invitations.service import make
from headgate.organization.members.first_owner import UNKNOWN
from headgate.organization.sessions import throttle
from tests.support.company import Company
from tests.support.people import PASSWORD, Browser, secret_of, with_password

ROLES = ("owner", "admin", "technical", "business")
MAY = {
    "Olga": {"owner", "admin", "technical", "business"},
    "Adam": {"admin", "technical", "business"},
    "Tess": {"technical", "business"},
    "Ben": {"business"},
    "Dora": {"business"},
}


def invite(millrace: Company, who: str, email: str = "new@example.com", role: str = "business", **more: Any) -> Any:
    return millrace.as_(who).post("/api/invitations", {"email": email, "role": role, **more})


def accept(millrace: Company, link: str, name: str = "Nell", **more: Any) -> Any:
    body = {"invitation": secret_of(link), "name": name, "password": PASSWORD, **more}
    return Browser(millrace).post("/api/invitations/accept", body)


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("who", MAY)
def test_who_invites_whom(millrace: Company, who: str, role: str) -> None:
    answer = invite(millrace, who, role=role)
    assert (answer.status_code == 200) == (role in MAY[who]), answer.text
    if answer.status_code != 200:
        assert answer.status_code == 403
        assert millrace.rows("SELECT COUNT(*) FROM invitations") == [(0,)]


def test_when_only_admins_invite_nobody_else_does(millrace: Company) -> None:
    millrace.as_("Adam").change(change="set_invites", invites="admins-only").raise_for_status()
    assert invite(millrace, "Tess").status_code == 403
    assert invite(millrace, "Adam").status_code == 200


def test_an_invitation_makes_a_member_who_is_signed_in(millrace: Company) -> None:
    made = invite(millrace, "Adam", role="technical", scope="selected", contexts=["finance"]).json()
    browser = Browser(millrace)
    body = {"invitation": secret_of(made["link"]), "name": " Nell ", "password": PASSWORD}
    answer = browser.post("/api/invitations/accept", body)
    assert answer.json()["name"] == "Nell"
    me = browser.get("/api/access/me").json()
    assert (me["role"], me["scope"]) == ("technical", "selected")
    assert browser.get("/api/resources", kind="data_mart").json()["items"][0]["name"] == "Revenue"
    assert Browser(millrace).sign_in("new@example.com").status_code == 200
    assert accept(millrace, made["link"], "Other").status_code == 410
    told = millrace.as_("Adam").get("/api/audit", actor="Nell", event="access.changed").json()["items"]
    assert told[0]["after"] == {
        "change": "join",
        "role": "technical",
        "scope": "selected",
        "invitation": made["id"],
    }


@pytest.mark.parametrize(
    ("who", "asked", "status", "scope", "contexts"),
    [
        ("Adam", {}, 200, "entire", []),
        ("Adam", {"scope": "selected", "contexts": ["sales"]}, 200, "selected", ["sales"]),
        ("Adam", {"scope": "selected"}, 200, "selected", []),
        ("Adam", {"scope": "entire", "contexts": ["sales"]}, 422, None, None),
        ("Adam", {"contexts": ["nothing"]}, 404, None, None),
        ("Bea", {}, 200, "entire", []),
        ("Ben", {}, 200, "selected", ["finance"]),
        ("Ben", {"scope": "selected"}, 200, "selected", []),
        ("Ben", {"contexts": ["finance"]}, 200, "selected", ["finance"]),
        ("Ben", {"scope": "entire"}, 403, None, None),
        ("Ben", {"scope": "selected", "contexts": ["sales"]}, 403, None, None),
        ("Ben", {"contexts": ["finance", "sales"]}, 403, None, None),
    ],
)
def test_an_invitee_of_no_admin_gets_at_most_the_inviters_scope(
    millrace: Company, who: str, asked: dict[str, Any], status: int, scope: str | None, contexts: list[str] | None
) -> None:
    answer = invite(millrace, who, **asked)
    assert answer.status_code == status, answer.text
    if status == 200:
        found = answer.json()
        assert (found["scope"], [one["name"] for one in found["contexts"]]) == (scope, contexts)


def test_an_invited_admin_reaches_everything(millrace: Company) -> None:
    made = invite(millrace, "Adam", role="admin", scope="selected", contexts=["sales"]).json()
    assert (made["scope"], made["contexts"]) == ("entire", [])


def test_an_invitation_is_judged_again_when_it_is_accepted(millrace: Company) -> None:
    first = invite(millrace, "Tess", "a@example.com", "technical").json()["link"]
    second = invite(millrace, "Tess", "b@example.com", "business").json()["link"]
    millrace.as_("Adam").change(change="set_role", member="Tess", role="business").raise_for_status()
    refused = accept(millrace, first)
    assert (refused.status_code, "invited you" in refused.json()["detail"]) == (409, True)
    assert accept(millrace, second).status_code == 200
    third = invite(millrace, "Ben", "c@example.com").json()["link"]
    millrace.as_("Adam").change(change="remove_member", member="Ben").raise_for_status()
    assert accept(millrace, third, "Norm").status_code == 409


def test_an_invitation_reaches_no_further_than_its_inviter_does_by_then(millrace: Company) -> None:
    link = invite(millrace, "Bea").json()["link"]
    millrace.as_("Adam").change(change="set_scope", member="Bea", scope="selected").raise_for_status()
    assert accept(millrace, link).status_code == 409


def test_it_is_sent_again_taken_back_and_expires(millrace: Company) -> None:
    made = invite(millrace, "Adam").json()
    again = millrace.as_("Adam").request("POST", f"/api/invitations/{made['id']}/resend").json()
    assert accept(millrace, made["link"]).status_code == 410
    assert millrace.as_("Adam").request("DELETE", f"/api/invitations/{made['id']}").json()["state"] == "revoked"
    assert accept(millrace, again["link"]).status_code == 410
    for method, path in (("POST", "/resend"), ("DELETE", "")):
        assert millrace.as_("Adam").request(method, f"/api/invitations/{made['id']}{path}").status_code == 409
    other = invite(millrace, "Adam").json()
    with millrace.database.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE invitations SET expires_at = '2020-01-01 00:00:00'")
    assert accept(millrace, other["link"]).status_code == 410
    assert millrace.as_("Adam").get("/api/invitations").json()["items"][0]["state"] == "expired"
    renewed = millrace.as_("Adam").request("POST", f"/api/invitations/{other['id']}/resend").json()
    assert accept(millrace, renewed["link"]).status_code == 200


def test_whoever_sends_it_again_vouches_for_it(millrace: Company) -> None:
    made = invite(millrace, "Ben").json()
    again = millrace.as_("Adam").request("POST", f"/api/invitations/{made['id']}/resend").json()
    assert again["invited_by"] == "Adam"
    millrace.as_("Adam").change(change="remove_member", member="Ben").raise_for_status()
    assert accept(millrace, again["link"]).status_code == 200


def test_an_admin_cannot_vouch_for_an_owner(millrace: Company) -> None:
    made = invite(millrace, "Olga", role="owner").json()
    assert millrace.as_("Adam").request("POST", f"/api/invitations/{made['id']}/resend").status_code == 403


def test_inviters_see_their_own_and_admins_all(millrace: Company) -> None:
    for who, email in (("Ben", "b@example.com"), ("Tess", "t@example.com"), ("Adam", "a@example.com")):
        made = invite(millrace, who, email).json()
        assert millrace.as_("Bea").request("DELETE", f"/api/invitations/{made['id']}").status_code == 404
    seen = {who: [one["email"] for one in millrace.as_(who).get("/api/invitations").json()["items"]] for who in MAY}
    assert seen["Ben"] == ["b@example.com"]
    assert seen["Tess"] == ["t@example.com"]
    assert sorted(seen["Adam"]) == ["a@example.com", "b@example.com", "t@example.com"]
    assert seen["Dora"] == []
    page = millrace.as_("Adam").get("/api/invitations", limit=2).json()
    rest = millrace.as_("Adam").get("/api/invitations", limit=2, cursor=page["next_cursor"]).json()
    assert len(page["items"]) + len(rest["items"]) == 3
    assert all(one["link"] is None for one in page["items"])


def test_nobody_is_invited_twice(millrace: Company) -> None:
    with_password(millrace, "Ana", "ana@example.com")
    assert invite(millrace, "Adam", "ANA@example.com").status_code == 409
    assert invite(millrace, "Adam", "new@example.com").status_code == 200
    assert invite(millrace, "Tess", "New@Example.com").status_code == 409


@pytest.mark.parametrize("email", ["", "x", "a b@example.com", "a@b\nBcc: c@d.e", "<a@b.c>", "a" * 300 + "@b.c"])
def test_what_is_no_address_is_said(millrace_on_sqlite: Company, email: str) -> None:
    assert invite(millrace_on_sqlite, "Adam", email).status_code == 422


@pytest.mark.parametrize(("name", "status"), [("Ana", 409), ("ＡＮＡ", 409), ("", 422), ("a\x00b", 422), ("Nell", 200)])
def test_a_name_is_one_of_its_own(millrace: Company, name: str, status: int) -> None:
    link = invite(millrace, "Adam").json()["link"]
    assert accept(millrace, link, name).status_code == status


def test_a_weak_password_spends_nothing(millrace: Company) -> None:
    link = invite(millrace, "Adam").json()["link"]
    assert accept(millrace, link, password="newexample").status_code == 422
    assert accept(millrace, link).status_code == 200


def test_two_who_accept_at_once_make_one_member(millrace: Company) -> None:
    link = invite(millrace, "Adam").json()["link"]
    found: list[int] = []
    threads = [
        threading.Thread(target=lambda n=n: found.append(accept(millrace, link, f"Nell {n}").status_code))
        for n in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [200, 410, 410, 410]
    assert millrace.rows("SELECT COUNT(*) FROM members") == [(9,)]


def test_who_joins_is_subscribed_as_their_role_is(millrace: Company) -> None:
    for role, count in (("technical", 3), ("admin", 3), ("business", 0)):
        link = invite(millrace, "Adam", f"{role}@example.com", role).json()["link"]
        member = accept(millrace, link, role).json()["id"]
        rows = millrace.rows(f"SELECT COUNT(*) FROM notification_receivers WHERE member_id = '{member}'")
        assert rows == [(count,)], role


def test_the_first_owners_placeholder_is_nobodys_address(millrace: Company) -> None:
    assert invite(millrace, "Tess", UNKNOWN).status_code == 422


def test_a_first_owners_link_is_of_no_use_once_there_is_an_owner(millrace: Company) -> None:
    moment = now()
    made = millrace.database.write(
        lambda connection: make(connection, UNKNOWN, "owner", MemberScope(entire=True), None, moment, 1)[1]
    )
    assert accept(millrace, f"x#{made}", email="eve@example.com").status_code == 410


def test_who_is_no_admin_does_not_learn_whose_an_address_is(millrace: Company) -> None:
    with_password(millrace, "Ana", "ana@example.com")
    invite(millrace, "Adam", "new@example.com").raise_for_status()
    told = {invite(millrace, "Ben", email).json()["detail"] for email in ("ana@example.com", "new@example.com")}
    assert len(told) == 1
    assert "address of a member" in invite(millrace, "Adam", "ana@example.com").json()["detail"]


def test_the_audit_log_says_by_which_path_someone_was_invited(millrace: Company) -> None:
    made = invite(millrace, "Ben").json()
    millrace.as_("Ben").request("DELETE", f"/api/invitations/{made['id']}").raise_for_status()
    told = millrace.as_("Adam").get("/api/audit", actor="Ben", event="access.changed").json()["items"]
    assert [one["via"] for one in told] == [["inviter"], ["members invite"]]


def test_nobody_floods_an_address_or_many(millrace: Company, monkeypatch: pytest.MonkeyPatch) -> None:
    made = invite(millrace, "Ben").json()["id"]
    again = [millrace.as_("Ben").request("POST", f"/api/invitations/{made}/resend").status_code for _ in range(6)]
    assert again == [200] * 4 + [429] * 2
    monkeypatch.setattr(throttle, "MAILS_BY_ONE", 3)
    found = [invite(millrace, "Tess", f"n{number}@example.com").status_code for number in range(5)]
    assert found == [200] * 3 + [429] * 2
    assert millrace.rows("SELECT COUNT(*) FROM invitations") == [(4,)]
