"""Millrace Foods, the demo's company, behind the real application, asked over HTTP by its members."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import text
from starlette.testclient import TestClient

from headgate.kit.clock import now
from headgate.kit.database import Database
from headgate.organization.tokens.service import create
from headgate.platform.authorization.lookup import Lookup
from headgate.settings.settings import Settings
from tests.support.apps import app_for
from tests.support.databases import fill


class Api:
    """The API, as one member uses it."""

    def __init__(self, client: TestClient, token: str | None) -> None:
        self.client, self.token = client, token

    def request(self, method: str, path: str, **more: Any) -> Any:
        headers = {**({"Authorization": f"Bearer {self.token}"} if self.token else {}), **more.pop("headers", {})}
        return self.client.request(method, path, headers=headers, **more)

    def get(self, path: str, **parameters: Any) -> Any:
        return self.request("GET", path, params=parameters)

    def post(self, path: str, body: Any) -> Any:
        return self.request("POST", path, json=body)

    def change(self, **change: Any) -> Any:
        return self.post("/api/access/changes", change)

    def may(self, action: str, resource: str) -> bool:
        """The answer to: may I?"""
        answer = self.post("/api/access/explain", {"action": action, "resource": resource})
        return bool(answer.status_code == 200 and answer.json()["allowed"])


class Company:
    """The company, its database, and its members' tokens."""

    def __init__(self, database: Database, settings: Settings, client: TestClient) -> None:
        self.database, self.settings, self.client = database, settings, client
        self._tokens: dict[str, str] = {}

    def id(self, kind: str, name: str) -> str:
        """The id that a name stands for."""
        with self.database.read() as connection:
            found = Lookup(connection).of(kind, name)
        assert found, (kind, name)
        return found

    def token(self, member: str, **narrowing: Any) -> str:
        """A token of a member; made once, unless narrowed."""
        if narrowing or member not in self._tokens:
            identifier = self.id("member", member)
            made = self.database.write(lambda c: create(c, identifier, "test", now(), **narrowing)).secret
            if narrowing:
                return made
            self._tokens[member] = made
        return self._tokens[member]

    def as_(self, member: str | None, **narrowing: Any) -> Api:
        """The API, as a member uses it; None for nobody."""
        return Api(self.client, self.token(member, **narrowing) if member else None)

    @property
    def services(self) -> Any:
        """What requests to the application work with."""
        app: Any = self.client.app
        return app.state.services

    def rows(self, statement: str) -> list[Any]:
        """What the database says."""
        with self.database.read() as connection:
            return [tuple(row) for row in connection.execute(text(statement))]


@contextmanager
def company(database: Database, folder: Path, **settings: Any) -> Iterator[Company]:
    """The company in this database, whose tables exist and are empty."""
    fill(database)
    found = Settings(data_dir=folder, **settings)
    with TestClient(app_for(found, database), raise_server_exceptions=False) as client:
        yield Company(database, found, client)
