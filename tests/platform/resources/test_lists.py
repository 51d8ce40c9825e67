"""Lists: sorted, paged by keyset, counted up to a limit, and showing exactly what the member may see."""

from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import Connection, delete, insert, update

from headgate.kit.clock import now
from headgate.kit.database import fetch
from headgate.marts.models import storage_table
from headgate.organization.groups.models import group_table
from headgate.platform.authorization import repository
from headgate.platform.authorization.fact_tables import grant_table, group_member_table
from headgate.platform.authorization.list_index import rebuild
from headgate.platform.authorization.models import resource_table
from headgate.platform.authorization.repository import ResourceSort
from headgate.platform.directory.models import principal_table
from tests.support.company import Company

pytestmark = pytest.mark.both_databases


def names(answer: Any) -> list[str]:
    return [one["name"] for one in answer.json()["items"]]


def many_storages(millrace: Company, count: int) -> None:
    """Storages of two creators, named and dated so that every order is another one."""
    creators = [millrace.id("member", name) for name in ("Tess", "Ana", "Olga")]
    start = now() - timedelta(days=400)

    def work(connection: Connection) -> None:
        resources, storages = [], []
        for number in range(count):
            name = f"Storage {count - number:04d}"
            resources.append(
                {
                    "id": f"sto_{number:020d}",
                    "kind": "storage",
                    "namespace": "storage",
                    "scope_id": "",
                    "name": name,
                    "name_key": name.lower(),
                    "created_at": start + timedelta(hours=number * 7 % count),
                    "updated_at": start + timedelta(hours=number * 13 % count),
                    "created_by_id": creators[number % 3],
                }
            )
            toggles = {"shared_for_use": number % 2 == 0, "shared_for_maintenance": number % 5 == 0}
            storages.append({"id": f"sto_{number:020d}", **toggles})
        connection.execute(insert(resource_table), resources)
        connection.execute(insert(storage_table), storages)
        rebuild(connection)

    millrace.database.write(work)


def walk(millrace: Company, who: str, **parameters: Any) -> list[dict[str, Any]]:
    """Every page of a list, to the end."""
    found: list[dict[str, Any]] = []
    cursor: dict[str, str] = {}
    while True:
        page = millrace.as_(who).get("/api/resources", limit=7, total=not cursor, **parameters, **cursor).json()
        found += page["items"]
        assert (page["total"] is None) == bool(cursor)
        if page["next_cursor"] is None:
            return found
        cursor = {"cursor": page["next_cursor"]}


@pytest.mark.parametrize("sort", list(ResourceSort))
def test_every_order_pages_through_everything_once(millrace: Company, sort: ResourceSort) -> None:
    many_storages(millrace, 40)
    fields = {"name": "name", "created": "created_at", "updated": "updated_at"}
    field = fields.get(sort.value.removeprefix("-"))
    for who in ("Adam", "Tess"):
        found = walk(millrace, who, kind="storage", sort=sort.value)
        assert len({one["id"] for one in found}) == len(found)
        order = [(one[field] if field else one["created_by"]["name"].lower(), one["id"]) for one in found]
        if field == "name":
            order = [(value.lower(), identifier) for value, identifier in order]
        assert order == sorted(order, reverse=sort.descending)
    assert len(walk(millrace, "Adam", kind="storage", sort=sort.value)) == 41
    assert len(walk(millrace, "Tess", kind="storage", sort=sort.value)) == 25
    assert walk(millrace, "Ben", kind="storage", sort=sort.value) == []


def test_a_prefix_narrows_and_knows_no_case(millrace: Company) -> None:
    many_storages(millrace, 40)
    assert len(walk(millrace, "Adam", kind="storage", prefix="STORAGE 000")) == 9
    assert walk(millrace, "Adam", kind="storage", prefix="zzz") == []
    assert len(walk(millrace, "Adam", kind="storage", prefix="w", sort="-created")) == 1


def test_an_action_narrows_to_where_one_has_it(millrace: Company) -> None:
    many_storages(millrace, 40)
    edit = walk(millrace, "Tess", kind="storage", action="edit", sort="updated")
    assert len(edit) == 9
    assert all("edit" in one["allowed"] for one in edit)
    deleted = millrace.as_("Bea").get("/api/resources", kind="destination", action="restore")
    assert names(deleted) == ["Old mailbox"]
    assert "Old mailbox" not in names(millrace.as_("Bea").get("/api/resources", kind="destination"))


def test_totals_are_exact_up_to_ten_thousand(millrace: Company) -> None:
    many_storages(millrace, 40)
    assert millrace.as_("Adam").get("/api/resources", kind="storage", total=True).json()["total"] == "41"
    assert millrace.as_("Tess").get("/api/resources", kind="storage", action="edit", total=True).json()["total"] == "9"
    assert millrace.as_("Ben").get("/api/resources", kind="storage", total=True).json()["total"] == "0"


def test_beyond_ten_thousand_the_total_says_so(millrace_on_sqlite: Company) -> None:
    many_storages(millrace_on_sqlite, 10_000)
    assert millrace_on_sqlite.as_("Adam").get("/api/resources", kind="storage", total=True).json()["total"] == "10,000+"


def test_pipelines_and_tasks_share_a_list(millrace: Company) -> None:
    assert names(millrace.as_("Adam").get("/api/resources", kind="pipeline")) == [
        "Land payments",
        "Land shop orders",
        "Refine orders",
    ]
    assert names(millrace.as_("Tom").get("/api/resources", kind="pipeline")) == ["Land payments", "Land shop orders"]
    assert names(millrace.as_("Bea").get("/api/resources", kind="pipeline")) == ["Land shop orders"]
    assert names(millrace.as_("Dora").get("/api/resources", kind="pipeline", action="list")) == ["Land shop orders"]
    assert names(millrace.as_("Tom").get("/api/resources", kind="pipeline", action="see")) == ["Land payments"]


