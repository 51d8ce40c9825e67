"""Access questions on behalf of a caller, limited to what the caller may ask."""

from dataclasses import replace
from typing import Any, NoReturn

from headgate.access.actions import DATA_READING, DRAFT_ACTIONS
from headgate.access.book import BOOK
from headgate.access.grants import why_not
from headgate.access.kinds import KINDS, rule_kinds, stored_kind
from headgate.kit.errors import Denied, Invalid, NotFound
from headgate.kit.ids import kind_of
from headgate.kit.paging import Cursor
from headgate.organization.access.changes.plans import Plan, plan
from headgate.organization.access.changes.promotion import promote
from headgate.organization.access.changes.reach import stale
from headgate.organization.access.changes.schemas import RemoveMember, SetRole
from headgate.organization.access.changes.targets import Hidden, Targets
from headgate.organization.access.what_if import Effect, effects
from headgate.platform.authorization import writer
from headgate.platform.authorization.drafts import QuestionContext
from headgate.platform.authorization.explanations import MAX_NAMED, Explanation, explain, explain_draft
from headgate.platform.authorization.lookup import likely
from headgate.platform.authorization.questions import Question, decide
from headgate.platform.authorization.refusals import either
from headgate.platform.authorization.repository import Query, details, page
from headgate.platform.authorization.resource_states import parse_state
from headgate.platform.authorization.schemas import Resource
from headgate.platform.authorization.who_can import Person, who_can
from headgate.platform.notifications.service import Notice, notify
from headgate.platform.unit_of_work.call import Call

MAX_EFFECTS = 200


def member_asked(call: Call, name: str | None) -> str:
    """The member of a question: the caller, or another member if the caller may ask about them."""
    if name is None:
        if call.caller.operator:
            raise Invalid("say which member the question is about")
        return call.caller.member
    result = call.lookup.of("member", name)
    if result != call.caller.member:
        call.require("ask_about_members", "organization", "organization")
    if result is None:
        raise NotFound(f"There is no member called {name!r}")
    return result


def target_asked(call: Call, text: str) -> tuple[str, str]:
    """The kind and id of a question's resource; NotFound for missing and hidden ones alike."""
    kind, _, name = text.partition(":")
    if text == "organization":
        return "organization", "organization"
    if kind_of(text):
        kind, name = kind_of(text) or "", text
    if stored_kind(kind) not in KINDS or not name:
        raise Invalid(f"{text!r} is not a resource; write kind:name{likely(text).rstrip(',')}, organization, or an id")
    result = call.lookup.of(kind, name.strip())
    stored = stored_kind(kind)
    if stored == "member" and result is None:
        raise NotFound(f"There is no member called {name!r}")
    if result is None or not (stored == "member" or call.caller.operator or call.may_see(result)):
        call.note_denial("see", stored, result)
        raise NotFound(f"There is no {kind.replace('_', ' ')} {name.strip()} that you may see")
    return stored, result


def check_action(kind: str, action: str) -> None:
    """Reject an unknown action."""
    if not any(BOOK.granting(rules, action) for rules in rule_kinds(kind)):
        known = sorted({action for rules in rule_kinds(kind) for action in BOOK.actions(rules)})
        raise Invalid(f"action: there is no action {action!r}; a {kind} has {', '.join(known)}")


def ask(
    call: Call, member: str, action: str, target: str | None, kind: str | None, state: dict[str, Any] | None
) -> tuple[Question, Explanation]:
    """Explain a decision about a member and a resource, or about a resource that does not exist yet."""
    if (target is None) == (kind is None):
        raise Invalid("give either a resource, or, to create or add one, a kind")
    if target is None and kind not in KINDS:
        raise Invalid(f"kind: there is no kind {kind!r}; the kinds are {', '.join(sorted(KINDS))}")
    if (target is None) != (action in DRAFT_ACTIONS):
        raise Invalid(f"action: ask {action} {'of a resource' if target is None else 'of a kind, with its place'}")
    found_kind, resource = target_asked(call, target) if target is not None else (kind or "", None)
    check_action(found_kind, action)
    state = parse_state(found_kind, action, state)
    own = member == call.caller.member
    narrowing = call.caller.narrowing if own else replace(call.caller.narrowing, only=None, read_only=False)
    asker = None if call.caller.operator else QuestionContext(call.caller.member, call.caller.narrowing)
    question = Question(member, action, found_kind, resource, state, narrowing, asker)
    reader = None if call.caller.operator else call.subject
    answer = explain_or_decide(call, question, reader)
    if action in DATA_READING or not answer.allowed:
        call.note_decision(question, decide(call.connection, question, call.now))
    return question, answer


def explain_or_decide(call: Call, question: Question, reader: Any) -> Explanation:
    """The explanation; for a state after a save, only the decision."""
    if question.resource is not None and question.state is None:
        return explain(call.facts, question, reader)
    if question.resource is None:
        return explain_draft(call.facts, question, reader)
    decision = decide(call.connection, question, call.now)
    return Explanation(decision.allowed, decision.via, (), ())


