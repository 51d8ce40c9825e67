"""Worlds as plain data, in a database, asked by every reader that the product has."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import yaml
from sqlalchemy import Connection

from headgate.access.book import BOOK
from headgate.access.kinds import rule_kinds
from headgate.access.world_specs import World
from headgate.access.worlds import read_world
from headgate.kit.database import Database
from headgate.platform.authorization.facts import Facts
from headgate.platform.authorization.lookup import Lookup
from headgate.platform.authorization.questions import Question, check, decide, decide_in_memory
from headgate.platform.authorization.repository import Query, details, page
from headgate.platform.authorization.who_can import who_can
from headgate.schema import METADATA
from headgate.worlds.loader import load

NOW = datetime(2026, 6, 1, tzinfo=UTC)

RawWorld = dict[str, Any]


def parse(raw: RawWorld) -> World:
    """The world as the product reads it: through YAML."""
    return read_world(yaml.safe_dump(raw, allow_unicode=True, sort_keys=False), "world.yaml", need_assertions=False)


def _delete_all(connection: Connection) -> None:
    for table in reversed(METADATA.sorted_tables):
        if table.name not in {"audit_events", "leases"}:
            connection.execute(table.delete())


def empty(database: Database) -> None:
    """Remove everything from a database but its audit log."""
    database.write(_delete_all)


def reload(database: Database, raw: RawWorld) -> None:
    """Put a world into a database in place of what was there."""

    def work(connection: Connection) -> None:
        _delete_all(connection)
        load(connection, parse(raw), NOW)

    database.write(work)


def names(raw: RawWorld, kind: str) -> list[str]:
    """The names of the resources of a kind."""
    return [one["name"] for one in raw["resources"] if one["kind"] == kind]


def kinds(raw: RawWorld) -> list[str]:
    """The kinds that a world has resources of."""
    return list(dict.fromkeys(one["kind"] for one in raw["resources"]))


class Found(Lookup):
    """Looks each name up once."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self.known: dict[tuple[str, str | None], str | None] = {}

    def of(self, kind: str, name: str | None) -> str | None:
        if (kind, name) not in self.known:
            self.known[kind, name] = super().of(kind, name)
        return self.known[kind, name]


class Asked:
    """Every way to ask, over one transaction."""

    def __init__(self, connection: Connection) -> None:
        self.connection, self.lookup = connection, Found(connection)
        self.facts = Facts(connection, NOW)

    def decide(
        self, member: str | None, action: str, kind: str, name: str | None, state: RawWorld | None = None
    ) -> bool:
        """By the statement that the product sends, or from facts where it does so."""
        question = self._question(member, action, kind, name, state)
        if state is not None or name is None or action == "fire":
            return decide_in_memory(self.facts, question).allowed
        return decide(self.connection, question, NOW).allowed

    def decide_from_facts(self, member: str | None, action: str, kind: str, name: str | None) -> bool:
        """From facts in memory."""
        question = self._question(member, action, kind, name, None)
        return decide_in_memory(self.facts, question).allowed

    def _question(
        self, member: str | None, action: str, kind: str, name: str | None, state: RawWorld | None
    ) -> Question:
        return Question(self.lookup.of("member", member), action, kind, self.lookup.of(kind, name), state)

    def check(self, member: str, action: str, kind: str, name: str) -> bool:
        """By the fastest path."""
        found = self.lookup.of(kind, name)
        return check(self.connection, self.lookup.of("member", member), action, found, NOW).allowed

    def lists(self, member: str, kind: str, action: str | None, limit: int = 3) -> set[str]:
        """The names on a list, paged in threes."""
        found = self.lookup.of("member", member)
        assert found
        query = Query(found, kind, NOW, limit=limit, action=action)
        return {row.name for row in self._pages(query)}

    def _pages(self, query: Query) -> Iterator[Any]:
        rows, after = page(self.connection, query)
        yield from rows
        while after is not None:
            rows, after = page(self.connection, replace(query, after=after))
            yield from rows

    def who_can(self, action: str, kind: str, name: str | None) -> set[str]:
        """The names of those who can."""
        resource = self.lookup.of(kind, name)
        assert resource
        return {person.name for person in who_can(self.connection, action, resource, NOW, limit=1000)}

    def what_can(self, member: str, kind: str, name: str) -> set[str]:
        """The actions that a member has on a resource, as lists show them."""
        found, resource = self.lookup.of("member", member), self.lookup.of(kind, name)
        assert found
        assert resource
        rows = details(self.connection, found, [resource], NOW)
        return set(rows[0].allowed) if rows else set()


def actions_of(kind: str) -> list[str]:
    """Every action that resources of a stored kind have."""
    return list(dict.fromkeys(action for one in rule_kinds(kind) for action in BOOK.actions(one)))
