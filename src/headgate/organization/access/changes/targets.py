"""Resolves the targets of a change. Missing and hidden targets give the same error."""

from collections.abc import Callable
from typing import Any

from headgate.access.actions import LEVELS
from headgate.access.book import BOOK
from headgate.access.decision import DENIED, Decision
from headgate.access.facts import Subject
from headgate.access.kinds import KINDS
from headgate.access.narrowing import UNLIMITED, Narrowing
from headgate.kit.errors import Invalid, NotFound
from headgate.kit.ids import kind_of
from headgate.platform.authorization.facts import Facts
from headgate.platform.authorization.lookup import Lookup, VisibleLookup, likely
from headgate.platform.authorization.names import Viewer


class Hidden(NotFound):
    """The target of a change is missing or hidden from the caller; the error does not say which."""

    def __init__(self, kind: str, resource: str | None, asked: str) -> None:
        super().__init__(f"There is no {kind.replace('_', ' ')} {asked} that you may see")
        self.kind, self.resource = kind, resource


class Targets:
    """Resolves names and ids and authorizes, for a member with a token of these limits."""

    def __init__(self, facts: Facts, actor: Subject, narrowing: Narrowing = UNLIMITED) -> None:
        self.facts, self.actor, self.narrowing = facts, actor, narrowing
        viewer = Viewer(actor.id, facts.now, narrowing)
        self.lookup = Lookup(facts.connection) if actor.operator else VisibleLookup(facts.connection, viewer)

    def decide(self, action: str, thing: Any, *, on: Any = None, as_: str | None = None) -> Decision:
        """Authorize the actor; for the limits of a token, a draft counts as the action `as_` on a resource."""
        asked = as_ or action
        if not (self.narrowing.permits_action(asked, self.facts.now) and self.narrowing.reaches(asked, on or thing)):
            return DENIED
        return BOOK.decide(self.actor, action, thing)

    def resource(self, text: str, *kinds: str) -> Any:
        """A resource of one of these kinds that the actor may see or restore."""
        return self._resource(text, self.lookup.of, *kinds)

    def restorable(self, kind: str, text: str) -> Any:
        """A resource of one kind by name or id that the actor may restore; a deleted one is preferred if a name matches
        both.
        """
        restorable = getattr(self.lookup, "restorable", self.lookup.of)
        return self._resource(text if kind_of(text) == kind else f"{kind}:{text}", restorable, kind)

    def _resource(self, text: str, find: Callable[[str, str], str | None], *kinds: str) -> Any:
        kind, _, name = text.partition(":")
        identifier: str | None = text if kind_of(text) else None
        if identifier is None and kind in KINDS and name:
            identifier = find(kind, name.strip())
        elif identifier is None:
            raise Invalid(f"{text!r} is not a resource; write kind:name{likely(text)} or an id")
        thing = self.facts.thing(identifier)
        if thing is None or not self.may_know(thing):
            raise Hidden(kind_of(text) or kind, identifier, text if kind_of(text) else name.strip())
        if kinds and thing.kind not in kinds:
            raise Invalid(f"this takes a {' or '.join(kinds).replace('_', ' ')}, not a {thing.kind.replace('_', ' ')}")
        return thing

    def named(self, kind: str, text: str) -> Any:
        """A resource of one kind by name or id that the actor may see."""
        return self.resource(text if kind_of(text) == kind else f"{kind}:{text}", kind)

    def may_know(self, thing: Any) -> bool:
        """Whether the actor may know that the resource exists."""
        listed_by = BOOK.tables[thing.kind].listed_by
        if not listed_by or self.actor.operator:
            return True
        return any(self.decide(action, thing) for action in (listed_by, "restore"))

    def _found(self, kind: str, name: str) -> str:
        result = self.lookup.of(kind, name)
        if result is None:
            raise NotFound(f"There is no {kind} called {name!r}")
        return result

    def member(self, name: str) -> str:
        """The id of a member."""
        return self._found("member", name)

    def group(self, name: str) -> str:
        """The id of a group."""
        return self._found("group", name)

    def context(self, name: str) -> str:
        """The id of a context."""
        return self._found("context", name)

    def principal(self, name: str) -> str:
        """The id of a member or group."""
        result = self.lookup.principal(name)
        if result is None:
            raise NotFound(f"There is no member or group called {name!r}; write a group as group:NAME")
        return result


def level_number(level: str) -> int:
    """A level as stored in the database."""
    return LEVELS[level]