def who(call: Call, action: str, target: str, limit: int, after: Cursor | None) -> list[Person]:
    """The members with an action on a resource, for callers who may share it and for admins."""
    kind, resource = target_asked(call, target)
    check_action(kind, action)
    if not call.decide("ask_about_members", "organization", "organization"):
        if kind in {"organization", "member"}:
            call.require("ask_about_members", "organization", "organization")
        call.require("see_access", kind, resource)
    return who_can(call.connection, action, resource, call.now, limit=limit, after=after)


def what(call: Call, member: str, kind: str, limit: int, after: Cursor | None) -> tuple[list[Resource], Cursor | None]:
    """A member's actions on the resources of a kind, limited to resources that the caller may see."""
    if kind == "saved_query" and member != call.caller.member and not call.caller.operator:
        return [], None
    own = member == call.caller.member
    query = Query(member, kind, call.now, limit=limit, after=after)
    if own:
        query = replace(query, narrowing=call.caller.narrowing)
    return page(call.connection, query)


def _planned(call: Call, change: Any) -> Plan:
    try:
        return plan(change, Targets(call.facts, call.subject, call.caller.narrowing))
    except Hidden as problem:
        call.note_denial("see", problem.kind, problem.resource)
        raise


def preview(call: Call, change: Any, member: str | None) -> tuple[list[tuple[Effect, str]], int]:
    """The effects of a change, limited to what the caller may ask: the first effects with names, and the total
    number.
    """
    plan = _planned(call, change)
    may_ask = bool(call.decide("ask_about_members", "organization", "organization"))
    if not may_ask and not plan.decision:
        _refuse(call, plan)
    value = member_asked(call, member) if member is not None else None
    all_effects = effects(call.connection, plan.delta, call.now, member=value)
    named = _names(call, all_effects, whoever=may_ask)
    visible = [(effect, named[effect.resource]) for effect in all_effects if effect.resource in named]
    return visible[:MAX_EFFECTS], len(visible)


def _names(call: Call, result: list[Effect], *, whoever: bool) -> dict[str, str]:
    """The names of the affected resources that the caller may see and ask access questions about."""
    names: dict[str, str] = {"organization": "organization"} if whoever else {}
    by_kind: dict[str, list[str]] = {}
    for effect in result:
        by_kind.setdefault(effect.kind, []).append(effect.resource)
    for kind, ids in by_kind.items():
        unique = list(dict.fromkeys(ids))
        if kind == "member":
            subjects = (call.facts.subject(value) for value in unique if whoever)
            names.update({subject.id: subject.name for subject in subjects if subject is not None})
        elif kind != "organization":
            listed = {BOOK.tables[kind].listed_by for kind in rule_kinds(kind)}
            viewer = result[0].member if call.caller.operator else call.caller.member
            rows = details(call.connection, viewer, unique, call.now, call.caller.narrowing)
            asked = {"see_access"} if not whoever else listed
            names.update({row.id: row.name for row in rows if call.caller.operator or asked & set(row.allowed)})
    return names


def _refuse(call: Call, plan: Plan) -> NoReturn:
    """Refuse a change; if the caller may make similar ones, name what is wrong with this one."""
    limits, why = call.caller.narrowing, tuple[str, ...]()
    if plan.grant and limits.permits_action(plan.action, call.now) and limits.reaches(plan.action, plan.thing):
        why = why_not(call.subject, plan.grant)
    if not why:
        call.refuse(plan.action, plan.thing.kind, plan.thing.id)
    call.note_denial(plan.action, plan.thing.kind, plan.thing.id)
    people = who_can(call.connection, "grant_manager", plan.thing.id or "", call.now, limit=MAX_NAMED)
    could = f". {either(person.name for person in people)} could make it" if people else ""
    about = f"{plan.thing.kind} {plan.thing.name}"
    raise Denied(f"You may not make this grant on {about}: {'; '.join(why)}{could}", action=plan.action)


def apply(call: Call, change: Any) -> Plan:
    """Apply a change in this transaction: authorize, write the rows, update the index, and audit."""
    plan = _planned(call, change)
    if not plan.decision:
        _refuse(call, plan)
    with writer.access_change(call.connection, lambda: stale(call.connection, plan.delta)):
        plan.delta.apply(call.connection)
    ended = promote(call, plan.new_owner) if plan.new_owner else {}
    if ended:
        plan.after["ended"] = ended
    if isinstance(change, SetRole | RemoveMember):
        event = "removed" if isinstance(change, RemoveMember) else "role_changed"
        notice = Notice("members", event, actor=call.caller.member, member=plan.thing.id)
        notify(call.connection, notice, call.now)
    thing, after = plan.thing, {"change": change.change, **plan.after}
    call.record_change(plan.decision, plan.action, thing.kind, thing.id, before=plan.before, after=after)
    return plan
