"""Proposals: each really gives what was asked for, the narrowest comes first, and nothing hidden is told by one."""

import zlib
from collections import defaultdict
from typing import Any

import pytest
from pydantic import TypeAdapter
from sqlalchemy import insert, select

from headgate.access.book import BOOK
from headgate.access.kinds import rule_kinds
from headgate.access.sql import NOBODYS
from headgate.kit.clock import now
from headgate.kit.errors import Problem
from headgate.kit.ids import kind_of, new_id
from headgate.lakehouse.models import lake_item_table, table_ref_table
from headgate.organization.access import service as governance
from headgate.organization.access.changes.schemas import Change
from headgate.organization.access_requests.candidates import candidates
from headgate.platform.authorization.facts import Facts
from headgate.platform.authorization.models import resource_table
from headgate.platform.authorization.questions import Question, decide
from headgate.platform.authorization.repository import details
from headgate.platform.unit_of_work.call import Call, Caller
from tests.organization.access_requests.conftest import PLACE, Asking

MEMBERS = ("Olga", "Adam", "Tess", "Tom", "Ana", "Ben", "Bea", "Dora")
ONE_IN = 20
CHANGE: TypeAdapter[Any] = TypeAdapter(Change)


class Undone(Exception):
    """Ends a transaction without a trace, and carries what was found in it."""


def allowed(connection: Any, members: dict[str, str], resource: str) -> dict[str, set[str]]:
    """What each member can do with a resource, as lists of resources say it."""
    rows = {name: details(connection, member, [resource], now()) for name, member in members.items()}
    return {name: set(found[0].allowed) if found else set() for name, found in rows.items()}


def tried(asking: Asking, who: str, change: Any, asked: Question, count: bool = False) -> tuple[bool, set[str]]:
    """Whether a change, made and undone, gives what was asked for; and, to be counted, who else gains by it."""
    ids = dict(asking.company.rows("SELECT name, id FROM members"))
    members = {name: ids[name] for name in MEMBERS if count}
    services = asking.company.client.app.state.services  # type: ignore[attr-defined]

    def work(connection: Any) -> None:
        before = allowed(connection, members, asked.resource or "")
        call = Call(connection, now(), Caller(ids[who]), services)
        governance.apply(call, CHANGE.validate_python(change))
        after = allowed(connection, members, asked.resource or "")
        given = bool(decide(connection, asked, now()))
        others = {name for name in members if after[name] - before[name] and ids[name] != asked.member}
        raise Undone(given, others)

    try:
        asking.company.database.write(work)
    except Undone as found:
        given, others = found.args
        return given, others
    except Problem:
        return False, set()
    raise AssertionError("the change was not undone")


def denied(asking: Asking) -> list[tuple[str, str, str]]:
    """Every member, visible resource and action that they lack."""
    ids = [row[0] for row in asking.company.rows("SELECT id FROM resources ORDER BY name_key, id")]
    found = []
    with asking.company.database.read() as connection:
        for name in MEMBERS:
            member = asking.company.id("member", name)
            for resource in ids:
                kind = kind_of(resource) or ""
                for row in details(connection, member, [resource], now()):
                    listing = {BOOK.tables[one].listed_by for one in rule_kinds(kind)}
                    if kind != "saved_query" and listing & set(row.allowed):
                        found += [(name, action, resource) for action in lacking(connection, resource, row.allowed)]
    return found


def lacking(connection: Any, resource: str, has: Any) -> list[str]:
    thing = Facts(connection, now()).thing(resource)
    return [one for one in BOOK.actions(thing.kind) if one not in has and one not in NOBODYS]


