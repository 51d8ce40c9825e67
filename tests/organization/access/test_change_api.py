"""Changes over HTTP: decided, written, indexed and told to the audit log in one transaction; refused with reasons."""

import sqlite3
from typing import Any

import pytest

from tests.support.company import Company


def events(millrace: Company, sort: str) -> list[Any]:
    return list(millrace.as_("Adam").get("/api/audit", event=sort, limit=200).json()["items"])


def test_a_change_is_made_and_told_with_before_after_and_path(millrace: Company) -> None:
    answer = millrace.as_("Tess").change(change="share", resource="data_mart:Revenue", for_maintenance=True)
    assert answer.status_code == 200
    assert answer.json()["via"] == ["technical owner"]
    assert millrace.as_("Ana").may("edit", "data_mart:Revenue")
    told = events(millrace, "access.changed")[0]
    assert told["actor"] == millrace.id("member", "Tess")
    assert told["resource"] == millrace.id("data_mart", "Revenue")
    assert (told["action"], told["via"]) == ("configure_sharing", ["technical owner"])
    assert told["before"] == {"shared_for_maintenance": False}
    assert told["after"] == {"change": "share", "shared_for_maintenance": True}
    assert told["request_id"] == answer.headers["x-request-id"]


def test_a_refused_change_is_told_and_changes_nothing(millrace: Company) -> None:
    answer = millrace.as_("Ben").change(change="share", resource="data_mart:Revenue", for_maintenance=True)
    assert answer.status_code == 403
    assert {way["path"] for way in answer.json()["ways"]} == {"admin", "technical owner"}
    assert not millrace.as_("Ana").may("edit", "data_mart:Revenue")
    told = events(millrace, "access.denied")[0]
    assert (told["actor"], told["action"]) == (millrace.id("member", "Ben"), "configure_sharing")
    assert told["allowed"] is False


def test_what_is_hidden_cannot_be_changed_nor_told_from_what_is_missing(millrace: Company) -> None:
    bea = millrace.as_("Bea")
    hidden = bea.change(change="grant", to="Bea", resource="table:raw.orders", level="viewer")
    missing = bea.change(change="grant", to="Bea", resource="table:raw.nothing", level="viewer")
    assert hidden.status_code == missing.status_code == 404
    same = {"request_id": 0, "detail": hidden.json()["detail"].replace("orders", "nothing")}
    assert hidden.json() | same == missing.json() | {"request_id": 0}


@pytest.mark.parametrize(
    ("who", "change", "question"),
    [
        ("Tess", {"change": "grant", "to": "Ben", "resource": "table:raw.orders", "level": "viewer"}, ("Ben", "execute", "table:raw.orders")),
        ("Tess", {"change": "grant", "to": "group:All", "resource": "layer:raw", "level": "editor"}, ("Bea", "edit", "table:raw.orders")),
        ("Ben", {"change": "add_owner", "resource": "destination:Finance sheet", "member": "Bea"}, ("Bea", "manage_owners", "destination:Finance sheet")),
        ("Tess", {"change": "add_owner", "resource": "data_mart:Revenue", "member": "Tom", "ownership": "technical"}, ("Tom", "delete", "data_mart:Revenue")),
        ("Tess", {"change": "attach_context", "resource": "data_mart:Revenue", "context": "sales"}, ("Tom", "see", "data_mart:Revenue")),
        ("Adam", {"change": "set_role", "member": "Bea", "role": "admin"}, ("Bea", "edit", "data_mart:Revenue")),
        ("Adam", {"change": "set_scope", "member": "Tom", "scope": "entire"}, ("Tom", "see", "data_mart:Revenue")),
        ("Adam", {"change": "join_group", "group": "analysts", "member": "Bea"}, ("Bea", "see", "table:trusted.orders")),
        ("Adam", {"change": "give_security_role", "member": "Bea", "security_role": "tenant_admin"}, ("Bea", "delete", "space:Sales data")),
        ("Tess", {"change": "give_space_role", "space": "Sales data", "to": "Bea", "space_role": "can_operate"}, ("Bea", "control", "pipeline:Land shop orders")),
        ("Dora", {"change": "change_owner", "resource": "space:Sales data", "owner": "Bea"}, ("Bea", "manage_members", "space:Sales data")),
        ("Dora", {"change": "change_owner", "resource": "connection:Shop database", "owner": "Tom"}, ("Tom", "list", "connection:Shop database")),
        ("Bea", {"change": "restore_destination", "destination": "Old mailbox"}, ("Bea", "use", "destination:Old mailbox")),
        ("Olga", {"change": "set_plan", "plan": "starter"}, ("Bea", "delete", "table:raw.orders")),
    ],
    ids=lambda value: value.get("change") if isinstance(value, dict) else None,
)  # fmt: skip
def test_each_sort_of_change_takes_effect_at_once(
    millrace: Company, who: str, change: dict[str, Any], question: tuple[str, str, str]
) -> None:
    member, action, resource = question
    already = millrace.as_(member).may(action, resource)
    answer = millrace.as_(who).change(**change)
    assert answer.status_code == 200, answer.text
    assert millrace.as_(member).may(action, resource)
    assert not already or change["change"] == "change_owner"


