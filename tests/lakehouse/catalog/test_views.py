"""Views over the catalog: other engines list and load them, as far as their member may read what is behind them."""

from datetime import timedelta
from typing import Any

import pytest
from pyiceberg.exceptions import ForbiddenError
from sqlalchemy import text

from headgate.kit.clock import now
from headgate.lakehouse.catalog.work_tokens import open_work
from tests.lakehouse.catalog.support import SCHEMA, Lake
from tests.support.company import Api

SERVICE = "/iceberg/v1/namespaces/service"


def body(name: str, sql: str, **more: Any) -> dict[str, Any]:
    """A new view, as Spark sends it."""
    version = {
        "version-id": 1,
        "timestamp-ms": 1,
        "schema-id": 0,
        "summary": {"engine-name": "spark"},
        "representations": [{"type": "sql", "sql": sql, "dialect": "spark"}],
        "default-namespace": ["service"],
    }
    return {"name": name, "schema": SCHEMA, "view-version": version, "properties": {}, **more}


def statement(served: Lake, member: str, *reads: str) -> Api:
    """The catalog as a statement of a member calls it that has loaded these tables and views."""
    who, ends = served.company.id("member", member), now() + timedelta(hours=1)
    _, token = served.company.database.write(
        lambda connection: open_work(connection, now(), purpose="statement", member=who, expires=ends)
    )
    api = Api(served.company.client, token)
    for name in reads:
        found = api.get(f"{SERVICE}/views/{name}")
        if found.status_code == 404:
            found = api.get(f"{SERVICE}/tables/{name}")
        assert found.status_code == 200, found.text
    return api


def level(served: Lake, change: str, name: str) -> None:
    """Give or take Bea Viewer on a table or view."""
    wanted = {"change": change, "to": "Bea", "resource": f"table:service.{name}", "level": "viewer"}
    answer = served.company.as_("Tess").change(**wanted)
    assert answer.status_code == 200, answer.text


@pytest.fixture
def viewed(served: Lake) -> Lake:
    """Two tables and a view over each; Bea sees both views, and only the first table."""
    tess = served.api("Tess")
    for name in ("orders", "salaries"):
        tess.post(f"{SERVICE}/tables", {"name": name, "schema": SCHEMA}).raise_for_status()
        made = statement(served, "Tess", name)
        made.post(f"{SERVICE}/views", body(f"all_{name}", f"SELECT * FROM {name}")).raise_for_status()
    for name in ("orders", "all_orders", "all_salaries"):
        level(served, "grant", name)
    return served


def code(answer: Any) -> tuple[int, str]:
    error = answer.json()["error"]
    return error["code"], error["type"]


def test_stock_pyiceberg_lists_and_finds_views(viewed: Lake) -> None:
    bea = viewed.engine("Bea")
    assert sorted(bea.list_views("service")) == [("service", "all_orders"), ("service", "all_salaries")]
    assert bea.view_exists("service.all_orders")
    assert not bea.view_exists("service.nothing")
    assert ("service", "all_orders") not in bea.list_tables("service")
    with pytest.raises(ForbiddenError):
        bea.drop_view("service.all_orders")


def test_a_view_is_loaded_by_who_may_read_all_behind_it(viewed: Lake) -> None:
    bea = viewed.api("Bea")
    found = bea.get(f"{SERVICE}/views/all_orders").json()
    [version] = found["metadata"]["versions"]
    assert version["representations"] == [{"type": "sql", "sql": "SELECT * FROM orders", "dialect": "spark"}]
    assert "default-catalog" not in version
    assert "file:" not in str(found)
    refused = bea.get(f"{SERVICE}/views/all_salaries")
    assert code(refused) == (403, "ForbiddenException")
    assert "service.all_salaries" in refused.text
    assert "service.salaries" not in refused.text
    assert code(bea.get(f"{SERVICE}/views/salaries")) == code(bea.get(f"{SERVICE}/views/nothing"))


def test_what_a_view_was_before_is_not_given_out(viewed: Lake) -> None:
    found = viewed.api("Tess").get(f"{SERVICE}/views/all_salaries").json()["metadata"]
    version = {**body("all_salaries", "SELECT * FROM orders")["view-version"], "schema-id": 0}
    change = {
        "requirements": [{"type": "assert-view-uuid", "uuid": found["view-uuid"]}],
        "updates": [
            {"action": "add-view-version", "view-version": version},
            {"action": "set-current-view-version", "view-version-id": -1},
        ],
    }
    changed = statement(viewed, "Tess", "orders").post(f"{SERVICE}/views/all_salaries", change)
    answer = viewed.api("Bea").get(f"{SERVICE}/views/all_salaries")
    for found in (changed.json()["metadata"], answer.json()["metadata"]):
        assert [one["version-id"] for one in found["versions"]] == [found["current-version-id"]] == [2]
        assert [one["version-id"] for one in found["version-log"]] == [2]
    assert "FROM orders" in answer.text
    assert "FROM salaries" not in answer.text


