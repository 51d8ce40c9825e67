"""What a refusal says: what was refused, what is missing, who could give it, and how to ask. The same everywhere."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from headgate.access.actions import words
from headgate.access.explain import reasons
from headgate.kit.clock import now
from headgate.kit.database import Database
from headgate.lakehouse.catalog.work_tokens import open_work
from headgate.platform.authorization.facts import Facts
from tests.support.company import Api, Company, company

EDIT = "You may not edit: write to and alter table service.revenue. Missing: Editor (Adam, Olga or Tess could grant the level). You have Viewer"
END = "2031-01-01T00:00:00Z"


def refused(answer: Any) -> dict[str, Any]:
    assert answer.status_code == 403, answer.text
    return dict(answer.json())


@pytest.mark.parametrize(
    ("action", "kind", "what", "says"),
    [
        ("edit", "table", "table a.b", "edit: write to and alter table a.b"),
        ("edit", "layer", "layer a", "edit: create tables and volumes in layer a"),
        ("delete", "table", "table a.b", "delete table a.b"),
        ("grant", "table", "table a.b", "grant, change and revoke Viewer and Editor (table a.b)"),
        ("execute", "table", "table a.b", "execute: query its rows (table a.b)"),
        ("manage_billing", "organization", "", "manage billing: manage billing and change the plan"),
        ("fly", "table", "table a.b", "fly (table a.b)"),
    ],
)
def test_an_action_stands_in_a_sentence(action: str, kind: str, what: str, says: str) -> None:
    assert words(action, kind, what) == says


def _statement(millrace: Company, member: str, **more: Any) -> Api:
    """The catalog, as the statement of a member calls it."""
    identifier = millrace.id("member", member)
    _, secret = millrace.database.write(
        lambda c: open_work(
            c, now(), purpose="statement", member=identifier, expires=now() + timedelta(hours=1), **more
        )
    )
    return Api(millrace.client, secret)


@pytest.fixture
def engines(database: Database, tmp_path: Path) -> Iterator[Company]:
    """The company, with engines on its own host."""
    with company(database, tmp_path, warehouse={"external_engines": "same-host"}) as found:
        yield found


def test_a_table_that_may_not_be_changed_is_named_with_the_level_it_takes(engines: Company) -> None:
    """Over HTTP, to engines, and to the statement of a member, in the same words."""
    millrace = engines
    place = f"/api/tables/{millrace.id('table', 'service.revenue')}"
    describe = refused(millrace.as_("Bea").request("PATCH", place, json={"title": "x"}))["detail"]
    missing = "Missing: Editor (Adam, Olga or Tess could grant the level). You have Viewer"
    assert describe.endswith(f"(table service.revenue). {missing}")
    drop = refused(millrace.as_("Bea").request("DELETE", place))["detail"]
    missing = "Missing: Manager (Adam or Olga could grant Manager). You have Viewer"
    assert drop == f"You may not delete table service.revenue. {missing}"
    schema = {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "n", "required": False, "type": "int"}]}
    body = {"name": "revenue", "schema": schema}
    for api in (millrace.as_("Bea"), _statement(millrace, "Bea")):
        error = refused(api.post("/iceberg/v1/namespaces/service/tables", body))["error"]
        assert (error["type"], error["message"]) == ("ForbiddenException", EDIT)
    for api in (millrace.as_("Ana"), _statement(millrace, "Ana")):
        assert api.post("/iceberg/v1/namespaces/service/tables", body).status_code == 404


def test_a_narrowed_token_is_told_apart_from_who_made_it(millrace: Company) -> None:
    place = f"/api/tables/{millrace.id('table', 'service.revenue')}"
    own = refused(millrace.as_("Tess", read_only=True).request("DELETE", place))
    assert (
        own["detail"]
        == "This token is restricted and may not delete table service.revenue; use a token without restrictions"
    )
    neither = refused(millrace.as_("Bea", read_only=True).request("DELETE", place))
    assert neither["detail"].endswith("Missing: Manager (Adam or Olga could grant Manager). You have Viewer")
    assert "ask" not in neither


@pytest.mark.parametrize(
    ("to", "level", "says"),
    [
        ("Bea", "editor", "a Manager grants to others, not to themselves"),
        ("Ana", "manager", "a Manager grants Viewer and Editor; Manager is granted by admins"),
        ("Ana", "viewer", f"your own Manager grant ends at {END}, and no grant by it ends later"),
    ],
)
def test_a_manager_who_grants_too_much_is_told_why(millrace: Company, to: str, level: str, says: str) -> None:
    on = {"resource": "table:service.revenue"}
    millrace.as_("Adam").change(change="grant", to="Bea", level="manager", expires=END, **on).raise_for_status()
    problem = refused(millrace.as_("Bea").change(change="grant", to=to, level=level, **on))
    assert says in problem["detail"]
    assert problem["detail"].startswith("You may not make this grant on table service.revenue: ")
    assert problem["detail"].endswith("Adam or Olga could make it")
    assert "ask" not in problem
    what_if = {"change": {"change": "grant", "to": to, "level": level, **on}}
    assert refused(millrace.as_("Bea").post("/api/access/what-if", what_if))["detail"] == problem["detail"]
    fine = {"change": "grant", "to": "Ana", "level": "viewer", "expires": END, **on}
    assert millrace.as_("Bea").change(**fine).status_code == 200


def test_who_may_grant_nothing_is_told_that_instead(millrace: Company) -> None:
    problem = refused(
        millrace.as_("Bea").change(change="grant", to="Bea", level="editor", resource="table:service.revenue")
    )
    assert problem["detail"] == (
        "You may not grant, change and revoke Viewer and Editor (table service.revenue). "
        "Missing: Manager (Adam or Olga could grant Manager). You have Viewer"
    )


def test_an_end_that_a_token_has_is_no_reason_of_its_own(millrace: Company) -> None:
    on = {"resource": "table:raw.orders", "level": "editor"}
    api = millrace.as_("Tess", expires=now() + timedelta(hours=1))
    assert "not to themselves" in refused(api.change(change="grant", to="Tess", **on))["detail"]


@pytest.mark.parametrize(
    ("member", "change"),
    [
        ("Bea", {"change": "share", "resource": "data_mart:Revenue", "for_use": False}),
        ("Bea", {"change": "grant", "to": "Ana", "resource": "table:service.revenue", "level": "viewer"}),
        ("Tess", {"change": "set_plan", "plan": "custom"}),
        ("Ben", {"change": "add_owner", "resource": "data_mart:Revenue", "member": "Ana", "ownership": "technical"}),
    ],
)
def test_what_a_refusal_advises_to_ask_for_can_be_asked_for(
    millrace: Company, member: str, change: dict[str, Any]
) -> None:
    api = millrace.as_(member)
    problem = refused(api.change(**change))
    wanted = {"action": problem["action"], "resource": problem["resource"], "reason": "I need it"}
    assert api.post(problem["ask"].removeprefix("POST "), wanted).status_code == 200


def test_nobody_is_advised_to_ask_for_a_saved_query(millrace: Company) -> None:
    place = f"/api/sql/saved/{millrace.id('saved_query', 'Largest orders')}"
    problem = refused(millrace.as_("Ana").request("DELETE", place))
    assert "ask" not in problem
    assert problem["detail"] == (
        "You may not delete saved query Largest orders. "
        "Missing: Editor on table trusted.orders (Adam, Olga or Tess could grant the level)"
    )


def test_a_pipeline_that_may_not_be_made_is_refused_with_table_level_and_who_could_grant_it(millrace: Company) -> None:
    definition = {"kind": "history", "table": "trusted.orders", "output": "service.versions", "keys": ["id"]}
    answer = millrace.as_("Bea").post("/api/pipelines", {"name": "x", "definition": definition})
    detail = refused(answer)["detail"]
    assert detail.startswith("You may not add a pipeline here. Missing: ")
    assert "Editor, of layer service" in detail
    assert "(Adam, Olga or Tess could grant the level; Bea has no level on layer service)" in detail
    assert "trusted" not in detail


def test_who_lacks_a_level_is_named_once(millrace: Company) -> None:
    """The author of a trigger stands behind a member whom the pipeline acts for."""
    millrace.as_("Adam").change(change="revoke", to="Tess", resource="layer:raw", level="manager").raise_for_status()
    trigger = millrace.id("pipeline_trigger", "Hourly")
    with millrace.database.read() as connection:
        thing = Facts(connection, now()).thing(trigger)
        texts = [text for reason in reasons(None, "fire", thing, lambda _: True) for text in reason.missing]
    assert any("(Tess) lacks Viewer" in text or "(Tess) lacks Editor" in text for text in texts), texts
    assert all(text.count("lacks") <= 1 and "lacks it" not in text for text in texts), texts
