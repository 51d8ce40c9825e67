"""All rule tables together, and what is read from them about one member and one resource."""

from collections.abc import Callable, Iterable
from typing import Any

from headgate.access.actions import DRAFT_ACTIONS
from headgate.access.atoms import HELPERS
from headgate.access.conditions import Check, Condition, SqlPosition, Term
from headgate.access.decision import DENIED, Decision
from headgate.access.facts import Subject, Thing
from headgate.access.rules import ALL_TABLES, TERMS, Path, Rules


class RuleBook:
    """The rule tables as one book. Everything that decides reads the same book."""

    def __init__(self, tables: Iterable[Rules] = ALL_TABLES) -> None:
        self.tables = {rules.kind: rules for rules in tables}
        self.terms = dict(TERMS)
        self.forget()

    def forget(self) -> None:
        """Forget what was worked out from the tables; for whoever changes them."""
        self._checks: dict[tuple[str, str], Check] = {}
        self._paths: dict[tuple[str, str], Callable[[Subject | None, Thing], int]] = {}
        self._decisions: dict[tuple[str, str, int], Decision] = {}
        self._actions_of_mask: dict[tuple[str, int], tuple[str, ...]] = {}
        self._paths_of_mask: dict[tuple[str, int], tuple[str, ...]] = {}

    def meaning(self, term: Term) -> Condition:
        """What a term stands for."""
        return self.terms[term.name](term.level)

    def actions(self, kind: str) -> tuple[str, ...]:
        """The actions that can be asked of an existing resource of this kind."""
        rules = self.tables.get(kind)
        return tuple(a for a in rules.actions if a not in DRAFT_ACTIONS) if rules else ()

    def granting(self, kind: str, action: str) -> tuple[Path, ...]:
        """The paths of a kind that grant an action."""
        rules = self.tables.get(kind)
        return tuple(path for path in rules.paths if action in path.grants) if rules else ()

    def compiled(self, source: str) -> Any:
        """A function from the source that conditions write."""
        return eval(source, {"book": self, **HELPERS})  # noqa: S307 - written by our own rule tables

    def allows(self, kind: str, action: str) -> Check:
        """A function that tells whether a member has an action on a resource of this kind."""
        response = self._checks.get((kind, action))
        if response is None:
            at = SqlPosition(self, kind)
            parts = [path.condition.python(at) for path in self.granting(kind, action)]
            response = self._checks[kind, action] = self.compiled(f"lambda m, r: {' or '.join(parts) or 'False'}")
        return response

    def decide(self, subject: Subject | None, action: str, thing: Thing | None) -> Decision:
        """Decide about one member and one resource, from facts in memory. Anything unknown is denied."""
        if thing is None or (subject is None and action != "fire"):
            return DENIED
        key = (thing.kind, action)
        paths = self._paths.get(key)
        if paths is None:
            paths = self._paths[key] = self._open_paths(*key)
        return self.decision(thing.kind, action, paths(subject, thing))

    def _open_paths(self, kind: str, action: str) -> Callable[[Subject | None, Thing], int]:
        """A function that gives the open paths that grant an action, as bits."""
        at = SqlPosition(self, kind)
        terms = [
            f"({1 << bit} if {path.condition.python(at)} else 0)"
            for bit, path in enumerate(self._askable(kind, action))
            if action in path.grants
        ]
        function: Callable[[Subject | None, Thing], int] = self.compiled(f"lambda m, r: {' + '.join(terms) or '0'}")
        return function

    def decision(self, kind: str, action: str, mask: int) -> Decision:
        """The decision that a set of open paths (as bits, in the table's order) comes to."""
        decision = self._decisions.get((kind, action, mask))
        if decision is None:
            named = [
                (bool(mask >> bit & 1), path.name)
                for bit, path in enumerate(self._askable(kind, action))
                if action in path.grants
            ]
            via = tuple(name for is_open, name in named if is_open)
            missing = () if via else tuple(name for _, name in named)
            decision = self._decisions[kind, action, mask] = Decision(bool(via), via, missing)
        return decision

    def _askable(self, kind: str, action: str) -> tuple[Path, ...]:
        """The paths of a kind, unless the action is one that nobody is ever asked about."""
        rules = self.tables.get(kind)
        return rules.paths if rules and action not in rules.internal else ()

    def allowed_actions(self, kind: str, mask: int) -> tuple[str, ...]:
        """The actions that a set of open paths grants together."""
        response = self._actions_of_mask.get((kind, mask))
        if response is None:
            paths = self.tables[kind].paths
            granted = {a for bit, path in enumerate(paths) if mask >> bit & 1 for a in path.grants}
            response = tuple(action for action in self.actions(kind) if action in granted)
            self._actions_of_mask[kind, mask] = response
        return response

    def open_paths(self, kind: str, mask: int) -> tuple[str, ...]:
        """The names of the paths in a set of open ones."""
        response = self._paths_of_mask.get((kind, mask))
        if response is None:
            paths = self.tables[kind].paths
            response = tuple(path.name for bit, path in enumerate(paths) if mask >> bit & 1)
            self._paths_of_mask[kind, mask] = response
        return response

    def at(self, kind: str) -> SqlPosition:
        """Where SQL about a kind begins: `m` is the member's row, `r` the resource's."""
        return SqlPosition(self, kind)


BOOK = RuleBook()
"""The product's rule tables."""


def decide(subject: Subject | None, action: str, thing: Any) -> Decision:
    """Decide from facts in memory, by the product's rule tables."""
    return BOOK.decide(subject, action, thing)
