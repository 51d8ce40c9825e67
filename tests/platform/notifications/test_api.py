"""One's own notifications and settings, and who receives a channel, over HTTP."""

from typing import Any

import pytest

from headgate.platform.notifications.service import CHANNELS
from tests.platform.mail import join
from tests.platform.notifications import EVERYONE, House


def put(house: House, who: str | None, path: str, body: Any, **narrowing: Any) -> Any:
    return house.company.as_(who, **narrowing).request("PUT", path, json=body)


def channels(house: House, who: str) -> dict[str, tuple[bool, bool]]:
    found = house.company.as_(who).get("/api/me/notifications").json()["channels"]
    return {one["channel"]: (one["receives"], one["by_mail"]) for one in found}


def receivers(house: House, channel: str, **query: Any) -> list[str]:
    answer = house.company.as_("Adam").get(f"/api/notifications/receivers/{channel}", **query)
    assert answer.status_code == 200, answer.text
    return [one["name"] for one in answer.json()["items"]]


def test_the_newest_comes_first_by_page_and_each_says_what_it_is_about(millrace_house: House) -> None:
    millrace_house.subscribe("Adam")
    for n, about in enumerate(("data_mart:Revenue", "table:raw.orders", "report:Weekly revenue", "space:Sales data")):
        millrace_house.notice(event="run.failed" if n % 2 else "run.blocked", about=about)
        millrace_house.told()
    adam = millrace_house.company.as_("Adam")
    seen, cursor = [], None
    for _ in range(3):
        page = adam.get("/api/notifications", limit=2, **({"cursor": cursor} if cursor else {})).json()
        seen += [(item["sentence"], item["about"]["name"]) for item in page["items"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert seen == [
        ("A run of the space Sales data failed", "Sales data"),
        ("A run of the report Weekly revenue was blocked", "Weekly revenue"),
        ("A run of the table raw.orders failed", "raw.orders"),
        ("A run of the data mart Revenue was blocked", "Revenue"),
    ]
    assert cursor is None
    assert millrace_house.listed("Olga") == []


def test_hidden_ones_make_room_for_others_and_end_no_page_early(millrace_house: House) -> None:
    millrace_house.subscribe("Bea")
    for _ in range(3):
        millrace_house.notice("members", "joined", member="Ben")
        for _ in range(4):
            millrace_house.notice(about="data_mart:Revenue")
    assert millrace_house.told() == {"Bea"}
    assert len(millrace_house.listed("Bea")) == 15
    tess = millrace_house.company.as_("Tess")
    assert tess.change(change="share", resource="data_mart:Revenue", for_use=False).status_code == 200
    page = millrace_house.company.as_("Bea").get("/api/notifications", limit=2).json()
    assert [item["sentence"] for item in page["items"]] == ["Ben joined", "Ben joined"]
    rest = millrace_house.company.as_("Bea").get("/api/notifications", limit=2, cursor=page["next_cursor"]).json()
    assert [item["sentence"] for item in rest["items"]] == ["Ben joined"]
    assert rest["next_cursor"] is None
    assert "Revenue" not in str(page) + str(rest)


def test_a_page_looks_at_no_more_than_a_bounded_number(millrace_house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headgate.platform.notifications.endpoints.MOST_SCANNED", 6)
    millrace_house.subscribe("Bea")
    millrace_house.notice("members", "joined", member="Ben")
    for _ in range(9):
        millrace_house.notice(about="data_mart:Revenue")
    millrace_house.told()
    tess = millrace_house.company.as_("Tess")
    assert tess.change(change="share", resource="data_mart:Revenue", for_use=False).status_code == 200
    bea, cursor, seen, pages = millrace_house.company.as_("Bea"), None, [], 0
    while pages == 0 or cursor:
        page = bea.get("/api/notifications", limit=2, **({"cursor": cursor} if cursor else {})).json()
        seen += page["items"]
        cursor, pages = page["next_cursor"], pages + 1
    assert pages > 1
    assert [item["sentence"] for item in seen] == ["Ben joined"]


def test_a_cursor_of_another_list_or_none_at_all_is_said_to_be_one(millrace_house: House) -> None:
    adam = millrace_house.company.as_("Adam")
    millrace_house.subscribe("Adam", "Olga")
    foreign = adam.get("/api/notifications/receivers/runs", limit=1).json()["next_cursor"]
    assert foreign
    for cursor in (foreign, "x", "ÿ"):
        answer = adam.get("/api/notifications", cursor=cursor)
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid")


def test_reading_marks_ones_own_and_nobody_elses(millrace_house: House) -> None:
    millrace_house.subscribe("Adam", "Olga")
    ids = [millrace_house.notice(about="data_mart:Revenue") for _ in range(3)]
    millrace_house.told()
    adam = millrace_house.company.as_("Adam")
    assert adam.post("/api/notifications/read", {"ids": [ids[0], "ntc_00000000000000000000"]}).status_code == 200
    assert len(millrace_house.listed("Adam", unread=True)) == 2
    assert len(millrace_house.listed("Adam")) == 3
    assert len(millrace_house.listed("Olga", unread=True)) == 3
    assert adam.post("/api/notifications/read", {"all": True}).status_code == 200
    assert millrace_house.listed("Adam", unread=True) == []
    assert len(millrace_house.listed("Olga", unread=True)) == 3
    read = [item["read_at"] for item in adam.get("/api/notifications").json()["items"]]
    assert read[2] < read[1] == read[0]


@pytest.mark.parametrize("body", [{}, {"ids": ["x"], "all": True}, {"all": False}, {"ids": ["dm_1"]}, {"ids": "all"}])
def test_it_must_be_clear_what_was_read(millrace_house: House, body: Any) -> None:
    assert millrace_house.company.as_("Adam").post("/api/notifications/read", body).status_code == 422


def test_sentences_name_nobody_who_left_as_actor_and_no_reason(millrace_house: House) -> None:
    millrace_house.subscribe("Adam")
    facts = {"action": "edit", "reason": "the space Secret plans", "request": "req_1"}
    millrace_house.notice("access", "request.made", member="Ben", actor="Ben", about="data_mart:Revenue", facts=facts)
    millrace_house.notice("access", "request.declined", actor="Tom", recipients=["Adam"], facts={"action": "<b>"})
    millrace_house.notice("members", "removed", member="Tom", actor="Olga")
    millrace_house.notice("members", "some_new.event", actor="Tom")
    millrace_house.told()
    assert millrace_house.company.as_("Olga").change(change="remove_member", member="Tom").status_code == 200
    assert millrace_house.listed("Adam") == [
        "Some new event",
        "Tom was removed by Olga",
        "Your request for access on the organization was declined",
        "Ben requests edit on the data mart Revenue",
    ]


def test_settings_are_ones_own_and_a_change_is_told_to_the_audit_log(millrace_house: House) -> None:
    assert channels(millrace_house, "Ben") == dict.fromkeys(CHANNELS, (False, False))
    body = {"channels": [{"channel": "runs", "receives": True, "by_mail": True}]}
    answer = put(millrace_house, "Ben", "/api/me/notifications", body)
    assert answer.status_code == 200
    assert channels(millrace_house, "Ben") == {**dict.fromkeys(CHANNELS, (False, False)), "runs": (True, True)}
    assert channels(millrace_house, "Bea") == dict.fromkeys(CHANNELS, (False, False))
    log = millrace_house.company.as_("Adam").get("/api/audit", event="notifications.changed").json()["items"]
    assert [(one["actor_name"], one["before"]["receives"], one["after"]["by_mail"]) for one in log] == [
        ("Ben", False, True)
    ]
    assert put(millrace_house, "Ben", "/api/me/notifications", body).status_code == 200
    log = millrace_house.company.as_("Adam").get("/api/audit", event="notifications.changed").json()["items"]
    assert len(log) == 1
    stop = {"channels": [{"channel": "runs", "receives": False}]}
    assert put(millrace_house, "Ben", "/api/me/notifications", stop).json()["channels"][0]["receives"] is False


@pytest.mark.parametrize(
    "body", [{"channels": [{"channel": "weather", "receives": True}]}, {"channels": [{"channel": "runs"}]}, {}, []]
)
def test_settings_that_make_no_sense_are_refused(millrace_house: House, body: Any) -> None:
    assert put(millrace_house, "Ben", "/api/me/notifications", body).status_code == 422


def test_where_mail_goes_is_said(mailing_house: House) -> None:
    mailing_house.address("Ana")
    assert mailing_house.company.as_("Ana").get("/api/me/notifications").json()["mail_to"] == "ana@example.com"
    assert mailing_house.company.as_("Ben").get("/api/me/notifications").json()["mail_to"] is None


def test_owners_whose_role_is_too_low_are_warned(millrace_house: House) -> None:
    def warnings(who: str) -> list[tuple[str, str | None]]:
        found = millrace_house.company.as_(who).get("/api/me/notifications").json()["warnings"]
        assert all((one["id"] is None) == (one["name"] is None) for one in found)
        return [(one["kind"], one["name"]) for one in found]

    assert {who: warnings(who) for who in EVERYONE} == {who: [] for who in EVERYONE}
    adam = millrace_house.company.as_("Adam")
    for change in (
        {"resource": "data_mart:Revenue", "member": "Bea", "ownership": "technical"},
        {"resource": "data_mart:Pipeline health", "member": "Bea", "ownership": "business"},
        {"resource": "storage:Warehouse", "member": "Bea"},
        {"resource": "destination:Finance sheet", "member": "Bea"},
        {"resource": "report:Weekly revenue", "member": "Bea"},
        {"resource": "storage:Warehouse", "member": "Tom"},
        {"resource": "data_mart:Revenue", "member": "Olga", "ownership": "technical"},
    ):
        assert adam.change(change="add_owner", **change).status_code == 200
    assert warnings("Bea") == [("data_mart", "Revenue"), ("storage", None)]
    assert "Warehouse" not in millrace_house.company.as_("Bea").get("/api/me/notifications").text
    assert (warnings("Tom"), warnings("Olga"), warnings("Ben")) == ([], [], [])
    assert adam.change(change="set_role", member="Tom", role="business").status_code == 200
    assert warnings("Tom") == [("data_mart", "Pipeline health"), ("storage", None)]
    assert adam.change(change="set_role", member="Bea", role="technical").status_code == 200
    assert warnings("Bea") == []


def test_admins_say_who_receives_a_channel_and_business_members_can_be_added(millrace_house: House) -> None:
    path = "/api/notifications/receivers/runs"
    body = {"receivers": [{"member": "Ben"}, {"member": "Tess", "by_mail": False}]}
    answer = put(millrace_house, "Adam", path, body)
    assert [(one["name"], one["by_mail"]) for one in answer.json()["items"]] == [("Ben", True), ("Tess", False)]
    assert channels(millrace_house, "Ben")["runs"] == (True, True)
    assert put(millrace_house, "Adam", path, {"receivers": [{"member": "Ben", "receives": False}]}).status_code == 200
    assert receivers(millrace_house, "runs") == ["Tess"]
    assert receivers(millrace_house, "access") == []
    missing = put(millrace_house, "Adam", path, {"receivers": [{"member": "Tom"}, {"member": "Nobody"}]})
    assert (missing.status_code, missing.json()["detail"]) == (
        422,
        "receivers.1.member: there is no member called 'Nobody'",
    )
    assert receivers(millrace_house, "runs") == ["Tess"]


@pytest.mark.parametrize("who", ["Tess", "Ben", "Dora", None])
def test_nobody_else_learns_or_changes_who_receives_a_channel(millrace_house: House, who: str | None) -> None:
    path, status = "/api/notifications/receivers/runs", 403 if who else 401
    assert millrace_house.company.as_(who).get(path).status_code == status
    assert put(millrace_house, who, path, {"receivers": [{"member": "Ben"}]}).status_code == status
    assert receivers(millrace_house, "runs") == []
    if who is None:
        for one in ("/api/notifications", "/api/me/notifications"):
            assert millrace_house.company.as_(None).get(one).status_code == 401


def test_receivers_come_by_page(millrace_house: House) -> None:
    millrace_house.subscribe(*EVERYONE)
    adam, found, cursor = millrace_house.company.as_("Adam"), list[Any](), None
    while cursor or not found:
        page = adam.get("/api/notifications/receivers/runs", limit=3, **({"cursor": cursor} if cursor else {})).json()
        found += [one["name"] for one in page["items"]]
        cursor = page["next_cursor"]
    assert found == sorted(EVERYONE)
    assert adam.get("/api/notifications/receivers/weather").status_code == 422


def test_narrowed_tokens_change_nothing_and_see_no_more_than_they_reach(millrace_house: House) -> None:
    millrace_house.subscribe("Adam")
    millrace_house.notice("members", "joined", member="Ben")
    millrace_house.notice(about="table:raw.orders")
    millrace_house.notice(about="data_mart:Revenue")
    millrace_house.notice(about="table:raw.orders", needs="grant")
    millrace_house.told()
    raw = millrace_house.company.id("layer", "raw")
    sentences = {}
    for name, limits in (("only", {"only": [raw]}), ("read-only", {"read_only": True})):
        api = millrace_house.company.as_("Adam", **limits)
        sentences[name] = [one["sentence"] for one in api.get("/api/notifications").json()["items"]]
        own = {"channels": [{"channel": "runs", "receives": False}]}
        assert api.request("PUT", "/api/me/notifications", json=own).status_code == 403
        assert api.post("/api/notifications/read", {"all": True}).status_code == 403
        assert api.get("/api/notifications/receivers/runs").status_code == 403
    assert sentences["only"] == ["A run of the table raw.orders failed"] * 2
    assert sentences["read-only"] == [
        "A run of the data mart Revenue failed",
        "A run of the table raw.orders failed",
        "Ben joined",
    ]
    assert channels(millrace_house, "Adam")["runs"] == (True, True)


@pytest.mark.parametrize(
    ("role", "subscribed"), [("owner", True), ("admin", True), ("technical", True), ("business", False)]
)
def test_who_joins_receives_every_channel_unless_their_role_is_business(
    millrace_house: House, role: str, subscribed: bool
) -> None:
    join(millrace_house.database, "Newcomer", None, role)
    expected = ["Newcomer"] if subscribed else []
    assert [receivers(millrace_house, channel) for channel in CHANNELS] == [expected] * len(CHANNELS)
