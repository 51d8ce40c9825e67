"""Questions to the rule tables about the stored organization, and their decisions."""

from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from typing import Any

from sqlalchemy import Connection

from headgate.access.actions import DRAFT_ACTIONS
from headgate.access.book import BOOK
from headgate.access.decision import DENIED, Decision
from headgate.access.facts import MemberThing, Thing
from headgate.access.kinds import KINDS, rule_kinds
from headgate.access.narrowing import UNLIMITED, Narrowing
from headgate.access.own import DESCRIBED_KINDS
from headgate.access.save_rules import SAVES, decide_save
from headgate.access.sql import decider
from headgate.kit.database import bound, fetch
from headgate.kit.ids import KINDS as KIND_OF_PREFIX
from headgate.platform.authorization.drafts import Drafts, DraftTargetMissing, QuestionContext
from headgate.platform.authorization.facts import Facts


@dataclass(frozen=True, slots=True)
class Question:
    """Whether a member may do an action on a resource, or on one of a kind in a given state."""

    member: str | None
    action: str
    kind: str
    resource: str | None = None
    state: dict[str, Any] | None = None
    narrowing: Narrowing = UNLIMITED
    asker: QuestionContext | None = None
    """Who asks, if they may not know everything that the state could name."""


def decide(connection: Connection, question: Question, now: datetime) -> Decision:
    """Decide a question by the database, in this transaction."""
    if not question.narrowing.permits_action(question.action, now):
        return DENIED
    in_memory = (
        question.state is not None
        or question.resource in {None, "organization"}
        or question.action == "fire"
        or question.action in DRAFT_ACTIONS
        or question.narrowing.only is not None
    )
    if in_memory:
        return decide_in_memory(Facts(connection, now), question)
    return check(connection, question.member, question.action, question.resource, now)


@cache
def _statements(prefix: str, action: str) -> tuple[tuple[str, str, bool], ...]:
    """The statements that decide an action on ids with this prefix, and whether each needs the time."""
    stored = KIND_OF_PREFIX.get(prefix)
    kinds = rule_kinds(stored) if stored in KINDS else ()
    texts = [(kind, decider(kind, action).text) for kind in kinds if action in BOOK.actions(kind)]
    return tuple((kind, text, ":now" in text) for kind, text in texts)


def check(connection: Connection, member: str | None, action: str, resource: str | None, now: datetime) -> Decision:
    """Whether a member has an action on a stored resource: one statement, sent straight to the driver."""
    if member is None or resource is None:
        return DENIED
    for kind, text, asks_time in _statements(resource[: resource.find("_")], action):
        parameters = {"member": member, "id": resource}
        if asks_time:
            parameters["now"] = bound(connection, now)
        rows = fetch(connection, text, parameters)
        if rows:
            return BOOK.decision(kind, action, rows[0][0])
    return DENIED


def is_ready(facts: Facts, pipeline: str) -> bool:
    """Whether the members that a pipeline or task runs as have all the access that a run needs, by these facts."""
    thing = facts.thing(pipeline)
    if thing is None or thing.acts_for is None:
        return False
    needs = ("ready", "secrets") if thing.pipeline_kind == "notebook" else ("ready",)
    return all(BOOK.allows(thing.kind, need)(thing.acts_for, thing) for need in needs)


def decide_in_memory(facts: Facts, question: Question) -> Decision:
    """Decide a question by facts in memory: for drafts, states after a save, and explanations."""
    if not question.narrowing.permits_action(question.action, facts.now):
        return DENIED
    thing = facts.thing(question.resource)
    subject = facts.subject(question.member)
    if question.action == "fire":
        reached = thing is not None and question.narrowing.reaches("fire", thing)
        return BOOK.decide(None, "fire", thing) if reached else DENIED
    if subject is None:
        return DENIED
    try:
        about, decision = _decide_thing(facts, question, subject, thing)
    except DraftTargetMissing:
        return DENIED
    if about is None or not question.narrowing.reaches(question.action, about):
        return DENIED
    return decision


def _decide_thing(facts: Facts, question: Question, subject: Any, thing: Any) -> tuple[Thing | None, Decision]:
    """The resource of a question, for the limits of a token, and the decision of the rule tables."""
    action, asker = question.action, question.asker
    drafts = Drafts(facts, asker)
    if action in DRAFT_ACTIONS or question.kind in DESCRIBED_KINDS:
        if thing is not None:
            return thing, DENIED
        draft = drafts.new(question.kind, question.state or {}, subject)
        place = getattr(draft, "layer", None) if question.kind in {"table", "volume"} else None
        return place or draft, BOOK.decide(subject, action, draft)
    if thing is None:
        return None, DENIED
    if question.state is None:
        return thing, BOOK.decide(subject, action, thing)
    return thing, _decide_state(drafts, question, subject, thing)


def _decide_state(drafts: Drafts, question: Question, subject: Any, thing: Any) -> Decision:
    action, state = question.action, question.state or {}
    save = SAVES.get(thing.kind)
    if save and action == save.asked:
        after, changed = drafts.after(thing, state)
        return decide_save(subject, thing, after, changed, state.keys())
    if action == "change_role" and isinstance(thing, MemberThing):
        role = state.get("role")
        return BOOK.decide(subject, action, replace(thing, new_role=role)) if role else DENIED
    if action in {"grant", "grant_manager"}:
        draft = drafts.grant(thing, state)
        decision = BOOK.decide(subject, "create", draft)
        return decision if action == "grant" or not decision else BOOK.decide(subject, action, thing)
    values = drafts.values("pipeline" if thing.kind == "task" else thing.kind, state)
    if action == "change_owner" and values.get("owner") is None:
        return DENIED
    if action == "change_space" and hasattr(thing, "new_space"):
        thing = replace(thing, new_space=(values.get("space"),))
    return BOOK.decide(subject, action, thing)