@pytest.mark.parametrize(
    ("who", "change", "status", "says"),
    [
        ("Tess", {"change": "revoke", "to": "Ben", "resource": "table:raw.orders", "level": "viewer"}, 404, "no grant"),
        ("Tess", {"change": "remove_owner", "resource": "storage:Warehouse", "member": "Tess"}, 409, "last owner"),
        ("Tess", {"change": "remove_owner", "resource": "data_mart:Revenue", "member": "Tess", "ownership": "technical"}, 409, "last owner"),
        ("Adam", {"change": "remove_owner", "resource": "storage:Warehouse", "member": "Tess"}, 409, "last owner"),
        ("Tess", {"change": "remove_owner", "resource": "storage:Warehouse", "member": "Ben"}, 404, "no such owner"),
        ("Tess", {"change": "add_owner", "resource": "storage:Warehouse", "member": "Ben", "ownership": "technical"}, 422, "owner"),
        ("Tess", {"change": "grant", "to": "nobody", "resource": "table:raw.orders", "level": "viewer"}, 404, "nobody"),
        ("Tess", {"change": "grant", "to": "Ben", "resource": "table:raw.orders", "level": "viewer", "expires": "2020-01-01T00:00:00Z"}, 422, "future"),
        ("Tess", {"change": "grant", "to": "Ben", "resource": "data_mart:Revenue", "level": "viewer"}, 422, "layer or table or volume"),
        ("Tess", {"change": "share", "resource": "data_mart:Revenue"}, 422, "toggle"),
        ("Tess", {"change": "fly"}, 422, "fly"),
        ("Tess", {}, 422, "change"),
        ("Adam", {"change": "set_scope", "member": "Olga", "scope": "selected"}, 409, "reach everything"),
        ("Adam", {"change": "set_scope", "member": "Ben", "scope": "entire", "contexts": ["sales"]}, 422, "entire"),
        ("Adam", {"change": "set_role", "member": "Olga", "role": "business"}, 403, "change role"),
        ("Olga", {"change": "set_role", "member": "Olga", "role": "admin"}, 403, "change role"),
        ("Olga", {"change": "remove_member", "member": "Olga"}, 403, "remove"),
        ("Adam", {"change": "set_plan", "plan": "starter"}, 403, "manage billing"),
        ("Adam", {"change": "join_group", "group": "All", "member": "Bea"}, 409, "always"),
        ("Adam", {"change": "give_space_role", "space": "Tom's own", "to": "Bea", "space_role": "can_view"}, 403, "manage members"),
        ("Dora", {"change": "change_space", "connection": "Shop database", "space": "Tom's own"}, 403, "change space"),
    ],
    ids=lambda value: value.get("change") if isinstance(value, dict) else None,
)  # fmt: skip
def test_what_makes_no_sense_is_refused_with_a_sentence(
    millrace: Company, who: str, change: dict[str, Any], status: int, says: str
) -> None:
    before = millrace.rows("SELECT COUNT(*) FROM audit_events WHERE event = 'access.changed'")
    answer = millrace.as_(who).post("/api/access/changes", change)
    assert answer.status_code == status, answer.text
    assert says in answer.json()["detail"]
    assert millrace.rows("SELECT COUNT(*) FROM audit_events WHERE event = 'access.changed'") == before


def test_a_manager_grants_no_longer_than_they_hold(millrace: Company) -> None:
    end = "2030-01-01T00:00:00Z"
    millrace.as_("Adam").change(
        change="grant", to="Tom", resource="table:raw.orders", level="manager", expires=end
    ).raise_for_status()
    longer = millrace.as_("Tom").change(change="grant", to="Ben", resource="table:raw.orders", level="viewer")
    assert longer.status_code == 403
    same = millrace.as_("Tom").change(
        change="grant", to="Ben", resource="table:raw.orders", level="viewer", expires=end
    )
    assert same.status_code == 200
    millrace.as_("Adam").change(
        change="revoke", to="Tom", resource="table:raw.orders", level="manager"
    ).raise_for_status()
    assert millrace.as_("Ben").may("see", "table:raw.orders")


def test_granting_again_changes_the_end_and_keeps_one_row(millrace: Company) -> None:
    grant = {"change": "grant", "to": "Ben", "resource": "table:raw.orders", "level": "viewer"}
    for expires in ("2030-01-01T00:00:00Z", None, "2031-01-01T00:00:00+02:00"):
        millrace.as_("Adam").change(**grant, expires=expires).raise_for_status()
    ben = millrace.id("member", "Ben")
    assert millrace.rows(f"SELECT COUNT(*) FROM grants WHERE grantee_id = '{ben}'") == [(1,)]
    told = events(millrace, "access.changed")[0]
    assert told["before"]["expires"] is None
    assert told["after"]["expires"] == "2030-12-31T22:00:00Z"


