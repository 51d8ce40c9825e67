"""Explanations about the stored organization for a reader who may not see all of it."""

from dataclasses import dataclass
from typing import Any

from headgate.access.book import BOOK
from headgate.access.decision import Decision
from headgate.access.explain import PathReason, level_held, reasons
from headgate.access.facts import Subject, Thing
from headgate.access.rules import Remedy
from headgate.platform.authorization.drafts import Drafts, DraftTargetMissing
from headgate.platform.authorization.facts import Facts
from headgate.platform.authorization.questions import Question, decide_in_memory
from headgate.platform.authorization.who_can import who_can

MAX_NAMED = 10


@dataclass(frozen=True, slots=True)
class PathToAction:
    """A path to an action: what is missing, what would help, and who could do it."""

    path: str
    missing: tuple[str, ...]
    how: str | None = None
    who: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Explanation:
    """A decision and its reasons."""

    allowed: bool
    via: tuple[str, ...]
    because: tuple[str, ...]
    ways: tuple[PathToAction, ...]


class ExplanationReader:
    """The reader of an explanation, who learns the names of visible resources only."""

    def __init__(self, facts: Facts, subject: Subject | None) -> None:
        self.facts, self.subject = facts, subject

    def knows(self, thing: Thing) -> bool:
        """Whether the reader may know this resource. Without a reader, the subject reads everything."""
        if self.subject is None:
            return True
        stored: Any = self.facts.thing(thing.id)
        if stored is None:
            return False
        listed_by = BOOK.tables[stored.kind].listed_by
        return not listed_by or bool(BOOK.decide(self.subject, listed_by, stored))


def explain(facts: Facts, question: Question, reader: Subject | None) -> Explanation:
    """Explain the answer to a question about a stored resource to this reader."""
    decision = decide_in_memory(facts, question)
    thing = facts.thing(question.resource)
    if thing is None or question.action not in BOOK.actions(thing.kind):
        return _bare(decision, f"there is no action {question.action!r} on a {question.kind}")
    knows = ExplanationReader(facts, reader).knows
    path_reasons = reasons(facts.subject(question.member), question.action, thing, knows)
    because = tuple(reason.asks for reason in path_reasons if reason.is_open)
    if decision.allowed or question.narrowing.is_narrowed:
        return Explanation(decision.allowed, decision.via, because, ())
    ways = tuple(_way(facts, thing, reason) for reason in path_reasons)
    return Explanation(allowed=False, via=(), because=because, ways=ways)


def explain_draft(facts: Facts, question: Question, reader: Subject | None) -> Explanation:
    """Explain to this reader why a resource may or may not be created in a place."""
    decision = decide_in_memory(facts, question)
    subject = facts.subject(question.member)
    try:
        draft = Drafts(facts, question.asker).new(question.kind, question.state or {}, subject) if subject else None
    except DraftTargetMissing:
        return _bare(decision, "a resource in `with` does not exist, or you may not see it")
    if draft is None:
        return _bare(decision, f"a {question.kind} is not created with this action")
    path_reasons = reasons(subject, question.action, draft, ExplanationReader(facts, reader).knows)
    because = tuple(reason.asks for reason in path_reasons if reason.is_open)
    if decision.allowed or question.narrowing.is_narrowed:
        return Explanation(decision.allowed, decision.via, because, ())
    return Explanation(False, (), because, tuple(_draft_way(facts, subject, reason) for reason in path_reasons))  # noqa: FBT003


_LEVELLED = frozenset({"layer", "table", "volume"})


def _draft_way(facts: Facts, subject: Subject | None, reason: PathReason) -> PathToAction:
    """The path to a creation: the missing and held levels, and who could grant the missing ones."""
    names: dict[str, None] = {}
    have: list[str] = []
    for about in reason.about:
        stored: Any = facts.thing(about.id)
        if subject is None or stored is None or stored.kind not in _LEVELLED:
            continue
        have.append(f"{subject.name} has {level_held(subject, stored)} on {stored.kind} {stored.name}")
        people = who_can(facts.connection, "grant", stored.id, facts.now, limit=MAX_NAMED)
        names.update(dict.fromkeys(person.name for person in people if person.id != subject.id))
    how = f"grant the level; {', '.join(have)}" if names else None
    return PathToAction(reason.name, reason.missing, how, tuple(names)[:MAX_NAMED])


def _bare(decision: Decision, text: str) -> Explanation:
    return Explanation(decision.allowed, decision.via, (), () if decision.allowed else (PathToAction("none", (text,)),))


def _way(facts: Facts, thing: Thing, reason: PathReason) -> PathToAction:
    if reason.remedy is None:
        return PathToAction(reason.name, reason.missing)
    names: dict[str, None] = {}
    for target in _targets(reason.remedy, reason, thing):
        if target.id:
            people = who_can(facts.connection, reason.remedy.action, target.id, facts.now, limit=MAX_NAMED)
            names.update(dict.fromkeys(person.name for person in people))
    return PathToAction(reason.name, reason.missing, reason.remedy.how, tuple(names)[:MAX_NAMED])


def _targets(remedy: Remedy, reason: PathReason, thing: Any) -> list[Any]:
    """The targets of a remedy: the resource, one it belongs to, or the tables that lack a level."""
    if remedy.relation:
        target = thing
        for name in remedy.relation.split("."):
            target = getattr(target, name, None)
        return [target] if target is not None else []
    if remedy.action in BOOK.actions(thing.kind):
        return [thing]
    return [thing for thing in reason.about if remedy.action in BOOK.actions(thing.kind)]


def explain_in_words(facts: Facts, question: Question) -> list[str]:
    """An explanation as lines of text, for a reader who may see everything."""
    explanation = explain(facts, question, None)
    if question.narrowing.is_narrowed and not explanation.allowed:
        return ["denied: the token does not include this resource, or its owner may not do this"]
    if question.state is not None:
        return [f"{'allowed' if explanation.allowed else 'denied'} in the state after the action, with `with` applied"]
    if explanation.allowed:
        return [f"allowed by {', '.join(explanation.via)}", *(f"because: {text}" for text in explanation.because)]
    return [f"not by {way.path}: missing {', '.join(way.missing)}" for way in explanation.ways] or ["no path grants it"]
