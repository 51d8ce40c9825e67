"""Why: what each path of a table asks for, what of it is met, and what is missing, in words."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from headgate.access.actions import LEVEL_NAMES
from headgate.access.book import BOOK, RuleBook
from headgate.access.conditions import (
    AllOf,
    AllRelated,
    AnyOf,
    AnyRelated,
    Can,
    Condition,
    NoneOf,
    OfMember,
    OnRelated,
    Term,
)
from headgate.access.facts import Subject, Thing
from headgate.access.kinds import COLLECTIONS, PERSONS, RELATIONS
from headgate.access.rules import Remedy
from headgate.access.rules.terms import held

Known = Callable[[Thing], bool]
"""Whether whoever reads the explanation may know of a resource; what they may not know of is not named."""


@dataclass(frozen=True, slots=True)
class PathReason:
    """One path: what it asks for, what of that is missing, how it could be had, and what that would be about."""

    name: str
    asks: str
    missing: tuple[str, ...]
    remedy: Remedy | None
    about: tuple[Thing, ...] = ()

    @property
    def is_open(self) -> bool:
        return not self.missing


@dataclass(frozen=True, slots=True)
class UnmetCondition:
    """A part of a condition that does not hold."""

    text: str
    about: Thing | None = None
    of_person: bool = False
    """Whether it already names the member who lacks it, or nobody lacks it."""


def reasons(
    subject: Subject | None, action: str, thing: Thing, known: Known, book: RuleBook = BOOK
) -> list[PathReason]:
    """Each path that grants the action: those that are open first, then those that lack least."""
    result = []
    for path in book.granting(thing.kind, action):
        gaps = _Gaps(book, known).of(path.condition, subject, thing)
        about = {gap.about.id: gap.about for gap in gaps if gap.about is not None and known(gap.about)}
        texts = tuple(dict.fromkeys(gap.text for gap in gaps))
        result.append(
            PathReason(path.name, path.condition.words(thing.kind), texts, path.remedy, tuple(about.values()))
        )
    return sorted(result, key=lambda reason: len(reason.missing))


def level_held(subject: Subject, item: Thing) -> str:
    """The level that a member has on a layer, table or volume, in a word."""
    for level in (3, 2, 1):
        if held(level).check(BOOK, item.kind)(subject, item):
            return LEVEL_NAMES[level].title()
    return "no level"


class _Gaps:
    def __init__(self, book: RuleBook, known: Known) -> None:
        self.book, self.known = book, known

    def of(self, condition: Condition, s: Subject | None, r: Any) -> list[UnmetCondition]:
        """What does not hold; nothing if the condition does."""
        if condition.check(self.book, r.kind)(s, r):  # type: ignore[arg-type]
            return []
        match condition:
            case AllOf():
                return [gap for part in condition.parts for gap in self.of(part, s, r)]
            case AnyOf():
                rights = [part for part in condition.parts if not isinstance(part, NoneOf)] or condition.parts
                return min((self.of(part, s, r) for part in rights), key=len)
            case Term() if r.kind != "ref" and condition.name:
                return self.of(self.book.meaning(condition), s, r)
            case Can():
                return self._can(condition, s, r)
            case OnRelated():
                return self._on(condition, s, r)
            case AllRelated():
                return self._every(condition, s, r)
            case AnyRelated():
                words = COLLECTIONS[r.kind, condition.collection].words
                return [UnmetCondition(f"there is no {words} with {condition.inner.words('ref')}")]
            case OfMember():
                return self._as(condition, r)
        return [UnmetCondition(condition.words(r.kind))]

    def _can(self, condition: Can, s: Subject | None, r: Any) -> list[UnmetCondition]:
        paths = self.book.granting(r.kind, condition.action)
        alternatives = [self.of(path.condition, s, r) for path in paths]
        if len(paths) == 1:
            return alternatives[0]
        return [UnmetCondition(f"{condition.action} on {self._name(r)}", r)]

    def _on(self, condition: OnRelated, s: Subject | None, r: Any) -> list[UnmetCondition]:
        relation = RELATIONS[r.kind, condition.relation]
        other = self.book.compiled(f"lambda r: {relation.python.format(t='r')}")(r)
        if other is None:
            return [UnmetCondition(f"it has no {relation.words.removeprefix('its ')}", of_person=True)]
        if isinstance(condition.inner, Can | OnRelated):
            return self.of(condition.inner, s, other)
        return [
            UnmetCondition(f"{gap.text}, of {self._name(other)}", gap.about or other, gap.of_person)
            for gap in self.of(condition.inner, s, other)
        ]

    def _every(self, condition: AllRelated, s: Subject | None, r: Any) -> list[UnmetCondition]:
        collection = COLLECTIONS[r.kind, condition.collection]
        check = condition.inner.check(self.book, collection.kind)
        failing = [x for x in getattr(r, collection.attribute) if x is None or not check(s, x)]  # type: ignore[arg-type]
        words = condition.inner.words(collection.kind)
        return [UnmetCondition(f"{words} on {self._name(x)}", x) for x in failing]

    def _as(self, condition: OfMember, r: Any) -> list[UnmetCondition]:
        person = PERSONS[r.kind, condition.person]
        who = getattr(r, person.attribute)
        if who is None:
            return [UnmetCondition(f"{person.words} is no longer a member", of_person=True)]
        named = f"{person.words} ({who.name})" if who.name else person.words
        gaps = self.of(condition.inner, who, r)
        return [
            gap if gap.of_person else UnmetCondition(f"{named} lacks {gap.text}", gap.about, of_person=True)
            for gap in gaps
        ]

    def _name(self, thing: Any) -> str:
        if thing is None:
            return "something that does not exist"
        if thing.id is None or not self.known(thing):
            # A hidden volume, a hidden table and a name that nothing has are one.
            named = "table or volume" if thing.kind in {"table", "volume", "ref"} else thing.kind.replace("_", " ")
            return f"a {named} that you may not see"
        kind = "table" if thing.kind == "ref" else thing.kind.replace("_", " ")
        return f"{kind} {thing.name}"
