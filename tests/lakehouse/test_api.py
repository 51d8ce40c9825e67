"""Layers, tables and volumes over HTTP: lists, texts, renames, deletes and restores, by the rights of who asks."""

from typing import Any

import pytest

from headgate.kit.paging import Cursor
from headgate.lakehouse.items import service
from headgate.lakehouse.models import lake_text_table
from headgate.lakehouse.trash import deletion
from tests.lakehouse.support import acting, everything, is_indexed, put
from tests.organization.profile.support import at_once, counted, told
from tests.support.company import Company

NOWHERE = {"layer": f"lay_{'0' * 20}", "table": f"tbl_{'0' * 20}", "volume": f"vol_{'0' * 20}"}
HIDDEN = {"layer": "raw", "table": "raw.orders", "volume": "raw.invoices"}
BAD = ["a.b", "`a`", "..", "a\u0000", "ä", "ｒａｗ", "a" * 129, "system", "", "a b", "%2e", "a\n"]


def path(millrace: Company, kind: str, name: str) -> str:
    return f"/api/{kind}s/{millrace.id(kind, name)}"


def patch(millrace: Company, who: str, place: str, **body: Any) -> Any:
    return millrace.as_(who).request("PATCH", place, json=body)


def delete(millrace: Company, who: str, place: str) -> Any:
    return millrace.as_(who).request("DELETE", place)


def names(answer: Any) -> list[str]:
    assert answer.status_code == 200, answer.text
    return [one["name"] for one in answer.json()["items"]]


def selects(statements: list[str]) -> int:
    """How many of these read; what was used when is written beside."""
    return sum(one.lstrip().startswith("SELECT") for one in statements)


# Lists


@pytest.mark.parametrize(
    ("who", "layers", "tables", "volumes"),
    [
        ("Adam", ["raw", "service", "trusted"], 4, 1),
        ("Tess", ["raw", "service", "trusted"], 4, 1),
        ("Tom", ["raw"], 2, 1),
        ("Ana", ["trusted"], 1, 0),
        ("Bea", ["service"], 1, 0),
        ("Dora", [], 0, 0),
    ],
)
def test_lists_show_what_is_visible(millrace: Company, who: str, layers: list[str], tables: int, volumes: int) -> None:
    api = millrace.as_(who)
    assert names(api.get("/api/layers")) == layers
    assert len(names(api.get("/api/tables"))) == tables
    assert len(names(api.get("/api/volumes"))) == volumes


