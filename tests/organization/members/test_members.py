"""Members: the list, a member's page, removal, and handing over what they own."""

from typing import Any

import pytest

from tests.organization.profile.support import counted
from tests.support.company import Company
from tests.support.installation import eventually
from tests.support.people import Browser, with_password


def walk(millrace: Company, who: str, **parameters: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    cursor: dict[str, str] = {}
    while True:
        page = millrace.as_(who).get("/api/members", limit=3, **parameters, **cursor).json()
        found += page["items"]
        if page["next_cursor"] is None:
            return found
        cursor = {"cursor": page["next_cursor"]}


def test_admins_see_all_and_others_names(millrace: Company) -> None:
    with_password(millrace, "Ben", "ben@example.com")
    ben = next(one for one in walk(millrace, "Adam") if one["name"] == "Ben")
    assert (ben["email"], ben["role"], ben["scope"], ben["status"]) == (
        "ben@example.com",
        "business",
        "selected",
        "active",
    )
    assert [one["name"] for one in ben["contexts"]] == ["finance"]
    assert [one["name"] for one in ben["groups"]] == ["analysts"]
    for who in ("Tess", "Ben", "Dora"):
        seen = walk(millrace, who)
        assert [one["name"] for one in seen] == ["Adam", "Ana", "Bea", "Ben", "Dora", "Olga", "Tess", "Tom"]
        assert all(value is None for one in seen for name, value in one.items() if name not in {"id", "name"})


@pytest.mark.parametrize("sort", ["name", "email", "role", "scope", "created", "last_seen"])
def test_the_list_sorts_and_pages(millrace: Company, sort: str) -> None:
    with_password(millrace, "Ben", "ben@example.com")
    Browser(millrace).sign_in("ben@example.com")
    if sort == "last_seen":
        millrace.as_("Adam").get("/api/access/me")
        eventually(lambda: len(millrace.rows("SELECT 1 FROM members WHERE last_seen_at IS NOT NULL")) == 2)
    up, down = walk(millrace, "Adam", sort=sort), walk(millrace, "Adam", sort=f"-{sort}")
    assert len({one["id"] for one in up}) == len(up) == 8
    assert [one["id"] for one in up] == [one["id"] for one in reversed(down)]


def test_a_token_narrowed_to_a_list_sees_nobody(millrace: Company) -> None:
    api = millrace.as_("Adam", only=[])
    assert api.get("/api/members").status_code == 403
    assert api.get(f"/api/members/{millrace.id('member', 'Ben')}").status_code == 403


def test_who_sees_names_sorts_by_names(millrace: Company) -> None:
    assert millrace.as_("Ben").get("/api/members", sort="role").status_code == 422
    assert [one["name"] for one in walk(millrace, "Ben", prefix="b")] == ["Bea", "Ben"]


@pytest.mark.parametrize("wrong", [{"sort": "age"}, {"cursor": "x"}, {"limit": 0}, {"prefix": "\0"}])
def test_wrong_questions_are_refused(millrace_on_sqlite: Company, wrong: dict[str, Any]) -> None:
    assert millrace_on_sqlite.as_("Adam").get("/api/members", **wrong).status_code == 422


def test_the_list_takes_the_same_few_statements_at_any_size(millrace_on_sqlite: Company) -> None:
    millrace_on_sqlite.as_("Adam").get("/api/members")
    counts = []
    for limit in (2, 8):
        with counted(millrace_on_sqlite) as seen:
            millrace_on_sqlite.as_("Adam").get("/api/members", limit=limit)
        counts.append(len(seen))
    assert counts[0] == counts[1] <= 8


def test_a_members_page_says_what_they_can_do_and_through_what(millrace: Company) -> None:
    tess = millrace.id("member", "Tess")
    found = millrace.as_("Adam").get(f"/api/members/{tess}").json()
    assert {"action": "invite_technical", "via": ["technical invites"]} in found["can"]
    assert set(found["allowed"]) == {"reset_password", "make_magic_link", "remove", "change_role"}
    own = millrace.as_("Tess").get(f"/api/members/{tess}").json()
    assert (own["member"]["role"], own["allowed"]) == ("technical", [])
    other = millrace.as_("Ben").get(f"/api/members/{tess}").json()
    assert (other["member"]["role"], other["can"], other["member"]["name"]) == (None, [], "Tess")
    assert millrace.as_("Adam").get("/api/members/mbr_00000000000000000000").status_code == 404


def test_what_a_removal_would_leave_behind(millrace: Company) -> None:
    tess = millrace.id("member", "Tess")
    found = millrace.as_("Adam").get(f"/api/members/{tess}/holdings").json()
    owned = {(one["kind"], one["name"], one["holds"]) for one in found["solely_owned"]}
    assert owned == {
        ("storage", "Warehouse", "owner"),
        ("data_mart", "Revenue", "technical"),
        ("space", "Sales data", "owner"),
        ("project", "Shop", "owner"),
        ("connection", "Shop database", "owner"),
    }
    acting = {(one["name"], one["holds"]) for one in found["acts_for"]}
    assert {("Revenue", "acts_for"), ("Land payments", "acts_for"), ("Every night", "author")} <= acting
    for who in ("Tess", "Ben", "Dora"):
        assert millrace.as_(who).get(f"/api/members/{tess}/holdings").status_code == 403


def test_what_they_own_is_handed_over_in_one_step(millrace: Company) -> None:
    tess, tom = millrace.id("member", "Tess"), millrace.id("member", "Tom")
    before = millrace.as_("Adam").get(f"/api/members/{tess}/holdings").json()["solely_owned"]
    done = millrace.as_("Adam").post(f"/api/members/{tess}/reassign", {"to": "Tom"})
    assert {one["id"] for one in done.json()["items"]} == {one["id"] for one in before}
    assert millrace.as_("Adam").get(f"/api/members/{tess}/holdings").json()["solely_owned"] == []
    millrace.as_("Adam").change(change="remove_member", member="Tess").raise_for_status()
    assert millrace.as_("Tom").may("delete", "data_mart:Revenue")
    assert millrace.as_("Tom").may("manage_members", "space:Sales data")
    held = millrace.as_("Adam").get(f"/api/members/{tom}/holdings").json()["solely_owned"]
    assert {one["id"] for one in before} <= {one["id"] for one in held}


def test_what_a_removed_member_solely_owned_stays_listed_until_it_is_reassigned(millrace: Company) -> None:
    adam, tess = millrace.as_("Adam"), millrace.id("member", "Tess")
    before = adam.get(f"/api/members/{tess}/holdings").json()
    assert adam.get("/api/members/removed").json()["items"] == []
    adam.change(change="remove_member", member="Tess").raise_for_status()
    assert adam.get(f"/api/members/{tess}/holdings").json() == before
    [removed] = adam.get("/api/members/removed").json()["items"]
    assert (removed["id"], removed["solely_owned"]) == (tess, 5)
    assert "Tess" not in adam.get("/api/members/removed").text
    for who in ("Tom", "Dora"):
        assert millrace.as_(who).get(f"/api/members/{tess}/holdings").status_code == 403
        assert millrace.as_(who).get("/api/members/removed").status_code == 403
        assert millrace.as_(who).post(f"/api/members/{tess}/reassign", {"to": who}).status_code == 403
    # An ordinary change of an owner counts as well.
    mart = millrace.id("data_mart", "Revenue")
    adam.change(change="add_owner", resource=mart, member="Tom", ownership="technical").raise_for_status()
    adam.change(change="change_owner", resource="project:Shop", owner="Tom").raise_for_status()
    left = adam.get(f"/api/members/{tess}/holdings").json()["solely_owned"]
    assert {one["name"] for one in left} == {"Warehouse", "Sales data", "Shop database"}
    done = adam.post(f"/api/members/{tess}/reassign", {"to": "Tom"}).json()["items"]
    assert done == left
    assert adam.get(f"/api/members/{tess}/holdings").json()["solely_owned"] == []
    assert adam.get("/api/members/removed").json()["items"] == []
    assert millrace.as_("Tom").may("manage_members", "space:Sales data")
    # It stays listed with whoever had it last.
    adam.change(change="remove_member", member="Tom").raise_for_status()
    assert adam.get(f"/api/members/{tess}/holdings").json()["solely_owned"] == []
    tom = adam.get("/api/members/removed").json()["items"]
    assert [one["solely_owned"] for one in tom] == [8]
    assert adam.get("/api/members/mbr_00000000000000000000/holdings").status_code == 404


def test_a_deleted_destination_is_listed_and_handed_over_once_it_is_restored(millrace: Company) -> None:
    adam, ben = millrace.as_("Adam"), millrace.id("member", "Ben")
    place = {"place": {"kind": "http", "base_url": "https://example.com"}}
    made = [millrace.as_("Ben").post("/api/destinations", {"name": name, **place}).json()["id"] for name in "AB"]
    millrace.as_("Ben").request("DELETE", f"/api/destinations/{made[0]}").raise_for_status()

    def listed() -> set[str]:
        return {one["id"] for one in adam.get(f"/api/members/{ben}/holdings").json()["solely_owned"]}

    assert set(made) & listed() == {made[1]}
    adam.change(change="remove_member", member="Ben").raise_for_status()
    assert set(made) & listed() == {made[1]}
    adam.post(f"/api/members/{ben}/reassign", {"to": "Tom"}).raise_for_status()
    assert (listed(), adam.get("/api/members/removed").json()["items"]) == (set(), [])
    adam.change(change="restore_destination", destination=made[0]).raise_for_status()
    assert listed() == {made[0]}
    adam.post(f"/api/members/{ben}/reassign", {"to": "Tom"}).raise_for_status()
    assert millrace.as_("Tom").may("manage_owners", made[0])


def test_removed_members_are_listed_by_page(millrace: Company) -> None:
    adam = millrace.as_("Adam")
    for who in ("Tess", "Tom", "Ben"):
        adam.change(change="remove_member", member=who).raise_for_status()
    found, cursor = [], None
    while True:
        page = adam.get("/api/members/removed", limit=1, **({"cursor": cursor} if cursor else {})).json()
        found += page["items"]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert len({one["id"] for one in found}) == len(found) == 3
    assert adam.get("/api/members/removed", cursor="nonsense").status_code == 422


def test_a_handover_is_all_or_nothing_and_by_right(millrace: Company) -> None:
    tess, mart = millrace.id("member", "Tess"), millrace.id("data_mart", "Revenue")
    api = millrace.as_("Adam")
    wrong = api.post(f"/api/members/{tess}/reassign", {"to": "Tom", "resources": [mart, "dm_00000000000000000000"]})
    assert wrong.status_code == 409
    assert len(api.get(f"/api/members/{tess}/holdings").json()["solely_owned"]) == 5
    assert api.post(f"/api/members/{tess}/reassign", {"to": "Tess"}).status_code == 409
    assert api.post(f"/api/members/{tess}/reassign", {"to": "nobody"}).status_code == 404
    assert millrace.as_("Dora").post(f"/api/members/{tess}/reassign", {"to": "Tom"}).status_code == 403
    one = api.post(f"/api/members/{tess}/reassign", {"to": "Tom", "resources": [mart]})
    assert [item["id"] for item in one.json()["items"]] == [mart]


def test_a_removal_ends_everything_at_once(millrace: Company) -> None:
    with_password(millrace, "Ben", "ben@example.com")
    browser = Browser(millrace)
    browser.sign_in("ben@example.com")
    token = millrace.as_("Ben")
    millrace.as_("Adam").change(change="remove_member", member="Ben").raise_for_status()
    assert browser.get("/api/access/me").status_code == 401
    assert token.get("/api/access/me").status_code == 401
    assert Browser(millrace).sign_in("ben@example.com").status_code == 401
    assert "Ben" not in [one["name"] for one in walk(millrace, "Adam")]
    link = (
        millrace.as_("Adam")
        .post("/api/invitations", {"email": "ben@example.com", "role": "business", "scope": "selected"})
        .json()["link"]
    )
    back = Browser(millrace)
    body = {"invitation": link.rpartition("#")[2], "name": "Ben", "password": "seven quiet herons fishing"}
    assert back.post("/api/invitations/accept", body).status_code == 200
    assert back.get("/api/resources", kind="report").json()["items"] == []
