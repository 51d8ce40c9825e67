"""A name is resolved among what its sender sees: hidden resources of that name change no answer, and no creation."""

import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text
from starlette.testclient import TestClient

from headgate.access.book import BOOK
from headgate.access.kinds import KINDS, rule_kinds
from headgate.access.worlds import read_world
from headgate.kit.clock import now
from headgate.kit.database import Database
from headgate.platform.authorization.list_index import rebuild
from headgate.platform.unit_of_work.call import LAKE
from headgate.settings.settings import Settings
from headgate.worlds.loader import load
from tests.support.apps import app_for
from tests.support.company import Api, Company
from tests.support.databases import Databases, on_sqlite

PAIR = """
  - {{kind: storage, name: Twin {n}, owners: [Tess]}}
  - {{kind: data_mart, name: Twin {n}, storage: Twin {n}, technical_owners: [Tess], published: true}}
  - {{kind: destination, name: Twin {n}, owners: [Tess]}}
  - {{kind: report, name: Twin {n}, data_mart: Twin {n}, destination: Twin {n}, owners: [Tess], acts_for: Tess}}
  - {{kind: data_mart_trigger, name: Twin {n}, data_mart: Twin {n}, author: Tess}}
  - {{kind: report_trigger, name: Twin {n}, report: Twin {n}, author: Tess}}
  - {{kind: run, name: Twin {n}, report: Twin {n}}}
  - {{kind: pipeline, name: Twin {n}, pipeline_kind: source, output_layer: twin, writes: [twin.twin], acts_for: Tess}}
  - {{kind: pipeline_trigger, name: Twin {n}, pipeline: Twin {n}, author: Tess}}
  - {{kind: integration, name: Twin {n}, reads: [twin.twin]}}
  - {{kind: saved_query, name: Twin {n}, author: {author}, reads: [twin.twin]}}
  - {{kind: space, name: Twin {n}, owner: Tess}}
  - {{kind: gateway, name: Twin {n}, space: Twin {n}}}
  - {{kind: connection, name: Twin {n}, space: Twin {n}, owner: Tess}}
  - {{kind: project, name: Twin {n}, space: Twin {n}, owner: Tess}}
"""
WORLD = f"""
members:
  Olga: {{role: owner}}
  Tess: {{role: technical}}
  Tom: {{role: technical}}
  Nora: {{role: technical, security_roles: [space_creator]}}
resources:
  - {{kind: layer, name: twin}}
  - {{kind: layer, name: free}}
  - {{kind: table, name: twin.twin}}
  - {{kind: volume, name: twin.disk}}
{PAIR.format(n=1, author="Tess")}
{PAIR.format(n=2, author="Tom")}
  - {{kind: space, name: Open, owner: Nora}}
  - {{kind: connection, name: Mine, space: Open, owner: Nora}}
grants:
  - {{to: Tess, resource: "layer:twin", level: manager}}
  - {{to: Tom, resource: "layer:twin", level: viewer}}
  - {{to: Nora, resource: "layer:free", level: manager}}
"""
SEVERAL = tuple(
    kind for kind in KINDS if kind not in {"organization", "member", "task", "ref", "run", "saved_query", *LAKE}
)
"""Kinds in which several resources that one member sees may have one name."""
NAMES = dict.fromkeys((*SEVERAL, "run", "saved_query"), ("Twin", "Lost")) | {
    "layer": ("twin", "lost"),
    "table": ("twin.twin", "lost.lost"),
    "volume": ("twin.disk", "lost.lose"),
}
"""For each kind a hidden name, and one that nothing has."""


