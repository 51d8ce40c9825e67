"""All rule tables together, and what is read from them about one member and one resource."""

from collections.abc import Iterable
from typing import Any

from headgate.access.actions import DRAFT_ACTIONS
from headgate.access.conditions import At, Check, Condition, Term
from headgate.access.decision import DENIED, Decision
from headgate.access.facts import Subject, Thing
from headgate.access.rules import ALL_TABLES, TERMS, Path, Rules


class Book:
    """The rule tables as one book. Everything that decides reads the same book."""

    def __init__(self, tables: Iterable[Rules] = ALL_TABLES) -> None:
        self.tables = {rules.kind: rules for rules in tables}
        self.terms = dict(TERMS)
        self.forget()

    def forget(self) -> None:
        """Forget what was worked out from the tables; for whoever changes them."""
        self._checks: dict[tuple[str, str], Check] = {}
        self._paths: dict[tuple[str, str], tuple[tuple[int, Check], ...]] = {}
        self._decisions: dict[tuple[str, str, int], Decision] = {}
        self._actions_of_mask: dict[tuple[str, int], tuple[str, ...]] = {}

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

    def allows(self, kind: str, action: str) -> Check:
        """A function that tells whether a member has an action on a resource of this kind."""
        found = self._checks.get((kind, action))
        if found is None:
            checks = [path.condition.check(self, kind) for path in self.granting(kind, action)]
            found = self._checks[kind, action] = lambda s, r: any(check(s, r) for check in checks)
        return found

    def decide(self, subject: Subject | None, action: str, thing: Thing | None) -> Decision:
        """Decide about one member and one resource, from facts in memory. Anything unknown is denied."""
        if thing is None or (subject is None and action != "fire"):
            return DENIED
        kind = thing.kind
        paths = self._paths.get((kind, action))
        if paths is None:
            paths = self._paths[kind, action] = self._bits(kind, action)
        mask = 0
        for bit, check in paths:
            if check(subject, thing):  # type: ignore[arg-type]
                mask |= bit
        return self._decisions.get((kind, action, mask)) or self.decision(kind, action, mask)

    def _bits(self, kind: str, action: str) -> tuple[tuple[int, Check], ...]:
        rules = self.tables.get(kind)
        if rules is None or action in rules.internal:
            return ()
        return tuple(
            (1 << bit, path.condition.check(self, kind))
            for bit, path in enumerate(rules.paths)
            if action in path.grants
        )

    def decision(self, kind: str, action: str, mask: int) -> Decision:
        """The decision that a set of open paths (as bits, in the table's order) comes to."""
        found = self._decisions.get((kind, action, mask))
        if found is None:
            rules = self.tables.get(kind)
            named = [
                (bool(mask >> bit & 1), path.name)
                for bit, path in enumerate(rules.paths if rules and action not in rules.internal else ())
                if action in path.grants
            ]
            via = tuple(name for is_open, name in named if is_open)
            missing = () if via else tuple(name for _, name in named)
            found = self._decisions[kind, action, mask] = Decision(bool(via), via, missing)
        return found

    def allowed_actions(self, kind: str, mask: int) -> tuple[str, ...]:
        """The actions that a set of open paths grants together."""
        found = self._actions_of_mask.get((kind, mask))
        if found is None:
            paths = self.tables[kind].paths
            granted = {a for bit, path in enumerate(paths) if mask >> bit & 1 for a in path.grants}
            found = tuple(action for action in self.actions(kind) if action in granted)
            self._actions_of_mask[kind, mask] = found
        return found

    def at(self, kind: str) -> At:
        """Where SQL about a kind begins: `m` is the member's row, `r` the resource's."""
        return At(self, kind)


BOOK = Book()
"""The product's rule tables."""


def decide(subject: Subject | None, action: str, thing: Any) -> Decision:
    """Decide from facts in memory, by the product's rule tables."""
    return BOOK.decide(subject, action, thing)