def test_removing_a_member_ends_everything_they_hold(millrace: Company) -> None:
    tess, tom = millrace.id("member", "Tess"), millrace.as_("Tess")
    assert tom.get("/api/access/me").status_code == 200
    millrace.as_("Olga").change(change="remove_member", member="Tess").raise_for_status()
    assert tom.get("/api/access/me").status_code == 401
    for table, column in (("owners", "member_id"), ("grants", "grantee_id"), ("space_members", "principal_id")):
        assert millrace.rows(f"SELECT COUNT(*) FROM {table} WHERE {column} = '{tess}'") == [(0,)]
    assert millrace.rows(f"SELECT COUNT(*) FROM spaces WHERE owner_id = '{tess}'") == [(0,)]
    adam = millrace.as_("Adam")
    mart = adam.get(f"/api/resources/{millrace.id('data_mart', 'Revenue')}").json()
    assert mart["created_by"] is None
    assert (
        adam.post("/api/access/explain", {"action": "see", "resource": "organization", "member": "Tess"}).status_code
        == 404
    )
    body = {"action": "start", "resource": "report:Weekly revenue", "member": "Ben"}
    refused = adam.post("/api/access/explain", body).json()
    assert not refused["allowed"]
    assert "no longer a member" in str(refused["ways"])


def test_becoming_admin_clears_the_scope_and_leaving_selects_none(millrace: Company) -> None:
    millrace.as_("Olga").change(change="set_role", member="Tom", role="admin").raise_for_status()
    tom = millrace.id("member", "Tom")
    assert millrace.rows(f"SELECT scope FROM members WHERE id = '{tom}'") == [("entire",)]
    assert millrace.rows(f"SELECT COUNT(*) FROM member_contexts WHERE member_id = '{tom}'") == [(0,)]
    millrace.as_("Olga").change(change="set_role", member="Tom", role="technical").raise_for_status()
    assert millrace.rows(f"SELECT scope FROM members WHERE id = '{tom}'") == [("selected",)]
    given = {"change": "set_role", "member": "Tom", "role": "business", "scope": "selected", "contexts": ["finance"]}
    millrace.as_("Olga").change(**given).raise_for_status()
    assert millrace.as_("Tom").may("see", "data_mart:Revenue")


def test_what_if_tells_who_would_gain_and_lose_and_changes_nothing(millrace: Company) -> None:
    change = {"change": "share", "resource": "data_mart:Revenue", "for_use": False}
    answer = millrace.as_("Tess").post("/api/access/what-if", {"change": change}).json()
    lost = {(one["member"], one["kind"]): set(one["loses"]) for one in answer["items"]}
    assert lost["Bea", "data_mart"] == {"see", "use"}
    assert lost["Bea", "report"] == {"see"}
    assert ("Ben", "data_mart") not in lost
    assert millrace.as_("Bea").may("see", "data_mart:Revenue")
    one = millrace.as_("Adam").post("/api/access/what-if", {"change": change, "member": "Ana"}).json()
    assert {item["member"] for item in one["items"]} == {"Ana"}


def test_what_if_is_for_who_could_make_the_change_and_for_admins(millrace: Company) -> None:
    change = {"change": "share", "resource": "data_mart:Revenue", "for_use": False}
    assert millrace.as_("Ben").post("/api/access/what-if", {"change": change}).status_code == 403
    assert millrace.as_("Adam").post("/api/access/what-if", {"change": change}).status_code == 200
    hidden = {"change": "grant", "to": "Bea", "resource": "table:raw.orders", "level": "viewer"}
    assert millrace.as_("Ben").post("/api/access/what-if", {"change": hidden}).status_code == 404
    plan = {"change": "set_plan", "plan": "starter"}
    assert millrace.as_("Adam").post("/api/access/what-if", {"change": plan}).json()["total"] > 10


def test_what_if_takes_no_write_lock(millrace_on_sqlite: Company) -> None:
    other = sqlite3.connect(millrace_on_sqlite.database.engine.url.database or "", timeout=0.1)
    adam = millrace_on_sqlite.as_("Adam")
    other.execute("BEGIN IMMEDIATE")
    try:
        change = {"change": "grant", "to": "Bea", "resource": "table:raw.orders", "level": "viewer"}
        assert adam.post("/api/access/what-if", {"change": change}).status_code == 200
    finally:
        other.rollback()
        other.close()


def test_what_if_hides_what_the_asker_may_not_see(millrace: Company) -> None:
    """Tess manages the layer, and learns of the pipeline in a project only what she may list."""
    millrace.as_("Adam").change(
        change="grant", to="Tom", resource="table:trusted.orders", level="manager"
    ).raise_for_status()
    change = {"change": "grant", "to": "Bea", "resource": "table:trusted.orders", "level": "editor"}
    answer = millrace.as_("Tom").post("/api/access/what-if", {"change": change}).json()
    assert "Largest orders" not in str(answer)
    assert {one["name"] for one in answer["items"]} >= {"trusted.orders"}