@contextmanager
def company_of_twins(database: Database, folder: Path) -> Iterator[Company]:
    """Two resources of one name of every kind that allows it; Nora sees none of them, Olga almost all."""

    def fill(connection: Any) -> None:
        load(connection, read_world(WORLD, "twins.yaml", need_assertions=False), now())
        connection.execute(text("UPDATE resources SET name = 'Twin', name_key = 'twin' WHERE name LIKE 'Twin %'"))
        rebuild(connection)

    database.write(fill)
    settings = Settings(data_dir=folder)
    with TestClient(app_for(settings, database), raise_server_exceptions=False) as client:
        yield Company(database, settings, client)


@pytest.fixture
def twins(database: Database, tmp_path: Path) -> Iterator[Company]:
    """For a test that changes something."""
    with company_of_twins(database, tmp_path) as found:
        yield found


@pytest.fixture(scope="module")
def shared_twins(
    module_database_dialect: str, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Company]:
    """For all tests that only ask, and are refused."""
    folder = tmp_path_factory.mktemp("twins")
    with ExitStack() as stack:
        if module_database_dialect == "sqlite":
            database = on_sqlite(folder)
        else:
            databases: Databases = request.getfixturevalue("postgres_databases")
            database = Database(stack.enter_context(databases.made()))
        stack.callback(database.close)
        yield stack.enter_context(company_of_twins(database, folder))


LIMITS: dict[str, dict[str, Any]] = {"whole": {}, "read-only": {"read_only": True}, "list": {"only": []}}


def subject(name: str, kind: str) -> dict[str, Any]:
    return {"resource": {"type": kind, "id": name}, "subject": {"type": "member", "id": "Nora"}}


def asked(kind: str, name: str) -> list[tuple[str, str, dict[str, Any]]]:
    """Every request in which a member may name a resource of a kind."""
    whole, action = f"{kind}:{name}", BOOK.tables[rule_kinds(kind)[0]].listed_by
    changes: list[dict[str, Any]] = [
        {"change": "grant", "to": "Tom", "resource": whole, "level": "viewer"},
        {"change": "revoke", "to": "Tom", "resource": whole, "level": "viewer"},
        {"change": "share", "resource": whole, "for_use": True},
        {"change": "add_owner", "resource": whole, "member": "Tom", "ownership": "owner"},
        {"change": "remove_owner", "resource": whole, "member": "Tess", "ownership": "owner"},
        {"change": "change_owner", "resource": whole, "owner": "Nora"},
        *({"change": f"{verb}_destination", "destination": name} for verb in ("delete", "restore")),
        {"change": "give_space_role", "space": name, "to": "Nora", "space_role": "can_view"},
        {"change": "take_space_role", "space": name, "to": "Nora", "space_role": "can_view"},
        {"change": "change_space", "connection": name, "space": "Open"},
        {"change": "change_space", "connection": "Mine", "space": name},
    ]
    place = {"base_url": "https://example.com", "kind": "http"}
    return [
        *(("POST", "/api/access/changes", change) for change in changes),
        *(("POST", "/api/access/what-if", {"change": change}) for change in changes),
        ("POST", "/api/access/explain", {"action": action, "resource": whole}),
        ("POST", "/api/access/who-can", {"action": action, "resource": whole}),
        ("POST", "/api/access/requests", {"action": action, "resource": whole, "reason": "please"}),
        *(("POST", "/api/access/explain", draft) for draft in drafts(kind, name)),
        ("POST", "/access/v1/evaluation", {**subject(name, kind), "action": {"name": action}}),
        ("POST", "/access/v1/search/subject", {**subject(name, kind), "action": {"name": action}}),
        ("POST", "/access/v1/search/action", subject(name, kind)),
        ("POST", "/api/connections", {"name": "New", "space": name, "place": place}),
        ("POST", "/api/volumes", {"name": "new", "layer": name}),
        ("GET", f"/api/tables?layer={name}", {}),
        ("GET", f"/api/volumes?layer={name}", {}),
        *([("GET", f"/api/resources?kind={kind}&prefix={name}&total=true", {})]),
    ]


