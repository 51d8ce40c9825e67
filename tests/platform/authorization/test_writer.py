"""One writer of resources keeps the list index: by structure, and over random operations of the product."""

import ast
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from sqlalchemy import Connection, text

from headgate.access.actions import LEVELS, ROLES, SECURITY_ROLES, SPACE_ROLES
from headgate.platform.authorization.list_index import rebuild
from tests.spaces.connections.support import PLACE, SECRET
from tests.support.company import Company

SOURCE = Path(__file__).parents[3] / "src/headgate"
WRITER = "platform/authorization/writer.py"
OTHER_WRITERS = {"worlds/loader.py": "fills an empty database, and rebuilds the index"}
STEPS = int(os.environ.get("OPERATIONS", "60"))


# By structure


def written(tree: ast.AST) -> Iterator[str]:
    """The tables that a module inserts into, updates or deletes from, as it calls them."""
    names = {"insert", "update", "delete"}
    verbs = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("sqlalchemy")
        for alias in node.names
        if alias.name in names
    }
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id=verb), args=[ast.Name(id=table), *_]) if verb in verbs:
                yield table
            case ast.Call(func=ast.Attribute(value=ast.Name(id=table), attr=verb)) if verb in names:
                yield table


def test_no_other_module_writes_resources() -> None:
    tables = {"resource_table", "audience_table"}
    found = {
        str(path.relative_to(SOURCE))
        for path in SOURCE.rglob("*.py")
        if not tables.isdisjoint(written(ast.parse(path.read_text())))
    }
    assert found - set(OTHER_WRITERS) == {WRITER}


@pytest.mark.parametrize(
    "code",
    [
        "from sqlalchemy import insert\ninsert(resource_table)",
        "from sqlalchemy import delete as remove\nremove(resource_table).where(x)",
        "resource_table.update().values(x=1)",
    ],
)
def test_a_write_is_found_in_every_form(code: str) -> None:
    assert list(written(ast.parse(code))) == ["resource_table"]


# Over random operations


class Undo(Exception):
    """Ends a transaction without a trace."""


def difference(millrace: Company) -> tuple[set[Any], set[Any]]:
    """What the index lists too much, and what it lacks, by the rule tables."""
    found: list[set[Any]] = []

    def entries(connection: Connection) -> set[Any]:
        return {tuple(row) for row in connection.execute(text("SELECT * FROM audience"))}

    def work(connection: Connection) -> None:
        found.append(entries(connection))
        rebuild(connection)
        found.append(entries(connection))
        raise Undo

    with pytest.raises(Undo):
        millrace.database.write(work)
    kept, rebuilt = found
    return kept - rebuilt, rebuilt - kept


