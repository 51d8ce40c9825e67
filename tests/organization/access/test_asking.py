"""Who may ask what about whom: anyone about themselves, sharers about a resource, admins about members."""

from typing import Any

import pytest

from tests.support.company import Company


def test_anyone_may_ask_what_they_themselves_can_do_and_why(millrace: Company) -> None:
    answer = millrace.as_("Ben").post("/api/access/explain", {"action": "see", "resource": "data_mart:Revenue"}).json()
    assert answer["allowed"]
    assert answer["via"] == ["ownership floor", "shared for reporting"]
    assert answer["ways"] == []


def test_a_refusal_says_what_is_missing_and_who_could_grant_it(millrace: Company) -> None:
    answer = millrace.as_("Ben").post("/api/access/explain", {"action": "edit", "resource": "data_mart:Revenue"}).json()
    assert not answer["allowed"]
    ways = {way["path"]: way for way in answer["ways"]}
    assert ways["shared for maintenance"]["missing"] == ["shared for maintenance", "role technical"]
    assert ways["shared for maintenance"]["how"] == "turn the sharing toggle on"
    assert ways["shared for maintenance"]["who"] == ["Adam", "Olga", "Tess"]


def test_only_admins_ask_about_another_member(millrace: Company) -> None:
    body = {"action": "see", "resource": "data_mart:Revenue", "member": "Bea"}
    assert millrace.as_("Adam").post("/api/access/explain", body).json()["allowed"]
    for who in ("Tess", "Ben", "Dora"):
        answer = millrace.as_(who).post("/api/access/explain", body)
        assert answer.status_code == 403, who
        assert answer.json()["ways"][0]["missing"] == ["role owner or admin"]


def test_asking_about_oneself_by_name_needs_no_right(millrace: Company) -> None:
    body = {"action": "see", "resource": "data_mart:Revenue", "member": "ben"}
    assert millrace.as_("Ben").post("/api/access/explain", body).status_code == 200


def test_a_hidden_resource_answers_exactly_like_a_missing_one(millrace: Company) -> None:
    ben = millrace.as_("Ben")
    for path in ("explain", "who-can"):
        hidden = ben.post(f"/api/access/{path}", {"action": "see", "resource": "table:raw.orders"})
        missing = ben.post(f"/api/access/{path}", {"action": "see", "resource": "table:raw.nothing"})
        assert hidden.status_code == missing.status_code == 404
        assert hidden.json()["detail"] == "There is no table raw.orders that you may see"
        same = {"request_id": 0, "detail": hidden.json()["detail"].replace("orders", "nothing")}
        assert hidden.json() | same == missing.json() | {"request_id": 0}
    hidden_id, missing_id = millrace.id("table", "raw.orders"), "tbl_00000000000000000000"
    answers = [ben.get(f"/api/resources/{one}") for one in (hidden_id, missing_id)]
    assert [one.status_code for one in answers] == [404, 404]
    assert answers[0].json() | {"request_id": 0} == answers[1].json() | {"request_id": 0}
    assert {k: v for k, v in answers[0].headers.items() if k != "x-request-id"} == {
        k: v for k, v in answers[1].headers.items() if k != "x-request-id"
    }


def test_a_saved_query_is_nobody_elses_not_even_an_admins(millrace: Company) -> None:
    query = millrace.id("saved_query", "Largest orders")
    assert millrace.as_("Ana").get(f"/api/resources/{query}").status_code == 200
    for who in ("Adam", "Olga"):
        api = millrace.as_(who)
        assert api.get(f"/api/resources/{query}").status_code == 404
        about = {"action": "see", "resource": "saved_query:Largest orders", "member": "Ana"}
        assert api.post("/api/access/explain", about).status_code == 404
        assert api.post("/api/access/what-can", {"kind": "saved_query", "member": "Ana"}).json()["items"] == []
        assert "Largest orders" not in api.get("/api/access/export").text


def test_explanations_leave_out_names_that_the_reader_may_not_see(millrace: Company) -> None:
    millrace.as_("Adam").change(
        change="grant", to="Bea", resource="table:raw.orders", level="viewer"
    ).raise_for_status()
    answer = millrace.as_("Tom").post("/api/access/explain", {"action": "edit", "resource": "pipeline:Refine orders"})
    assert answer.status_code == 404
    millrace.as_("Adam").change(change="grant", to="Tom", resource="layer:trusted", level="viewer").raise_for_status()
    seen = millrace.as_("Tom").post("/api/access/explain", {"action": "edit", "resource": "pipeline:Refine orders"})
    assert "trusted.orders" in seen.text
    assert "secret" not in seen.text


@pytest.mark.parametrize(
    ("who", "resource", "status"),
    [
        ("Tess", "data_mart:Revenue", 200),
        ("Ben", "data_mart:Revenue", 403),
        ("Adam", "data_mart:Revenue", 200),
        ("Tess", "table:raw.orders", 200),
        ("Tom", "table:raw.orders", 403),
        ("Tess", "space:Sales data", 200),
        ("Tom", "space:Sales data", 403),
        ("Dora", "space:Sales data", 200),
        ("Ben", "destination:Finance sheet", 200),
        ("Tess", "organization", 403),
        ("Adam", "organization", 200),
        ("Tess", "member:Ben", 403),
        ("Adam", "member:Ben", 200),
    ],
)
def test_who_can_is_for_those_who_share_and_for_admins(millrace: Company, who: str, resource: str, status: int) -> None:
    action = {"organization": "create_layer", "member:Ben": "remove"}.get(resource, "see")
    answer = millrace.as_(who).post("/api/access/who-can", {"action": action, "resource": resource})
    assert answer.status_code == status, answer.text