def drafts(kind: str, name: str) -> list[dict[str, Any]]:
    """Questions about something new that would hang on a resource of this kind."""
    places = {
        "data_mart": ("report", "create"),
        "destination": ("report", "create"),
        "storage": ("data_mart", "create"),
        "report": ("report_trigger", "create"),
        "pipeline": ("pipeline_trigger", "create"),
        "space": ("connection", "add"),
        "gateway": ("connection", "add"),
        "project": ("pipeline", "create"),
        "layer": ("table", "create"),
    }
    if kind in {"table", "volume"}:
        return [{"action": "create", "kind": "saved_query", "with": {"reads": [name]}}]
    if kind not in places:
        return []
    new, action = places[kind]
    return [{"action": action, "kind": new, "with": {kind: name}}]


def answered(api: Api, request: tuple[str, str, dict[str, Any]], name: str) -> tuple[int, str]:
    """The status of the answer, and its text."""
    method, path, body = request
    answer = api.request(method, path, **({"json": body} if method == "POST" else {}))
    return answer.status_code, same(answer, name)


def same(answer: Any, name: str) -> str:
    """An answer without its request's id and the name that was sent."""
    without = re.sub(r'"request_id": "[0-9a-f]+"', "", answer.text)
    return without.replace(name, "…").replace(name.partition(".")[0], "…")


@pytest.mark.parametrize("kind", NAMES)
@pytest.mark.parametrize("limits", LIMITS)
def test_hidden_twins_answer_as_a_missing_name_does(shared_twins: Company, kind: str, limits: str) -> None:
    nora = shared_twins.as_("Nora", **LIMITS[limits])
    hidden, missing = NAMES[kind]
    for there, gone in zip(asked(kind, hidden), asked(kind, missing), strict=True):
        found, expected = answered(nora, there, hidden), answered(nora, gone, missing)
        assert found == expected, there
        assert found[0] != 500, there


@pytest.mark.parametrize("kind", SEVERAL)
def test_several_that_are_seen_are_a_conflict_that_names_their_ids(shared_twins: Company, kind: str) -> None:
    ids = [
        row[0]
        for row in shared_twins.rows(f"SELECT id FROM resources WHERE kind = '{kind}' AND name = 'Twin' ORDER BY id")
    ]
    action = BOOK.tables[rule_kinds(kind)[0]].listed_by
    for request in (
        ("POST", "/api/access/explain", {"action": action, "resource": f"{kind}:Twin"}),
        ("POST", "/access/v1/evaluation", {**subject("Twin", kind), "action": {"name": action}}),
        ("POST", "/api/access/changes", {"change": "change_owner", "resource": f"{kind}:Twin", "owner": "Tom"}),
    ):
        olga = shared_twins.as_("Olga")
        method, path, body = request
        body = {**body, **({"subject": {"type": "member", "id": "Olga"}} if "subject" in body else {})}
        answer = olga.request(method, path, json=body)
        assert answer.status_code == 409, answer.text
        assert answer.json()["ids"] == ids
        assert all(one in answer.json()["detail"] for one in ids)


@pytest.mark.parametrize("kind", ["destination", "space", "storage"])
def test_a_hidden_twin_does_not_make_a_visible_name_ambiguous(twins: Company, kind: str) -> None:
    twin = twins.rows(f"SELECT MAX(id) FROM resources WHERE kind = '{kind}' AND name = 'Twin'")[0][0]
    member = twins.id("member", "Nora")
    give = f"INSERT INTO owners (resource_id, member_id, ownership) VALUES ('{twin}', '{member}', 'owner')"
    if kind == "space":
        give = f"UPDATE spaces SET owner_id = '{member}' WHERE id = '{twin}'"
    twins.database.write(lambda connection: (connection.execute(text(give)), rebuild(connection)))
    answer = twins.as_("Nora").post("/api/access/explain", {"action": "see", "resource": f"{kind}:Twin"})
    assert answer.json()["allowed"], answer.text