def test_a_grant_that_ends_leaves_the_list_by_itself(millrace: Company) -> None:
    soon = now() + timedelta(hours=1)
    grant = {"change": "grant", "to": "Ben", "resource": "table:raw.orders", "level": "viewer"}
    millrace.as_("Adam").change(**grant, expires=soon.isoformat()).raise_for_status()
    assert names(millrace.as_("Ben").get("/api/resources", kind="table")) == ["raw.orders", "trusted.orders"]
    assert names(millrace.as_("Ben").get("/api/resources", kind="layer")) == ["raw", "trusted"]
    over = update(grant_table).where(grant_table.c.expires_at == soon).values(expires_at=now())
    assert millrace.database.write(lambda connection: connection.execute(over).rowcount) == 1
    assert names(millrace.as_("Ben").get("/api/resources", kind="table")) == ["trusted.orders"]
    assert names(millrace.as_("Ben").get("/api/resources", kind="layer")) == ["trusted"]
    assert not millrace.as_("Ben").may("see", "layer:raw")


def test_a_narrowed_token_lists_what_it_reaches(millrace: Company) -> None:
    orders, raw = millrace.id("table", "raw.orders"), millrace.id("layer", "raw")
    one = millrace.as_("Tess", only=[orders])
    assert names(one.get("/api/resources", kind="table")) == ["raw.orders"]
    layers = one.get("/api/resources", kind="layer").json()["items"]
    assert [(layer["name"], layer["allowed"]) for layer in layers] == [("raw", ["see"])]
    assert names(one.get("/api/resources", kind="data_mart")) == []
    assert one.get(f"/api/resources/{raw}").json()["allowed"] == ["see"]
    assert one.get(f"/api/resources/{millrace.id('data_mart', 'Revenue')}").status_code == 404
    layer = millrace.as_("Tess", only=[raw])
    assert names(layer.get("/api/resources", kind="table")) == ["raw.orders", "raw.payments"]
    reading = millrace.as_("Tess", read_only=True)
    assert reading.get(f"/api/resources/{orders}").json()["allowed"] == ["see", "execute", "follow"]
    assert names(reading.get("/api/resources", kind="table", action="edit")) == []


def test_a_removed_creator_is_not_named_and_sorts_first(millrace: Company) -> None:
    many_storages(millrace, 6)
    millrace.as_("Olga").change(change="remove_member", member="Ana").raise_for_status()
    found = walk(millrace, "Adam", kind="storage", sort="created_by")
    assert [one["created_by"] and one["created_by"]["name"] for one in found] == [
        None,
        None,
        "Olga",
        "Olga",
        "Tess",
        "Tess",
        "Tess",
    ]


def test_a_cursor_belongs_to_its_list(millrace: Company) -> None:
    many_storages(millrace, 20)
    adam = millrace.as_("Adam")
    cursor = adam.get("/api/resources", kind="storage", limit=5).json()["next_cursor"]
    assert adam.get("/api/resources", kind="storage", limit=9, cursor=cursor).status_code == 200
    for other in ({"kind": "report"}, {"kind": "storage", "sort": "-name"}, {"kind": "storage", "prefix": "s"}):
        answer = adam.get("/api/resources", cursor=cursor, **other)
        assert answer.status_code == 422
        assert "cursor" in answer.json()["detail"]


@pytest.mark.parametrize("kind", ["storage", "pipeline", "table", "run"])
def test_a_page_costs_the_same_number_of_statements_however_long_the_list(
    millrace: Company, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = fetch
    calls: list[str] = []

    def counting(connection: Any, statement: str, parameters: Any) -> Any:
        calls.append(statement)
        return original(connection, statement, parameters)

    monkeypatch.setattr(repository, "fetch", counting)
    costs = []
    for count in (100, 300) if kind == "storage" else (1,):
        if kind == "storage":
            millrace.database.write(
                lambda c: c.execute(delete(resource_table).where(resource_table.c.id.like("sto_0000%")))
            )
            many_storages(millrace, count)
        calls.clear()
        millrace.as_("Adam").get("/api/resources", kind=kind, limit=50)
        costs.append(len(calls))
    assert len(set(costs)) == 1
    assert costs[0] <= 6


def test_a_member_of_very_many_groups_still_has_one_list(millrace: Company) -> None:
    """More keys than one statement merges: tables granted to 450 groups, all of them the member's."""
    ben, table = millrace.id("member", "Ben"), millrace.id("table", "raw.orders")

    def work(connection: Connection) -> None:
        ids = [f"grp_{number:020d}" for number in range(1, 451)]
        connection.execute(insert(principal_table), [{"id": one} for one in ids])
        connection.execute(
            insert(group_table), [{"id": one, "name": one, "name_key": one, "created_at": now()} for one in ids]
        )
        connection.execute(insert(group_member_table), [{"group_id": one, "member_id": ben} for one in ids])
        grants = [
            {"id": f"grt_{n:020d}", "resource_id": table, "grantee_id": one, "level": 1, "created_at": now()}
            for n, one in enumerate(ids)
        ]
        connection.execute(insert(grant_table), grants)
        rebuild(connection)

    millrace.database.write(work)
    answer = millrace.as_("Ben").get("/api/resources", kind="table", limit=1, total=True)
    assert (names(answer), answer.json()["total"]) == (["raw.orders"], "2")
    rest = millrace.as_("Ben").get("/api/resources", kind="table", limit=1, cursor=answer.json()["next_cursor"])
    assert names(rest) == ["trusted.orders"]
