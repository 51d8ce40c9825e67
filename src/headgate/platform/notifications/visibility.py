"""Who may know the subject of a notice. The rule tables decide."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection

from headgate.access.book import BOOK
from headgate.access.kinds import KINDS, rule_kinds
from headgate.access.narrowing import UNLIMITED, Narrowing
from headgate.kit.ids import kind_of
from headgate.platform.authorization.questions import Question, decide
from headgate.platform.authorization.repository import details
from headgate.platform.authorization.who_can import who_can

EVERYONE_KNOWS = frozenset({"organization", "member"})
"""Kinds outside of resource lists: every member knows the organization and the names of other members."""
_ALL = (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class RequiredActions:
    """The required actions: a recipient needs one action of each set."""

    kind: str
    resource: str
    actions: tuple[frozenset[str], ...]


def demand(kind: str | None, resource: str | None, needs: str | None) -> RequiredActions:
    """The requirements of a notice: to know its resource, and the action it needs."""
    actions = () if needs is None else (frozenset({needs}),)
    if resource is None or resource == "organization":
        fits = kind in {None, "organization"}
        return RequiredActions("organization", "organization", actions if fits else (frozenset(),))
    stored = kind_of(resource)
    if stored is None or stored not in KINDS:
        return RequiredActions("", resource, (frozenset(),))
    if stored in EVERYONE_KNOWS:
        return RequiredActions(stored, resource, actions)
    listed = frozenset(BOOK.tables[rule_kind].listed_by for rule_kind in rule_kinds(stored))
    return RequiredActions(stored, resource, (listed | {"restore"}, *actions))


def who_may_know(connection: Connection, demand: RequiredActions, now: datetime) -> frozenset[str] | None:
    """The members who fulfil the requirements; None if there are none and everyone may know."""
    members: frozenset[str] | None = None
    for actions in demand.actions:
        people = frozenset(
            person.id
            for action in sorted(actions)
            for person in who_can(connection, action, demand.resource, now, limit=_ALL)
        )
        members = people if members is None else members & people
    return members


@dataclass(frozen=True, slots=True)
class VisibleResource:
    """What a reader may know of a resource: its name and the reader's actions."""

    name: str
    actions: frozenset[str]


class NotificationReader:
    """A member who reads notices, with the limits of their token."""

    def __init__(self, connection: Connection, member: str, now: datetime, narrowing: Narrowing = UNLIMITED) -> None:
        self._connection, self._member, self._now, self._narrowing = connection, member, now, narrowing

    def shown(self, notices: Sequence[Any]) -> dict[str, str | None]:
        """The notices that the reader may see now: their ids, and the names of their resources."""
        demands = {row.id: demand(row.kind, row.resource_id, row.needs) for row in notices}
        known_resources = self.known(
            needed.resource for needed in demands.values() if needed.kind not in EVERYONE_KNOWS
        )
        names: dict[str, str | None] = {}
        for identifier, needed in demands.items():
            resource = known_resources.get(needed.resource)
            if resource is not None and all(actions & resource.actions for actions in needed.actions):
                names[identifier] = resource.name
            elif needed.kind in EVERYONE_KNOWS and self._has(needed):
                names[identifier] = None
        return names

    def known(self, resources: Iterable[str]) -> dict[str, VisibleResource]:
        """Listable resources by id, with the reader's actions on each; two statements per kind."""
        by_kind: dict[str, dict[str, None]] = {}
        for identifier in resources:
            kind = kind_of(identifier)
            if kind in KINDS and kind not in EVERYONE_KNOWS:
                by_kind.setdefault(kind, {})[identifier] = None
        known: dict[str, VisibleResource] = {}
        for ids in by_kind.values():
            for row in details(self._connection, self._member, list(ids), self._now, self._narrowing):
                known[row.id] = VisibleResource(row.name, frozenset(row.allowed))
        return known

    def _has(self, demand: RequiredActions) -> bool:
        if not demand.actions:
            return self._narrowing.only is None
        return all(any(self._may(action, demand) for action in sorted(actions)) for actions in demand.actions)

    def _may(self, action: str, demand: RequiredActions) -> bool:
        question = Question(self._member, action, demand.kind, demand.resource, narrowing=self._narrowing)
        return bool(decide(self._connection, question, self._now))