def test_nobody_else_learns_the_name_of_a_saved_query(shared_twins: Company) -> None:
    olga = shared_twins.as_("Olga")
    about: Any = {"action": "see", "resource": "saved_query:{}"}
    requests: tuple[tuple[str, str, dict[str, str]], ...] = (
        ("GET", "/api/audit?resource=saved_query:{}", {}),
        ("POST", "/api/access/explain", about),
        ("POST", "/api/access/who-can", about),
    )
    for method, path, body in requests:
        answers = []
        for name in NAMES["saved_query"]:
            sent = {key: value.format(name) for key, value in body.items()}
            answers.append(answered(olga, (method, path.format(name), sent), name))
        assert answers[0] == answers[1]
        assert answers[0][0] in {404, 422}


# Creation


def place(**more: Any) -> dict[str, Any]:
    return {"place": {"kind": "http", "base_url": "https://example.com"}, **more}


def destination(api: Api, name: str) -> Any:
    return api.post("/api/destinations", place(name=name))


def test_a_resource_is_created_beside_hidden_ones_of_its_name(twins: Company) -> None:
    nora = twins.as_("Nora")
    for path, body in (
        ("/api/destinations", place(name="Twin")),
        ("/api/spaces", {"name": "Twin"}),
        ("/api/connections", place(name="Twin", space="Open")),
    ):
        answer = nora.post(path, body)
        assert answer.status_code == 200, answer.text
        assert nora.post(path, {**body, "name": "tWIN "}).status_code == 409


def test_a_name_that_a_former_owner_gave_is_free_for_them(twins: Company) -> None:
    nora, tess = twins.as_("Nora"), twins.as_("Tess")
    made = destination(nora, "Ours").json()["id"]
    nora.change(change="add_owner", resource=made, member="Tess", ownership="owner").raise_for_status()
    tess.change(change="remove_owner", resource=made, member="Nora", ownership="owner").raise_for_status()
    assert nora.get(f"/api/destinations/{made}").status_code == 404
    assert destination(nora, "Ours").status_code == 200
    # Whoever owns it now may rename it to what else its creator owns, without learning of that.
    destination(nora, "Private").raise_for_status()
    renamed = tess.request("PATCH", f"/api/destinations/{made}", json={"name": "Private"})
    assert renamed.status_code == 200, renamed.text


def test_a_name_of_ones_own_is_refused_with_the_id_deleted_or_not(twins: Company) -> None:
    nora = twins.as_("Nora")
    made = destination(nora, "Sheet").json()["id"]
    again = destination(nora, "sheet")
    assert (again.status_code, made in again.json()["detail"]) == (409, True)
    other = destination(nora, "Other").json()["id"]
    assert nora.request("PATCH", f"/api/destinations/{other}", json={"name": "Sheet"}).status_code == 409
    assert nora.request("PATCH", f"/api/destinations/{made}", json={"name": "SHEET"}).status_code == 200
    nora.request("DELETE", f"/api/destinations/{made}").raise_for_status()
    assert "which is deleted" in destination(nora, "Sheet").json()["detail"]


def test_a_deleted_one_is_restored_by_name_though_another_has_it_now(twins: Company) -> None:
    nora, tess = twins.as_("Nora"), twins.as_("Tess")
    gone = destination(nora, "Box").json()["id"]
    nora.request("DELETE", f"/api/destinations/{gone}").raise_for_status()
    live = destination(tess, "Box").json()["id"]
    tess.change(change="add_owner", resource=live, member="Nora", ownership="owner").raise_for_status()
    seen = nora.post("/api/access/explain", {"action": "use", "resource": "destination:Box"})
    assert seen.json()["allowed"]
    nora.change(change="restore_destination", destination="Box").raise_for_status()
    assert nora.get(f"/api/destinations/{gone}").status_code == 200
    assert nora.post("/api/access/explain", {"action": "use", "resource": "destination:Box"}).status_code == 409