def test_who_can_pages_by_name(millrace: Company) -> None:
    body = {"action": "see", "resource": "data_mart:Revenue", "limit": 2}
    names, cursor = [], None
    while True:
        page = millrace.as_("Adam").post("/api/access/who-can", {**body, "cursor": cursor}).json()
        assert len(page["items"]) <= 2
        names += [one["name"] for one in page["items"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert names == ["Adam", "Ana", "Bea", "Ben", "Dora", "Olga", "Tess"]


def test_a_cursor_of_another_question_is_refused(millrace: Company) -> None:
    body = {"action": "see", "resource": "data_mart:Revenue", "limit": 1}
    cursor = millrace.as_("Adam").post("/api/access/who-can", body).json()["next_cursor"]
    other = {**body, "action": "edit", "cursor": cursor}
    answer = millrace.as_("Adam").post("/api/access/who-can", other)
    assert answer.status_code == 422
    assert "another list" in answer.json()["detail"]


def test_what_can_lists_what_a_member_sees_with_what_they_can_do(millrace: Company) -> None:
    found = millrace.as_("Ben").post("/api/access/what-can", {"kind": "report"}).json()
    assert [(one["name"], "run" in one["actions"]) for one in found["items"]] == [("Weekly revenue", True)]
    other = millrace.as_("Adam").post("/api/access/what-can", {"kind": "table", "member": "Ana"}).json()
    assert [(one["name"], one["actions"]) for one in other["items"]] == [
        ("trusted.orders", ["see", "execute", "follow"])
    ]
    assert millrace.as_("Ben").post("/api/access/what-can", {"kind": "table", "member": "Ana"}).status_code == 403


def test_creating_can_be_asked_with_its_place(millrace: Company) -> None:
    body = {"action": "create", "kind": "report", "with": {"data_mart": "Revenue", "destination": "Finance sheet"}}
    assert millrace.as_("Ben").post("/api/access/explain", body).json()["allowed"]
    assert not millrace.as_("Tom").post("/api/access/explain", body).json()["allowed"]
    missing = {**body, "with": {"data_mart": "Revenue", "destination": "Nowhere"}}
    assert not millrace.as_("Adam").post("/api/access/explain", missing).json()["allowed"]


def test_me_says_who_i_am(millrace: Company) -> None:
    me = millrace.as_("Tom").get("/api/access/me").json()
    assert (me["name"], me["role"], me["scope"]) == ("Tom", "technical", "selected")
    assert "invite_technical" in me["allowed"]
    assert "create_layer" not in me["allowed"]
    narrowed = millrace.as_("Olga", read_only=True).get("/api/access/me").json()
    assert narrowed["read_only"]
    assert narrowed["allowed"] == []


def test_the_rule_tables_can_be_read(millrace: Company) -> None:
    tables = {one["kind"]: one for one in millrace.as_("Bea").get("/api/access/tables").json()["tables"]}
    paths = {path["name"]: path for path in tables["data_mart"]["paths"]}
    assert paths["shared for reporting"]["grants"] == ["see", "use"]
    assert "in scope" in paths["shared for reporting"]["condition"]
    assert "save" not in tables["data_mart"]["actions"]


@pytest.mark.parametrize(
    ("member", "kind", "state", "allowed", "says"),
    [
        ("Adam", "data_mart", {}, False, "storage"),
        ("Adam", "data_mart", {"storage": "Warehouse"}, True, None),
        ("Ben", "data_mart", {"storage": "Warehouse"}, False, "may not see"),
        ("Ana", "table", {"layer": "trusted"}, False, "edit on layer trusted"),
        ("Tess", "table", {"layer": "trusted"}, True, None),
        ("Ben", "destination", {}, True, None),
    ],
)
def test_creating_is_explained_too(
    millrace: Company, member: str, kind: str, state: dict[str, Any], allowed: bool, says: str | None
) -> None:
    found = millrace.as_(member).post("/api/access/explain", {"action": "create", "kind": kind, "with": state}).json()
    assert found["allowed"] == allowed
    told = [text for way in found["ways"] for text in way["missing"]]
    assert (says is None and not told) or any(says in text for text in told if says), told


@pytest.mark.parametrize(
    "body",
    [
        {"action": "create", "kind": "unicorn"},
        {"action": "create", "resource": "data_mart:Revenue"},
        {"action": "edit", "kind": "data_mart"},
        {"action": "edit", "resource": "organization"},
        {"action": "fly", "resource": "data_mart:Revenue"},
    ],
)
def test_a_question_that_makes_no_sense_is_said(millrace: Company, body: dict[str, Any]) -> None:
    assert millrace.as_("Adam").post("/api/access/explain", body).status_code == 422