def test_tables_are_listed_by_layer_and_beginning_and_page(millrace: Company) -> None:
    raw = millrace.id("layer", "raw")
    for n in range(7):
        acting(millrace, "Tom", lambda call, n=n: service.create_item(call, "table", raw, f"t{n}"))
    api = millrace.as_("Tom")
    for layer in ("raw", "RAW", raw):
        assert names(api.get("/api/tables", layer=layer, prefix="t")) == [f"raw.t{n}" for n in range(7)]
    assert names(api.get("/api/tables", prefix="raw.o")) == ["raw.orders"]
    found, cursor = [], None
    while True:
        page = api.get("/api/tables", layer="raw", limit=2, **({"cursor": cursor} if cursor else {})).json()
        found += [one["name"] for one in page["items"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert found == ["raw.orders", "raw.payments", *(f"raw.t{n}" for n in range(7))]
    assert names(api.get("/api/tables", layer="raw", sort="-name", limit=1)) == ["raw.t6"]


def test_a_layer_that_is_hidden_lists_like_one_that_is_missing(millrace: Company) -> None:
    api = millrace.as_("Ana")
    hidden, missing = api.get("/api/tables", layer="raw"), api.get("/api/tables", layer="nowhere")
    assert hidden.status_code == missing.status_code == 404
    same = {"request_id": 0, "detail": hidden.json()["detail"].replace("raw", "nowhere")}
    assert {**hidden.json(), **same} == {**missing.json(), "request_id": 0}


@pytest.mark.parametrize("cursor", ["x", "W10", "WyJ0YWJsZSBuYW1lICIsIDEsIDJd"])
def test_a_made_up_cursor_is_refused_in_words(millrace_on_sqlite: Company, cursor: str) -> None:
    millrace = millrace_on_sqlite
    table = path(millrace, "table", "raw.orders")
    for place in ("/api/layers", "/api/tables", "/api/volumes", "/api/deleted", *(f"{table}/{one}" for one in PAGED)):
        answer = millrace.as_("Adam").get(place, cursor=cursor)
        assert answer.status_code == 422, place
        assert "cursor" in answer.json()["detail"]


PAGED = ("grants", "snapshots", "history", "dependents")


def test_a_cursor_with_the_wrong_values_inside_is_refused_too(millrace: Company) -> None:
    table = millrace.id("table", "raw.orders")
    purposes = {
        f"/api/tables/{table}/snapshots": f"snapshots of {table}",
        f"/api/tables/{table}/history": f"commits to {table}",
        "/api/deleted": "deleted",
    }
    for place, purpose in purposes.items():
        for value in ("x", "9" * 19, "-1", "0001-01-01T00:00:00+14:00", ""):
            answer = millrace.as_("Adam").get(place, cursor=Cursor(value, "1").encode(purpose))
            assert answer.status_code in {200, 422}, (place, value, answer.text)


@pytest.mark.parametrize("kind", ["layer", "table", "volume"])
def test_a_list_takes_the_same_number_of_statements_for_any_number(millrace: Company, kind: str) -> None:
    api, found, raw = millrace.as_("Adam"), [], millrace.id("layer", "raw")
    for batch in (0, 10):
        for n in range(batch):
            if kind == "layer":
                acting(millrace, "Adam", lambda call, n=n: service.create_layer(call, f"l{n}"))
            else:
                acting(millrace, "Adam", lambda call, n=n: service.create_item(call, kind, raw, f"t{n}"))
        with counted(millrace) as statements:
            assert api.get(f"/api/{kind}s").status_code == 200
        found.append(selects(statements))
    assert found[0] == found[1]


# One


@pytest.mark.parametrize("kind", ["layer", "table", "volume"])
def test_each_shows_what_the_caller_can_do_with_it(millrace: Company, kind: str) -> None:
    place = path(millrace, kind, HIDDEN[kind])
    shown = millrace.as_("Tom").get(place).json()
    assert shown["name"] == HIDDEN[kind]
    assert "edit" in shown["allowed"]
    assert "delete" not in shown["allowed"]
    assert shown["via"] == ["Viewer", "Editor"]
    assert (shown["layer"] or {}).get("name") == (None if kind == "layer" else "raw")
    assert "delete" in millrace.as_("Tess").get(place).json()["allowed"]


@pytest.mark.parametrize("kind", ["layer", "table", "volume"])
def test_what_is_hidden_answers_like_what_is_missing_on_every_route(millrace: Company, kind: str) -> None:
    hidden, missing = millrace.id(kind, HIDDEN[kind]), NOWHERE[kind]
    api = millrace.as_("Dora")
    routes: list[tuple[str, str, Any]] = [
        ("GET", "", None), ("PATCH", "", {"title": "x"}), ("PATCH", "", {"name": "x"}), ("DELETE", "", None),
        ("GET", "/grants", None),
    ]  # fmt: skip
    if kind == "table":
        routes += [("GET", f"/{one}", None) for one in ("snapshots", "history", "dependents", "preview")]
        routes += [("PATCH", "", {"fields": [{"id": 1, "title": "x"}]})]
    for method, rest, body in routes:
        answers = []
        for identifier in (hidden, missing):
            more = {"json": body} if body else {}
            answer = api.request(method, f"/api/{kind}s/{identifier}{rest}", **more)
            answers.append((answer.status_code, {**answer.json(), "request_id": None}))
        assert answers[0] == answers[1], (method, rest)
        assert answers[0][0] == 404, (method, rest)
    for identifier in (hidden, missing):
        assert api.post(f"/api/deleted/{identifier}/restore", {}).status_code == 404


def test_an_id_of_another_kind_is_none_of_this(millrace_on_sqlite: Company) -> None:
    millrace = millrace_on_sqlite
    mart = millrace.id("data_mart", "Revenue")
    for kind in ("layer", "table", "volume"):
        assert millrace.as_("Adam").get(f"/api/{kind}s/{mart}").status_code == 422
        assert millrace.as_("Adam").get(f"/api/{kind}s/..%2f").status_code in {404, 422}


# Making


def test_an_admin_makes_a_layer_with_its_texts(millrace: Company) -> None:
    body = {"name": "Gold", "title": "  Gold  ", "description": "Line one\nline two"}
    made = millrace.as_("Adam").post("/api/layers", body).json()
    assert (made["name"], made["title"], made["description"]) == ("gold", "Gold", "Line one\nline two")
    assert made["created_by"]["name"] == "Adam"
    assert millrace.as_("Adam").post("/api/layers", {"name": "GOLD"}).status_code == 409
    for who in ("Tess", "Ben"):
        assert millrace.as_(who).post("/api/layers", {"name": "mine"}).status_code == 403
    assert is_indexed(millrace)


def test_an_editor_makes_a_volume(millrace: Company) -> None:
    made = millrace.as_("Tom").post("/api/volumes", {"layer": "raw", "name": "scans", "title": "Scans"})
    assert made.status_code == 200, made.text
    assert made.json()["name"] == "raw.scans"
    assert millrace.as_("Ana").post("/api/volumes", {"layer": "trusted", "name": "x"}).status_code == 403
    for layer in ("raw", "nowhere", "\u0130", "ra w", millrace.id("table", "raw.orders")):
        assert millrace.as_("Ana").post("/api/volumes", {"layer": layer, "name": "x"}).status_code == 404
    assert millrace.as_("Tom").post("/api/volumes", {"layer": "raw", "name": "orders"}).status_code == 409


@pytest.mark.parametrize("name", BAD)
def test_hostile_names_are_refused_with_advice(millrace_on_sqlite: Company, name: str) -> None:
    millrace = millrace_on_sqlite
    table = path(millrace, "table", "raw.orders")
    for answer in (
        millrace.as_("Adam").post("/api/layers", {"name": name}),
        millrace.as_("Adam").post("/api/volumes", {"layer": "raw", "name": name}),
        patch(millrace, "Adam", table, name=name),
    ):
        assert answer.status_code == 422, answer.text
        assert "name" in answer.json()["detail"] or "\0" in name


def test_two_who_make_the_same_name_at_once_make_one(millrace: Company) -> None:
    adam, tess = millrace.as_("Adam"), millrace.as_("Tess")
    body = {"layer": "raw", "name": "same"}
    assert at_once(*(lambda api=api: api.post("/api/volumes", body) for api in (adam, tess, adam))) == [200, 409, 409]


# Texts


def test_an_editor_describes_and_a_viewer_does_not(millrace: Company) -> None:
    for kind, name in (("layer", "trusted"), ("table", "trusted.orders")):
        place = path(millrace, kind, name)
        assert patch(millrace, "Ana", place, title="Mine").status_code == 403
        shown = patch(millrace, "Tess", place, title="Orders", description="d").json()
        assert (shown["title"], shown["description"]) == ("Orders", "d")
        shown = patch(millrace, "Tess", place, title=None).json()
        assert (shown["title"], shown["description"]) == (None, "d")
        assert patch(millrace, "Tess", place, description=" ").json()["description"] is None
    assert everything(millrace)["lake_texts"] == []
    event = told(millrace)
    assert event["action"] == "describe"
    assert event["before"]["texts"]["0"] == {"description": "d"}
    assert is_indexed(millrace)


@pytest.mark.parametrize(
    "body",
    [
        {}, {"title": "a\nb"}, {"title": "x" * 201}, {"description": "\u0007"}, {"description": "x" * 10_001},
        {"title": 3}, {"fields": [{}]}, {"fields": [{"id": 1}]}, {"fields": [{"id": 1, "name": "a", "title": "x"}]},
        {"fields": [{"name": "nope", "title": "x"}]}, {"fields": [{"id": 0, "title": "x"}]},
    ],
)  # fmt: skip
def test_texts_that_cannot_be_used_are_refused(millrace_on_sqlite: Company, body: Any) -> None:
    millrace = millrace_on_sqlite
    answer = millrace.as_("Adam").request("PATCH", path(millrace, "table", "raw.orders"), json=body)
    assert answer.status_code == 422, answer.text
    assert everything(millrace)["lake_texts"] == []


# Renaming


def test_renaming_keeps_grants_and_moving_needs_the_other_layer(millrace: Company) -> None:
    place = path(millrace, "table", "service.revenue")
    assert patch(millrace, "Bea", place, name="mine").status_code == 403
    assert patch(millrace, "Tess", place, name="income").json()["name"] == "service.income"
    assert millrace.as_("Bea").get(place).json()["name"] == "service.income"
    assert patch(millrace, "Tess", place, layer="trusted").json()["name"] == "trusted.income"
    assert millrace.as_("Bea").get(place).json()["layer"]["name"] == "trusted"
    assert patch(millrace, "Tess", place, layer="nowhere").status_code == 404
    assert patch(millrace, "Tess", place, layer="raw", name="orders").status_code == 409
    assert patch(millrace, "Tess", path(millrace, "layer", "raw"), name="landing").status_code == 403
    assert patch(millrace, "Adam", path(millrace, "layer", "raw"), name="landing").json()["name"] == "landing"
    assert is_indexed(millrace)


def test_a_patch_is_all_or_nothing(millrace: Company) -> None:
    place = path(millrace, "table", "raw.orders")
    before = everything(millrace)
    assert patch(millrace, "Tom", place, title="Orders", name="o").status_code == 403
    assert patch(millrace, "Tess", place, title="Orders", name="payments").status_code == 409
    assert everything(millrace) == before


# Deleting and restoring


def test_what_was_deleted_is_listed_for_who_may_restore_it_and_comes_back(millrace: Company) -> None:
    table = millrace.id("table", "service.revenue")
    put(millrace, lake_text_table, resource_id=table, field_id=0, title="Revenue")
    assert delete(millrace, "Bea", f"/api/tables/{table}").status_code == 403
    gone = delete(millrace, "Tess", f"/api/tables/{table}").json()
    assert (gone["name"], gone["deleted_by"]["name"]) == ("service.revenue", "Tess")
    assert millrace.as_("Bea").get("/api/layers").json()["items"] == []
    for who, expected in (("Tess", [table]), ("Adam", [table]), ("Bea", []), ("Tom", [])):
        found = millrace.as_(who).get("/api/deleted").json()["items"]
        assert [one["id"] for one in found] == expected, who
    assert millrace.as_("Tess").get("/api/deleted").json()["items"] == [gone]
    assert millrace.as_("Bea").post(f"/api/deleted/{table}/restore", {}).status_code == 404
    back = millrace.as_("Tess").post(f"/api/deleted/{table}/restore", {}).json()
    assert (back["id"], back["title"]) == (table, "Revenue")
    assert names(millrace.as_("Bea").get("/api/tables")) == ["service.revenue"]
    assert millrace.as_("Adam").get("/api/deleted").json()["items"] == []


def test_a_narrowed_token_restores_nothing_beyond_its_limits(millrace: Company) -> None:
    table, raw = millrace.id("table", "raw.orders"), millrace.id("layer", "raw")
    listed = millrace.as_("Tess", only=[table])
    whole = millrace.as_("Tess", only=[raw])
    assert delete(millrace, "Tess", f"/api/tables/{table}").status_code == 200
    for api in (listed, millrace.as_("Tess", read_only=True)):
        assert api.get("/api/deleted").json()["items"] == []
        assert api.post(f"/api/deleted/{table}/restore", {}).status_code == 404
    assert len(whole.get("/api/deleted").json()["items"]) == 1
    assert whole.post(f"/api/deleted/{table}/restore", {}).status_code == 200
    assert listed.get(f"/api/tables/{table}").status_code == 200


def test_the_list_of_deleted_pages_the_newest_first(millrace: Company) -> None:
    raw, made = millrace.id("layer", "raw"), []
    for n in range(5):
        item = acting(millrace, "Tess", lambda call, n=n: service.create_item(call, "volume", raw, f"v{n}"))
        acting(millrace, "Tess", lambda call, item=item: deletion.delete_item(call, item))
        made.append(item)
    found, cursor = [], None
    while True:
        page = millrace.as_("Tess").get("/api/deleted", limit=2, **({"cursor": cursor} if cursor else {})).json()
        found += [one["id"] for one in page["items"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert found == made[::-1]


def test_a_table_that_is_made_anew_inherits_nothing(millrace: Company) -> None:
    raw, old = millrace.id("layer", "raw"), millrace.id("table", "raw.orders")
    millrace.as_("Adam").change(change="grant", to="Bea", resource=old, level="manager").raise_for_status()
    patch(millrace, "Tess", f"/api/tables/{old}", title="Orders")
    assert delete(millrace, "Tess", f"/api/tables/{old}").status_code == 200
    new = acting(millrace, "Tom", lambda call: service.create_item(call, "table", raw, "orders"))
    assert millrace.as_("Bea").get(f"/api/tables/{new}").status_code == 404
    shown = millrace.as_("Tess").get(f"/api/tables/{new}").json()
    assert (shown["id"], shown["title"]) == (new, None)
    taken = millrace.as_("Tess").post(f"/api/deleted/{old}/restore", {})
    assert taken.status_code == 409
    assert "a new name" in taken.json()["detail"]
    back = millrace.as_("Tess").post(f"/api/deleted/{old}/restore", {"name": "old_orders"}).json()
    assert back["name"] == "raw.old_orders"
    assert millrace.as_("Bea").get(f"/api/tables/{old}").json()["title"] == "Orders"


# Grants


def grants(millrace: Company, who: str, place: str, **more: Any) -> Any:
    return millrace.as_(who).get(f"{place}/grants", **more)


def test_grants_are_shown_to_who_manages_with_those_of_the_layer(millrace: Company) -> None:
    place = path(millrace, "table", "service.revenue")
    millrace.as_("Tess").change(
        change="grant", to="group:All", resource="table:service.revenue", level="viewer", expires="2999-01-01"
    ).raise_for_status()
    found = grants(millrace, "Tess", place).json()["items"]
    told_of = [(one["to"]["name"], one["to_kind"], one["level"], one["on"]["name"], one["inherited"]) for one in found]
    assert told_of == [
        ("Bea", "member", "viewer", "revenue", False),
        ("All", "group", "viewer", "revenue", False),
        ("Tess", "member", "manager", "service", True),
    ]
    assert found[1]["expires_at"] == "2999-01-01T00:00:00Z"
    assert found[1]["created_by"]["name"] == "Tess"
    assert not found[1]["ended"]
    for who in ("Bea", "Ben"):
        assert grants(millrace, who, place).status_code == 403
    assert grants(millrace, "Tess", path(millrace, "layer", "service")).json()["items"] == [
        {**found[2], "inherited": False}
    ]


def test_grants_page_and_take_the_same_number_of_statements(millrace: Company) -> None:
    place, adam = path(millrace, "table", "raw.orders"), millrace.as_("Adam")
    for who in ("Tom", "Ana", "Ben", "Bea"):
        for level in ("viewer", "editor"):
            adam.change(change="grant", to=who, resource="table:raw.orders", level=level).raise_for_status()
    whole = grants(millrace, "Tess", place).json()["items"]
    found, cursor = [], None
    while True:
        page = grants(millrace, "Tess", place, limit=3, **({"cursor": cursor} if cursor else {})).json()
        found += page["items"]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert found == whole
    assert len(whole) == 10
    counts = []
    for limit in (1, 10):
        with counted(millrace) as statements:
            grants(millrace, "Tess", place, limit=limit)
        counts.append(selects(statements))
    assert counts[0] == counts[1]


def test_what_a_manager_may_and_may_not_grant(millrace: Company) -> None:
    """The table of the access model: Viewer and Editor to others and groups, never Manager, never to oneself."""
    tess, on = millrace.as_("Tess"), "table:raw.orders"

    def answer(api: Any, **change: Any) -> int:
        return int(api.change(change="grant", resource=on, **change).status_code)

    assert answer(tess, to="Ben", level="viewer") == 200
    assert answer(tess, to="Ben", level="editor") == 200
    assert answer(tess, to="group:analysts", level="editor") == 200
    assert answer(tess, to="group:All", level="viewer") == 200
    assert answer(tess, to="Ben", level="manager") == 403
    assert answer(tess, to="Tess", level="viewer") == 403
    assert answer(millrace.as_("Adam"), to="Ben", level="manager") == 200
    assert answer(millrace.as_("Tom"), to="Ana", level="viewer") == 403
    assert millrace.as_("Dora").may("execute", on)
    revoke = {"change": "revoke", "resource": on, "to": "Ben"}
    assert tess.change(**revoke, level="manager").status_code == 403
    assert tess.change(**revoke, level="viewer").status_code == 200


def test_a_managers_grants_end_no_later_than_their_own(millrace: Company) -> None:
    adam, on = millrace.as_("Adam"), "table:raw.orders"
    adam.change(change="grant", to="Ben", resource=on, level="manager", expires="2990-01-01").raise_for_status()
    ben = millrace.as_("Ben")
    for expires, status in (("2990-01-01", 200), ("2990-01-02", 403), (None, 403), ("1990-01-01", 422)):
        more = {"expires": expires} if expires else {}
        found = ben.change(change="grant", to="Bea", resource=on, level="viewer", **more)
        assert found.status_code == status, (expires, found.text)
    adam.change(change="revoke", to="Ben", resource=on, level="manager").raise_for_status()
    assert millrace.as_("Bea").may("execute", on)
    assert ben.change(change="grant", to="Dora", resource=on, level="viewer").status_code == 404


def test_on_the_starter_plan_everyone_manages_data_and_nobody_grants(millrace: Company) -> None:
    millrace.as_("Olga").change(change="set_plan", plan="starter").raise_for_status()
    for who in ("Olga", "Tess", "Dora"):
        found = millrace.as_(who).change(change="grant", to="Ben", resource="table:raw.orders", level="viewer")
        assert found.status_code == 403
        assert "Starter" in found.text or "plan" in found.text
    place = path(millrace, "table", "raw.orders")
    assert "delete" in millrace.as_("Dora").get(place).json()["allowed"]
    assert patch(millrace, "Dora", place, title="x").status_code == 200
    assert grants(millrace, "Dora", place).status_code == 403
    assert grants(millrace, "Adam", place).status_code == 200
    assert millrace.as_("Dora").post("/api/layers", {"name": "x"}).status_code == 403
    assert delete(millrace, "Dora", place).status_code == 200
    assert len(millrace.as_("Bea").get("/api/deleted").json()["items"]) == 1
    millrace.as_("Olga").change(change="set_plan", plan="growth").raise_for_status()
    assert millrace.as_("Bea").get("/api/deleted").json()["items"] == []


def test_a_revoke_holds_at_the_next_request(millrace: Company) -> None:
    bea, place = millrace.as_("Bea"), path(millrace, "table", "service.revenue")
    assert bea.get(place).status_code == 200
    millrace.as_("Tess").change(
        change="revoke", to="Bea", resource="table:service.revenue", level="viewer"
    ).raise_for_status()
    assert bea.get(place).status_code == 404
    assert bea.get(f"{place}/preview").status_code == 404
    assert names(bea.get("/api/tables")) == names(bea.get("/api/layers")) == []


# What reads and writes a table


def dependents(millrace: Company, who: str, name: str, **narrowing: Any) -> list[tuple[str, str, str]]:
    api = millrace.as_(who, **narrowing)
    found = api.get(f"{path(millrace, 'table', name)}/dependents")
    assert found.status_code == 200, found.text
    return [(one["kind"], one["name"], one["mode"]) for one in found.json()["items"]]


def test_dependents_are_those_that_the_caller_may_see(millrace: Company) -> None:
    assert dependents(millrace, "Adam", "raw.orders") == [
        ("pipeline", "Land shop orders", "write"),
        ("pipeline", "Refine orders", "read"),
    ]
    assert dependents(millrace, "Tom", "raw.orders") == [("pipeline", "Land shop orders", "write")]
    assert dependents(millrace, "Bea", "service.revenue") == [
        ("integration", "Dashboards", "read"),
        ("data_mart", "Revenue", "read"),
    ]
    assert dependents(millrace, "Adam", "raw.orders", only=[millrace.id("table", "raw.orders")]) == []


def test_dependents_page(millrace: Company) -> None:
    place = f"{path(millrace, 'table', 'raw.orders')}/dependents"
    first = millrace.as_("Adam").get(place, limit=1).json()
    second = millrace.as_("Adam").get(place, limit=1, cursor=first["next_cursor"]).json()
    assert [first["items"][0]["name"], second["items"][0]["name"]] == ["Land shop orders", "Refine orders"]
    assert second["next_cursor"] is None


def test_a_table_before_its_first_commit_is_shown_without_facts(millrace: Company) -> None:
    shown = millrace.as_("Adam").get(path(millrace, "table", "raw.orders")).json()
    assert (shown["columns"], shown["rows"], shown["snapshots"], shown["snapshot"]) == ([], None, 0, None)
    place = path(millrace, "table", "raw.orders")
    for rest in ("snapshots", "history"):
        assert millrace.as_("Adam").get(f"{place}/{rest}").json() == {"items": [], "next_cursor": None}
    assert millrace.as_("Adam").get(f"{place}/preview").status_code == 409