def test_a_view_over_a_table_without_data_is_shown(viewed: Lake) -> None:
    drop = "DELETE FROM table_pointers WHERE table_id = :id"
    orders = {"id": viewed.company.id("table", "service.orders")}
    viewed.company.database.write(lambda connection: connection.execute(text(drop), orders))
    found = viewed.api("Bea").get(f"/api/tables/{viewed.company.id('table', 'service.all_orders')}")
    assert (found.status_code, found.json()["view"]["sql"]) == (200, None)
    assert "has no data and no columns yet" in viewed.api("Bea").get(f"{SERVICE}/views/all_orders").text


def test_only_statements_save_views(viewed: Lake) -> None:
    tess = viewed.api("Tess")
    for answer in (
        tess.post(f"{SERVICE}/views", body("mine", "SELECT 1")),
        tess.post(f"{SERVICE}/views/all_orders", {"requirements": [], "updates": []}),
    ):
        assert code(answer) == (403, "ForbiddenException")
        assert "CREATE OR REPLACE VIEW" in answer.text


def test_a_view_reads_what_its_statement_loaded(viewed: Lake) -> None:
    made = statement(viewed, "Tess", "all_orders", "orders")
    made.post(f"{SERVICE}/views", body("nested", "SELECT * FROM all_orders")).raise_for_status()
    [(reads,)] = viewed.rows("SELECT v.reads FROM views v JOIN resources r ON r.id = v.view_id WHERE r.name = 'nested'")
    assert "service.all_orders" in str(reads)
    level(viewed, "grant", "nested")
    assert viewed.api("Bea").get(f"{SERVICE}/views/nested").status_code == 200
    level(viewed, "revoke", "orders")
    assert code(viewed.api("Bea").get(f"{SERVICE}/views/nested")) == (403, "ForbiddenException")


def test_a_view_never_leads_back_to_itself(viewed: Lake) -> None:
    made = statement(viewed, "Tess", "all_orders")
    made.post(f"{SERVICE}/views", body("second", "SELECT * FROM all_orders")).raise_for_status()
    uuid = viewed.api("Tess").get(f"{SERVICE}/views/all_orders").json()["metadata"]["view-uuid"]
    version = {**body("all_orders", "SELECT * FROM second")["view-version"], "schema-id": 0}
    change = {
        "requirements": [{"type": "assert-view-uuid", "uuid": uuid}],
        "updates": [
            {"action": "add-view-version", "view-version": version},
            {"action": "set-current-view-version", "view-version-id": -1},
        ],
    }
    answer = statement(viewed, "Tess", "second").post(f"{SERVICE}/views/all_orders", change)
    assert (answer.status_code, "would read itself" in answer.text) == (400, True)
    change["requirements"] = [{"type": "assert-view-uuid", "uuid": "another"}]
    answer = statement(viewed, "Tess", "orders").post(f"{SERVICE}/views/all_orders", change)
    assert code(answer) == (409, "CommitFailedException")


@pytest.mark.parametrize(
    "more",
    [
        {"view-version": None},
        {"view-version": {"representations": []}},
        {"schema": {"type": "struct", "fields": [{"id": 1, "name": "a", "type": "nonsense", "required": False}]}},
        {"schema": None},
        {"properties": {"location": "file:///tmp"}},
        {"properties": {"engine_version": 7}},
        {"properties": []},
        {"name": "a.b"},
        {"name": None},
    ],
)
def test_bad_views_are_refused(viewed: Lake, more: dict[str, Any]) -> None:
    wanted = {**body("bad", "SELECT 1"), **more}
    answer = statement(viewed, "Tess").post(f"{SERVICE}/views", wanted)
    assert answer.status_code == 400, answer.text


@pytest.mark.parametrize("sql", ["", " ", "x" * 200_001, "SELECT '\0'", 7])
def test_the_sql_of_a_view_is_text_of_some_length(viewed: Lake, sql: Any) -> None:
    answer = statement(viewed, "Tess").post(f"{SERVICE}/views", body("bad", sql))
    assert answer.status_code == 400, answer.text