class Operations:
    """What members do with resources, sensible or not."""

    def __init__(self, millrace: Company, seed: int) -> None:
        self.millrace, self.rng = millrace, Random(seed)  # noqa: S311 - a test's own dice
        self.api = millrace.as_("Olga")

    def ids(self, kind: str) -> list[str]:
        """The resources of a kind; one that is nowhere, if there are none."""
        rows = self.millrace.rows(f"SELECT id FROM resources WHERE kind = '{kind}' ORDER BY id")
        return [row[0] for row in rows]

    def one(self, *kinds: str) -> str:
        return self.rng.choice([identifier for kind in kinds for identifier in self.ids(kind)] or ["none"])

    def name(self) -> str:
        return f"name_{self.rng.randrange(9)}"

    def someone(self) -> str:
        return self.rng.choice(("Tess", "Ana", "Ben", "Bea", "Tom", "Adam"))

    def principal(self) -> str:
        groups = self.millrace.rows("SELECT name FROM groups ORDER BY name")
        return self.rng.choice([self.someone(), *(f"group:{row[0]}" for row in groups)])

    # Operations

    def layer(self) -> Any:
        return self.api.post("/api/layers", {"name": self.name()})

    def volume(self) -> Any:
        return self.api.post("/api/volumes", {"layer": self.one("layer"), "name": self.name()})

    def rename(self) -> Any:
        kind = self.rng.choice(("layer", "table", "volume"))
        body: dict[str, Any] = {"name": self.name()}
        if kind != "layer" and self.rng.random() < 0.5:
            body["layer"] = self.one("layer")
        return self._patch(f"{kind}s", self.one(kind), body)

    def describe(self) -> Any:
        kind = self.rng.choice(("layer", "table", "volume"))
        return self._patch(f"{kind}s", self.one(kind), {"description": self.name()})

    def restore(self) -> Any:
        rows = self.millrace.rows("SELECT id FROM deleted_items ORDER BY id")
        return self.api.post(f"/api/deleted/{self.rng.choice(rows or [['none']])[0]}/restore", {})

    def destination(self) -> Any:
        body = {"name": self.name(), "place": PLACE, "secrets": {"password": SECRET}}
        return self.millrace.as_(self._active()).post("/api/destinations", body)

    def space(self) -> Any:
        return self.api.post("/api/spaces", {"name": self.name()})

    def connection(self) -> Any:
        body = {"name": self.name(), "space": self.one("space"), "place": PLACE, "secrets": {"password": SECRET}}
        return self.api.post("/api/connections", body)

    def renamed(self) -> Any:
        kind = self.rng.choice(("destination", "connection", "integration", "pipeline"))
        return self._patch(f"{kind}s", self.one(kind), {"name": self.name()})

    def integration(self) -> Any:
        return self.api.post("/api/integrations", {"name": self.name(), "tables": self._tables()})

    def retargeted_integration(self) -> Any:
        return self._patch("integrations", self.one("integration"), {"tables": self._tables()})

    def pipeline(self) -> Any:
        body = {"name": self.name(), "definition": self._definition()}
        if self.rng.random() < 0.3:
            body["project"] = self.one("project")
        return self.api.post("/api/pipelines", body)

    def saved_pipeline(self) -> Any:
        return self._patch("pipelines", self.one("pipeline"), {"definition": self._definition()})

    def trigger(self) -> Any:
        body = {"name": self.name(), "when": {"kind": "cron", "cron": "0 5 * * *"}}
        return self.api.post(f"/api/pipelines/{self.one('pipeline')}/triggers", body)

    def saved_trigger(self) -> Any:
        return self._patch("triggers", self.one("pipeline_trigger"), {"name": self.name()})

    def run(self) -> Any:
        answer = self.api.post(f"/api/pipelines/{self.one('pipeline')}/runs", {})
        if answer.status_code == 200:
            self.api.post(f"/api/runs/{answer.json()['id']}/cancel", None)
        return answer

    def saved_query(self) -> Any:
        return self.millrace.as_(self._active()).request(
            "PATCH", f"/api/sql/saved/{self.one('saved_query')}", json={"name": self.name()}
        )

    def delete(self) -> Any:
        paths = {
            "layer": "layers",
            "table": "tables",
            "volume": "volumes",
            "destination": "destinations",
            "connection": "connections",
            "integration": "integrations",
            "pipeline": "pipelines",
            "pipeline_trigger": "triggers",
            "run": "runs",
        }
        kind = self.rng.choice(list(paths))
        return self.api.request("DELETE", f"/api/{paths[kind]}/{self.one(kind)}")

    def restored_destination(self) -> Any:
        return self.api.post(f"/api/destinations/{self.one('destination')}/restore", {})

    def group(self) -> Any:
        return self.api.post("/api/groups", {"name": self.name()})

    def deleted_group(self) -> Any:
        rows = self.millrace.rows("SELECT id FROM groups ORDER BY id")
        return self.api.request("DELETE", f"/api/groups/{self.rng.choice(rows)[0]}")

    def access(self) -> Any:
        rng, data = self.rng, self.one("layer", "table", "volume")
        grant = {"to": self.principal(), "resource": data, "level": rng.choice(list(LEVELS))}
        shared = {"resource": self.one("storage", "data_mart", "destination")}
        owner = {"resource": self.one("storage", "destination", "report"), "member": self.someone()}
        groups = self.millrace.rows("SELECT name FROM groups ORDER BY name")
        group = {"group": rng.choice(groups)[0], "member": self.someone()}
        role = {"space": self.one("space"), "to": self.principal(), "space_role": rng.choice(SPACE_ROLES)}
        security = {"member": self.someone(), "security_role": rng.choice(SECURITY_ROLES)}
        changes: list[dict[str, Any]] = [
            {"change": "grant", **grant},
            {"change": "revoke", **grant},
            {"change": "share", **shared, "for_use": rng.random() < 0.5, "for_maintenance": rng.random() < 0.5},
            {"change": rng.choice(("add_owner", "remove_owner")), **owner},
            {"change": rng.choice(("attach_context", "detach_context")), **shared, "context": "finance"},
            {"change": rng.choice(("join_group", "leave_group")), **group},
            {"change": rng.choice(("give_space_role", "take_space_role")), **role},
            {"change": rng.choice(("give_security_role", "take_security_role")), **security},
            {"change": "set_role", "member": self.someone(), "role": rng.choice(ROLES)},
            {"change": "set_scope", "member": self.someone(), "scope": "entire"},
            {"change": "change_owner", "resource": self.one("space", "project", "connection"), "owner": self.someone()},
            {"change": "change_space", "connection": self.one("connection"), "space": self.one("space")},
            {"change": "set_plan", "plan": rng.choice(("growth", "starter", "growth"))},
        ]
        if rng.random() < 0.05:
            changes = [{"change": "remove_member", "member": self.someone()}]
        return self.api.change(**rng.choice(changes))

    # Parts

    def _patch(self, path: str, identifier: str, body: dict[str, Any]) -> Any:
        return self.api.request("PATCH", f"/api/{path}/{identifier}", json=body)

    def _tables(self) -> list[str]:
        query = "SELECT l.name, t.name FROM resources t JOIN resources l ON l.id = t.scope_id WHERE t.kind = 'table'"
        names = sorted(f"{layer}.{table}" for layer, table in self.millrace.rows(query))
        return self.rng.sample(names, min(len(names), self.rng.randint(1, 2)))

    def _definition(self) -> dict[str, Any]:
        layers = self.millrace.rows("SELECT name FROM resources WHERE kind = 'layer' ORDER BY name")
        output = f"{self.rng.choice(layers)[0]}.{self.name()}"
        return {
            "kind": "notebook",
            "cells": [{"source": "1"}],
            "inputs": self._tables(),
            "outputs": [{"table": output}],
        }

    def _active(self) -> str:
        """A member who was not removed."""
        rows = self.millrace.rows("SELECT name FROM members WHERE removed_at IS NULL ORDER BY name")
        return str(self.rng.choice(rows)[0])

    def all(self) -> list[Callable[[], Any]]:
        return [getattr(self, name) for name, value in vars(Operations).items() if name[0] != "_" and name not in PARTS]


PARTS = frozenset({"all", "ids", "name", "one", "principal", "someone"})


@pytest.mark.both_databases
@pytest.mark.parametrize("seed", range(2))
def test_the_index_says_what_the_rule_tables_say_after_every_operation(millrace: Company, seed: int) -> None:
    operations = Operations(millrace, seed)
    done: set[str] = set()
    assert difference(millrace) == (set(), set())
    for _ in range(STEPS):
        operation = operations.rng.choice([*operations.all(), operations.access, operations.access, operations.access])
        answer = operation()
        assert answer.status_code < 500, (operation.__name__, answer.text)
        done |= {operation.__name__} if answer.status_code < 300 else set()
        assert difference(millrace) == (set(), set()), (operation.__name__, answer.status_code, answer.text)
    assert len(done) > len(operations.all()) // 2, sorted(done)