def sample(cases: list[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    """One in a few of all cases, and at least one of each kind and action."""
    by_sort: dict[tuple[Any, str], list[Any]] = defaultdict(list)
    for case in cases:
        by_sort[kind_of(case[2]), case[1]].append(case)
    first = [found[0] for found in by_sort.values()]
    return list(dict.fromkeys([*first, *(case for n, case in enumerate(cases) if n % ONE_IN == 0)]))


@pytest.mark.slow
def test_each_proposal_gives_what_was_asked_for_and_none_is_left_out(asking: Asking) -> None:
    cases = denied(asking)
    assert len(cases) > 200
    tried_at_all: dict[str, int] = defaultdict(int)
    for who, action, resource in sample(cases):
        approver = "Olga" if who == "Adam" else "Adam"
        member = asking.company.id("member", who)
        request = asking.asked(who, action, resource)
        offered = asking.proposals(approver, request)
        asked = Question(member, action, kind_of(resource) or "", resource)
        for one in offered:
            is_role = one["change"]["change"] == "set_role"
            gives, others = tried(asking, approver, one["change"], asked, count=not is_role)
            assert gives, (who, action, resource, one)
            assert one["others"] >= len(others), (who, action, resource, one, others)
            if resource in one["change"].values():
                assert one["others"] == len(others), (who, action, resource, one, others)
            tried_at_all[one["change"]["change"]] += 1
        sorts = {one["change"]["change"] for one in offered}
        for change in plain_changes(asking, member, resource):
            if change["change"] not in sorts:
                assert not tried(asking, approver, change, asked)[0], (who, action, resource, change)
        asking.withdraw(who, request).raise_for_status()
    assert {"grant", "share", "add_owner", "give_space_role", "set_role", "join_group"} <= set(tried_at_all)


def plain_changes(asking: Asking, member: str, resource: str) -> list[dict[str, Any]]:
    """Changes that somebody would think of first."""
    kind = kind_of(resource) or ""
    found: list[dict[str, Any]] = [
        {"change": "set_role", "member": member, "role": one} for one in ("technical", "admin")
    ]
    if kind in {"layer", "table", "volume"}:
        levels = ("viewer", "editor", "manager")
        found += [{"change": "grant", "to": member, "resource": resource, "level": one} for one in levels]
    if kind in {"storage", "data_mart", "destination"}:
        found += [{"change": "share", "resource": resource, one: True} for one in ("for_use", "for_maintenance")]
    if kind in {"storage", "data_mart", "destination", "report"}:
        sorts = ("technical", "business") if kind == "data_mart" else ("owner",)
        found += [{"change": "add_owner", "resource": resource, "member": member, "ownership": one} for one in sorts]
    if kind in {"space", "project", "connection", "gateway", "pipeline"}:
        space = {"change": "give_space_role", "space": asking.company.id("space", "Sales data"), "to": member}
        found += [{**space, "space_role": one} for one in ("can_view", "can_edit", "can_manage", "can_operate")]
    return found


@pytest.mark.slow
def test_proposals_to_those_who_are_no_admins_give_it_too(asking: Asking) -> None:
    offered_to = set()
    for who, action, resource in denied(asking):
        if zlib.crc32(f"{who} {action} {resource}".encode()) % 11:
            continue
        request = asking.asked(who, action, resource)
        asked = Question(asking.company.id("member", who), action, kind_of(resource) or "", resource)
        for approver in {"Tess", "Ben", "Dora", "Tom"} - {who}:
            answer = asking.show(approver, request)
            if answer.status_code != 200:
                assert answer.status_code == 404
                continue
            assert answer.json()["proposals"], (approver, who, action, resource)
            for one in answer.json()["proposals"]:
                assert tried(asking, approver, one["change"], asked)[0], (approver, who, action, resource, one)
                offered_to.add(approver)
        asking.withdraw(who, request).raise_for_status()
    assert {"Tess", "Dora"} <= offered_to


def test_the_narrowest_comes_first(asking: Asking) -> None:
    request = asking.asked("Ana", "edit", "destination:Finance sheet")
    offered = [(one["change"]["change"], one["others"]) for one in asking.proposals("Adam", request)]
    assert offered == [("add_owner", 0), ("share", 3), ("set_role", 0)]
    table = asking.asked("Ana", "edit", "table:trusted.orders")
    offered = [(one["change"]["change"], one["sentence"]) for one in asking.proposals("Adam", table)]
    assert offered == [
        ("grant", "Grant Ana Editor on the table trusted.orders"),
        ("grant", "Grant Ana Editor on the layer trusted"),
        ("set_role", "Make Ana an admin"),
    ]


def test_the_lowest_that_helps_is_enough(asking: Asking) -> None:
    asking.company.as_("Adam").change(change="share", resource="data_mart:Revenue", for_use=False).raise_for_status()
    owner = {"change": "add_owner", "resource": "report:Weekly revenue", "member": "Bea"}
    asking.company.as_("Adam").change(**owner).raise_for_status()
    technical = {"change": "set_role", "member": "Dora", "role": "technical"}
    asking.company.as_("Adam").change(**technical).raise_for_status()
    request = asking.asked("Bea", "delete", "table:service.revenue")
    levels = [one["change"].get("level") for one in asking.proposals("Adam", request)]
    assert levels == ["manager", "manager", None]
    again = asking.asked("Bea", "describe", "table:service.revenue")
    assert [one["change"].get("level") for one in asking.proposals("Adam", again)] == ["editor", "editor", None]


@pytest.fixture
def out_of_scope(asking: Asking) -> Asking:
    """Ana sees a mart as its business owner; others maintain it in the context sales, in which she does not work."""
    owner = {"change": "add_owner", "resource": "data_mart:Pipeline health", "member": "Ana", "ownership": "business"}
    asking.company.as_("Adam").change(**owner).raise_for_status()
    return asking


def test_contexts_and_scopes_are_proposed(out_of_scope: Asking) -> None:
    request = out_of_scope.asked("Ana", "edit", "data_mart:Pipeline health")
    offered = {one["change"]["change"]: one["change"] for one in out_of_scope.proposals("Adam", request)}
    finance, sales = (out_of_scope.company.id("context", name) for name in ("finance", "sales"))
    assert offered["attach_context"]["context"] == finance
    scopes = [
        one["change"] for one in out_of_scope.proposals("Adam", request) if one["change"]["change"] == "set_scope"
    ]
    assert [sorted(one["contexts"]) for one in scopes] == [sorted([finance, sales]), []]
    assert out_of_scope.approve("Adam", request, scopes[0]).status_code == 200
    assert out_of_scope.company.as_("Ana").may("edit", "data_mart:Pipeline health")


def test_in_which_contexts_somebody_works_is_told_to_admins_and_those_who_work_there(out_of_scope: Asking) -> None:
    """Tom owns the mart, and may attach any context; but not learn in this way where Ana works."""
    request = out_of_scope.asked("Ana", "edit", "data_mart:Pipeline health")
    finance = out_of_scope.company.id("context", "finance")
    assert {one["change"]["change"] for one in out_of_scope.proposals("Tom", request)} == {"add_owner"}
    assert "finance" not in out_of_scope.show("Tom", request).text
    assert finance not in out_of_scope.show("Tom", request).text
    both = {"change": "set_scope", "member": "Tom", "scope": "selected", "contexts": ["sales", "finance"]}
    out_of_scope.company.as_("Adam").change(**both).raise_for_status()
    assert out_of_scope.proposal("Tom", request, "attach_context")["context"] == finance


def test_what_the_approver_does_not_see_is_not_proposed(asking: Asking) -> None:
    """Tom manages one table, and sees its layer, but could grant nothing on that."""
    grant = {"change": "grant", "to": "Tom", "resource": "table:service.revenue", "level": "manager"}
    asking.company.as_("Adam").change(**grant).raise_for_status()
    request = asking.asked("Bea", "edit", "table:service.revenue")
    (offered,) = asking.proposals("Tom", request)
    assert offered["change"]["resource"] == asking.company.id("table", "service.revenue")


def test_on_the_starter_plan_nothing_is_proposed_that_would_be_ignored(asking: Asking) -> None:
    asking.company.as_("Olga").change(change="set_plan", plan="starter").raise_for_status()
    request = asking.asked("Bea", "grant", "table:service.revenue")
    assert asking.proposals("Adam", request) == []
    assert asking.show("Tess", request).status_code == 404
    assert asking.decline("Adam", request).status_code == 200


def test_looking_at_proposals_writes_nothing(asking: Asking) -> None:
    tables = ("grants", "owners", "space_members", "group_members", "audit_events", "notices", "audience")
    request = asking.asked("Bea", "control", "pipeline:Land shop orders")
    asking.company.token("Adam")
    before = {table: asking.count(table) for table in tables}
    assert asking.proposals("Adam", request)
    assert asking.company.as_("Adam").get(PLACE).json()["items"]
    assert {table: asking.count(table) for table in tables} == before


def test_work_is_bounded(asking_on_sqlite: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    request = asking_on_sqlite.asked("Bea", "control", "pipeline:Land shop orders")
    assert len(asking_on_sqlite.proposals("Adam", request)) > 1
    monkeypatch.setattr("headgate.organization.access_requests.proposals.MAX_PROPOSALS", 1)
    assert len(asking_on_sqlite.proposals("Adam", request)) == 1
    monkeypatch.setattr("headgate.organization.access_requests.candidates.MAX_CANDIDATES", 0)
    assert asking_on_sqlite.proposals("Adam", request) == []
    assert asking_on_sqlite.show("Tess", request).status_code == 404


def test_one_lacking_table_among_many_is_found(asking_on_sqlite: Asking) -> None:
    """A pipeline of thirty tables, of which Ana lacks the level on one, or on all of one layer."""
    adam, layer = asking_on_sqlite.company.as_("Adam"), asking_on_sqlite.company.id("layer", "service")
    adam.change(change="grant", to="Ana", resource="layer:raw", level="viewer").raise_for_status()
    pipeline, odd = asking_on_sqlite.company.id("pipeline", "Land payments"), many_tables(asking_on_sqlite, layer)
    adam.change(change="grant", to="Ana", resource="table:raw.payments", level="editor").raise_for_status()
    for level, resource in (("viewer", layer), *(("editor", one) for one in odd[1:])):
        adam.change(change="grant", to="Ana", resource=resource, level=level).raise_for_status()
    request = asking_on_sqlite.asked("Ana", "edit", pipeline)
    assert [one["change"].get("resource") for one in asking_on_sqlite.proposals("Adam", request)] == [
        odd[0],
        layer,
        None,
    ]
    for one in odd[1:]:
        adam.change(change="revoke", to="Ana", resource=one, level="editor").raise_for_status()
    assert [one["change"].get("resource") for one in asking_on_sqlite.proposals("Adam", request)] == [layer, None]


def many_tables(asking: Asking, layer: str) -> list[str]:
    """Thirty tables in a layer, all of which the pipeline that lands payments writes too."""
    pipeline = asking.company.id("pipeline", "Land payments")
    made = [new_id("table") for _ in range(30)]

    def work(connection: Any) -> None:
        pattern = asking.company.id("table", "service.revenue")
        like = connection.execute(select(resource_table).where(resource_table.c.id == pattern)).mappings().one()
        for number, identifier in enumerate(made):
            name = f"odd{number:02}"
            row = {**like, "id": identifier, "name": name, "name_key": name}
            connection.execute(insert(resource_table).values(row))
            connection.execute(insert(lake_item_table).values(id=identifier, kind="table", layer_id=layer))
            ref = {"resource_id": pipeline, "ref": f"service.{name}", "mode": "write", "item_id": identifier}
            connection.execute(insert(table_ref_table).values({**ref, "layer_id": layer, "enabled": True}))

    asking.company.database.write(work)
    return made


def test_the_order_does_not_hang_on_what_is_tried_first(
    asking_on_sqlite: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = asking_on_sqlite.asked("Ana", "edit", "destination:Finance sheet")
    monkeypatch.setattr(
        "headgate.organization.access_requests.proposals.candidates", lambda *about: candidates(*about)[::-1]
    )
    offered = [one["change"]["change"] for one in asking_on_sqlite.proposals("Adam", request)]
    assert offered == ["add_owner", "share", "set_role"]
