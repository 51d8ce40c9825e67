"""A mill beside the demo's company, built over HTTP, and what its members do there; each case leaves it as it was."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

from headgate.kit.clock import now
from headgate.pipelines.triggers.scheduler import Firer
from tests.pipelines.runs.support import RunHand, lose
from tests.pipelines.triggers.support import Clock
from tests.spaces.connections.support import PLACE, SECRET
from tests.support.company import Api, Company

_WITH_OTHERS = {"start", "start_with_secrets", "confirm"}
"""Actions that do not come from levels alone."""
MISSING = f"pip_{'0' * 20}"


def history(table: str = "land.grain", output: str = "mill.bread", **more: Any) -> dict[str, Any]:
    return {"kind": "history", "table": table, "output": output, "keys": ["id"], **more}


def notebook(inputs: tuple[str, ...] = (), outputs: tuple[str, ...] = (), **more: Any) -> dict[str, Any]:
    written = [{"table": one} for one in outputs]
    return {"kind": "notebook", "cells": [{"source": "1"}], "inputs": inputs, "outputs": written, **more}


def source(layer: str = "land", /, connection: str | None = None, **tables: bool) -> dict[str, Any]:
    """A source with a stream for each table, enabled or not; from a volume if there is no connection."""
    streams = [{"name": f"public.{one}", "table": one, "enabled": on} for one, on in tables.items()]
    place = {"connection": connection} if connection else {"volume": "land.crates"}
    return {"kind": "source", "output_layer": layer, "streams": streams, **place}


def delivery(destination: str, *tables: str) -> dict[str, Any]:
    sent = [{"table": one, "target": f"public.{one.partition('.')[2]}"} for one in tables]
    return {"kind": "delivery", "destination": destination, "tables": sent}


class PipelineCompany:
    """The layers land and mill, on which only admins have anything, a space with a connection, and a data project."""

    def __init__(self, company: Company) -> None:
        self.company = company
        self._undo: list[tuple[str, dict[str, Any]]] = []
        self._names = count(1)
        self.clock = Clock()
        for layer in ("land", "mill"):
            self.ok(self.as_("Olga").post("/api/layers", {"name": layer}))
        self.ok(self.as_("Olga").post("/api/volumes", {"layer": "land", "name": "crates"}))
        self.tables("land.grain", "land.flour", "land.salt", "mill.bread", "mill.cake")
        self.space = self.ok(self.as_("Olga").post("/api/spaces", {"name": "Mill data"}))["id"]
        place = {"place": PLACE, "secrets": {"password": SECRET}}
        self.database = self.ok(
            self.as_("Olga").post("/api/connections", {"name": "Mill database", "space": self.space, **place})
        )["id"]
        self.sales = company.id("space", "Sales data")
        self.shop = self.ok(self.as_("Tess").post("/api/connections", {"name": "Till", "space": self.sales, **place}))[
            "id"
        ]
        self.project = company.id("project", "Shop")
        self.bakery = self.ok(self.as_("Bea").post("/api/destinations", {"name": "Bakery", **place}))["id"]

    def tables(self, *names: str) -> None:
        """Tables as pipelines make them: declared, without content."""
        identifier = self.made("Adam", notebook(outputs=names))
        self.ok(self.as_("Adam").request("DELETE", f"/api/pipelines/{identifier}"))

    # Asking

    def as_(self, member: str | None, **narrowing: Any) -> Api:
        return self.company.as_(member, **narrowing)

    @staticmethod
    def ok(answer: Any) -> Any:
        assert answer.status_code == 200, answer.text
        return answer.json()

    def save(self, member: str, definition: dict[str, Any], **more: Any) -> Any:
        """Make a pipeline; the answer."""
        body = {"name": f"Number {next(self._names)}", "definition": definition, **more}
        return self.as_(member).post("/api/pipelines", body)

    def made(self, member: str, definition: dict[str, Any], **more: Any) -> str:
        """A pipeline that was made; its id."""
        return str(self.ok(self.save(member, definition, **more))["id"])

    def patch(self, member: str, pipeline: str, **body: Any) -> int:
        """Change a pipeline; the status."""
        return int(self.as_(member).request("PATCH", f"/api/pipelines/{pipeline}", json=body).status_code)

    def start(self, member: str, pipeline: str) -> int:
        """Start a pipeline; the status. The run does not wait on."""
        answer = self.as_(member).post(f"/api/pipelines/{pipeline}/runs", {})
        if answer.status_code == 200:
            self.ok(self.as_("Olga").post(f"/api/runs/{answer.json()['id']}/cancel", None))
        return int(answer.status_code)

    def started(self, member: str, pipeline: str) -> str:
        """A run that waits; its id."""
        return str(self.ok(self.as_(member).post(f"/api/pipelines/{pipeline}/runs", {}))["id"])

    def claimed(self, member: str, pipeline: str) -> tuple[RunHand, dict[str, Any]]:
        """A run that a worker has."""
        run, hand = self.started(member, pipeline), RunHand(self.company)
        (job,) = hand.claim()
        assert job["id"] == run
        return hand, job

    def fired(self, author: str, pipeline: str, trigger: str | None = None) -> tuple[str, str]:
        """A trigger of an author, after a minute in which it was due; and the state of the run that came of it."""
        if trigger is None:
            body = {"name": "Each minute", "when": {"kind": "cron", "cron": "* * * * *"}}
            trigger = self.ok(self.as_(author).post(f"/api/pipelines/{pipeline}/triggers", body))["id"]
        behind = (now() - self.clock()).total_seconds()
        self.clock.advance(seconds=70 + max(0.0, behind))
        Firer(self.company.database, self.clock, self.clock.ticks).round()
        run = self.as_("Adam").get(f"/api/pipelines/{pipeline}/runs").json()["items"][0]
        self.as_("Adam").post(f"/api/runs/{run['id']}/cancel", None)
        return str(trigger), str(run["state"])

    def claimed_as_owner(self, member: str, task: str) -> tuple[RunHand, dict[str, Any]]:
        """The same of a task, for whose time the project's owner has all that it needs."""
        about = [{"to": "Tess", "resource": f"layer:{layer}", "level": "editor"} for layer in ("land", "mill")]
        for one in about:
            self.change(change="grant", **one)
        found = self.claimed(member, task)
        for one in about:
            self.change(change="revoke", **one)
        return found

    def claim(self) -> list[dict[str, Any]]:
        """What a worker gets."""
        return RunHand(self.company).claim()

    def delete(self, member: str, pipeline: str) -> int:
        return int(self.as_(member).request("DELETE", f"/api/pipelines/{pipeline}").status_code)

    def shown(self, member: str, pipeline: str) -> dict[str, Any]:
        return dict(self.ok(self.as_(member).get(f"/api/pipelines/{pipeline}")))

    def may(self, member: str, pipeline: str) -> set[str]:
        """What a member is told that they can do with a pipeline, by their own right; nothing if it is not there."""
        answer = self.as_(member).get(f"/api/pipelines/{pipeline}")
        listed = {one["id"] for one in self.ok(self.as_(member).get("/api/pipelines", limit=200))["items"]}
        assert (answer.status_code == 200) == (pipeline in listed), answer.text
        return set(answer.json()["allowed"]) - _WITH_OTHERS if answer.status_code == 200 else set()

    def member(self, name: str) -> str:
        return self.company.id("member", name)

    # Changing, until the case is over

    def change(self, **change: Any) -> None:
        """As an owner of the organization."""
        self.ok(self.as_("Olga").change(**change))

    def grant(self, to: str, level: str, *resources: str, **more: Any) -> None:
        """Give a level; resources are named kind:name."""
        for resource in resources:
            about = {"to": to, "resource": resource, "level": level}
            self.change(change="grant", **about, **more)
            self._undo.append(("revoke", about))

    def revoke(self, to: str, level: str, resource: str) -> None:
        about = {"to": to, "resource": resource, "level": level}
        self._undo.remove(("revoke", about))
        self.change(change="revoke", **about)

    def role(self, to: str, role: str, space: str | None = None) -> None:
        about = {"to": to, "space_role": role, "space": space or self.space}
        self.change(change="give_space_role", **about)
        self._undo.append(("take_space_role", about))

    def take(self, to: str, role: str, space: str | None = None) -> None:
        about = {"to": to, "space_role": role, "space": space or self.space}
        self._undo.remove(("take_space_role", about))
        self.change(change="take_space_role", **about)

    @contextmanager
    def case(self) -> Iterator["PipelineCompany"]:
        """A case: what it gave is taken back, and its pipelines are deleted."""
        before = {one["id"] for one in self.ok(self.as_("Olga").get("/api/pipelines", limit=200))["items"]}
        try:
            yield self
        finally:
            while self._undo:
                kind, about = self._undo.pop()
                self.as_("Olga").change(change=kind, **about)
            for one in self.ok(self.as_("Olga").get("/api/pipelines", limit=200))["items"]:
                if one["id"] not in before:
                    self._remove(one["id"])

    def _remove(self, pipeline: str) -> None:
        olga = self.as_("Olga")
        for run in self.ok(olga.get(f"/api/pipelines/{pipeline}/runs"))["items"]:
            olga.post(f"/api/runs/{run['id']}/cancel", None)
        if self.delete("Olga", pipeline) == 409:
            lose(self.company)
            assert self.delete("Olga", pipeline) == 200
