"""Integrations: made by admins, seen by those who read all their tables, and their tokens narrowed to those."""

from typing import Any

from headgate.kit.clock import now
from headgate.platform.audit.events import READ, Event, record
from tests.support.company import Api, Company

PLACE = "/api/integrations"


def made(millrace: Company, **more: Any) -> dict[str, Any]:
    body = {"name": "Charts", "tables": ["service.revenue"], **more}
    answer = millrace.as_("Adam").post(PLACE, body)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def test_its_token_reads_its_tables_and_nothing_else(millrace: Company) -> None:
    found = made(millrace)
    assert found["secret"].startswith("hgt_")
    consumer = Api(millrace.client, found["secret"])
    revenue, orders = millrace.id("table", "service.revenue"), millrace.id("table", "raw.orders")
    assert consumer.get(f"/api/tables/{revenue}").status_code == 200
    assert consumer.get(f"/api/tables/{orders}").status_code == 404
    assert consumer.request("PATCH", f"/api/tables/{revenue}", json={"title": "x"}).status_code == 403
    assert consumer.post("/api/tokens", {"name": "more"}).status_code == 403
    assert consumer.post(PLACE, {"name": "more", "tables": ["service.revenue"]}).status_code == 403
    shown = millrace.as_("Adam").get(f"{PLACE}/{found['id']}").json()
    assert "secret" not in shown
    assert (shown["tables"], shown["acts_for"]) == (["service.revenue"], millrace.id("member", "Adam"))


def test_its_token_follows_what_it_lists(millrace: Company) -> None:
    found = made(millrace)
    consumer = Api(millrace.client, found["secret"])
    changed = millrace.as_("Adam").request("PATCH", f"{PLACE}/{found['id']}", json={"tables": ["raw.orders"]})
    assert changed.json()["tables"] == ["raw.orders"]
    assert consumer.get(f"/api/tables/{millrace.id('table', 'raw.orders')}").status_code == 200
    assert consumer.get(f"/api/tables/{millrace.id('table', 'service.revenue')}").status_code == 404


def test_another_token_ends_the_one_before_and_deleting_ends_the_last(millrace: Company) -> None:
    found, adam = made(millrace), millrace.as_("Adam")
    first = Api(millrace.client, found["secret"])
    renewed = adam.post(f"{PLACE}/{found['id']}/token", {})
    second = Api(millrace.client, renewed.json()["secret"])
    assert first.get(PLACE).status_code == 401
    assert second.get(PLACE).status_code == 200
    assert adam.request("DELETE", f"{PLACE}/{found['id']}").json()["name"] == "Charts"
    assert second.get(PLACE).status_code == 401


def test_members_see_those_whose_tables_they_may_all_read(millrace: Company) -> None:
    found = made(millrace, tables=["service.revenue", "trusted.orders"])
    assert millrace.as_("Tess").get(f"{PLACE}/{found['id']}").status_code == 200
    for member in ("Bea", "Ana", "Ben"):
        assert millrace.as_(member).get(f"{PLACE}/{found['id']}").status_code == 404
    assert [one["name"] for one in millrace.as_("Bea").get(PLACE).json()["items"]] == ["Dashboards"]
    for member in ("Tess", "Bea"):
        answer = millrace.as_(member).post(PLACE, {"name": "Mine", "tables": ["service.revenue"]})
        assert answer.status_code == 403, member


def test_bad_input_says_what_to_do(millrace: Company) -> None:
    adam = millrace.as_("Adam")
    for body, words in (
        ({"name": "X", "tables": []}, "tables"),
        ({"name": "X", "tables": ["raw.nothing"]}, "there is no table raw.nothing"),
        ({"name": "X", "tables": ["raw.invoices"]}, "there is no table raw.invoices"),
        ({"name": "X", "tables": ["nothing"]}, "layer.table"),
        ({"name": "X", "tables": ["service.revenue"], "expires": "2020-01-01T00:00:00Z"}, "in the future"),
    ):
        answer = adam.post(PLACE, body)
        assert (answer.status_code, words in answer.text) == (422, True), (body, answer.text)


def test_its_use_is_counted_by_table(millrace: Company) -> None:
    found, revenue = made(millrace), millrace.id("table", "service.revenue")
    about = {"action": "execute", "kind": "table", "resource_id": revenue, "token_id": found["token"]}
    events = [Event(now(), READ, allowed=True, actor_id=found["acts_for"], **about) for _ in range(3)]
    millrace.database.write(lambda connection: record(connection, events))
    [use] = millrace.as_("Adam").get(f"{PLACE}/{found['id']}").json()["uses"]
    assert (use["table"], use["reads"]) == ("service.revenue", 3)
