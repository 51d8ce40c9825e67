"""The AuthZEN Authorization API 1.0: evaluation, evaluations and search, on the same functions as the other access
endpoints.

A subject is a member (type `member` or `user`) by id or name. A resource has a kind as its type, and an id or name.
`context.with` may describe the state of a resource that does not exist yet.
"""

from dataclasses import replace
from typing import Any

from headgate.access.actions import DATA_READING
from headgate.access.book import BOOK
from headgate.access.kinds import rule_kinds, stored_kind
from headgate.kit.errors import BadRequest, Denied, Invalid
from headgate.kit.paging import MAX_LIMIT, BadCursor, Cursor
from headgate.organization.access.authzen_schemas import (
    ActionsOut,
    DecisionOut,
    Evaluation,
    Evaluations,
    EvaluationsOut,
    Metadata,
    PageIn,
    PageOut,
    PartialEvaluation,
    ResourceIn,
    ResourcesOut,
    SearchAction,
    SearchResource,
    SearchSubject,
    SubjectIn,
    SubjectsOut,
)
from headgate.platform.authorization.drafts import QuestionContext
from headgate.platform.authorization.explanations import explain
from headgate.platform.authorization.lookup import Ambiguous
from headgate.platform.authorization.questions import Question, decide
from headgate.platform.authorization.repository import Query, details, page
from headgate.platform.authorization.resource_states import parse_state
from headgate.platform.authorization.schemas import Kind
from headgate.platform.authorization.who_can import who_can
from headgate.platform.http.guards import Public, SignedIn
from headgate.platform.http.routes import Audit, GovernedRouter
from headgate.platform.mail.templates import own_address
from headgate.platform.unit_of_work.call import Call

router = GovernedRouter(tags=["authzen"])
BASE = "/access/v1"
ABOUT = "asks about themselves; about another member, with ask_about_members"
SUBJECT_TYPES = frozenset({"member", "user"})


def _member(call: Call, subject: SubjectIn) -> str | None:
    """The member in a subject, if the caller may ask about them; otherwise None."""
    if subject.type not in SUBJECT_TYPES:
        return None
    result = call.lookup.of("member", subject.id)
    if result != call.caller.member:
        call.require("ask_about_members", "organization", "organization")
    return result


def _resource(call: Call, resource: ResourceIn) -> tuple[str, str | None]:
    """The kind and id in a resource; no id if it is missing or hidden from the caller."""
    kind = stored_kind(resource.type)
    result = call.lookup.of(kind, resource.id) if kind in {*Kind.__members__, "organization", "member"} else None
    if result is None or kind in {"organization", "member"} or call.caller.operator:
        return kind, result
    return kind, result if call.may_see(result) else None


def _answer(call: Call, asked: Evaluation) -> DecisionOut:
    member = _member(call, asked.subject)
    kind, resource = _resource(call, asked.resource)
    state = _state(kind, asked)
    own = member == call.caller.member
    question = Question(
        member,
        asked.action.name,
        kind,
        resource,
        state,
        call.caller.narrowing if own else replace_reach(call),
        QuestionContext(call.caller.member, call.caller.narrowing),
    )
    decision = decide(call.connection, question, call.now)
    if not decision or asked.action.name in DATA_READING:
        call.note_decision(question, decision)
    if decision:
        return DecisionOut(decision=True, context={"via": list(decision.via)})
    if resource is None or member is None:
        return DecisionOut(decision=False, context={"reason": "there is no such subject or resource that you may see"})
    explanation = explain(call.facts, question, None if call.caller.operator else call.subject)
    ways = [{"path": way.path, "missing": list(way.missing)} for way in explanation.ways]
    return DecisionOut(decision=False, context={"reason": "no path grants it", "ways": ways})


def _state(kind: str, asked: Evaluation) -> dict[str, Any] | None:
    given = asked.context.get("with")
    if given is not None and not isinstance(given, dict):
        raise BadRequest("context.with: expected an object")
    try:
        return parse_state(kind, asked.action.name, given)
    except Invalid as problem:
        raise BadRequest(f"context.{problem.detail}") from None


def replace_reach(call: Call) -> Any:
    """The limits of the caller's token that also apply to questions about others: its expiry."""
    return replace(call.caller.narrowing, only=None, read_only=False)


@router.governed("POST", f"{BASE}/evaluation", SignedIn(ABOUT), Audit.decisions, errors=[BadRequest])
def evaluate_access(call: Call, body: Evaluation) -> DecisionOut:
    """Decide whether a subject may do an action on a resource."""
    return _answer(call, body)


@router.governed("POST", f"{BASE}/evaluations", SignedIn(ABOUT), Audit.decisions, errors=[BadRequest])
def evaluate_access_batch(call: Call, body: Evaluations) -> EvaluationsOut:
    """Decide several questions; each takes omitted fields from the request itself."""
    if not body.evaluations:
        decision = _answer(call, _whole(body, PartialEvaluation(), "body"))
        return EvaluationsOut(decision=decision.decision, context=decision.context)
    answers: list[DecisionOut] = []
    semantic = body.options.evaluations_semantic
    for number, part in enumerate(body.evaluations):
        answer = _one_of_many(call, body, part, number)
        answers.append(answer)
        if semantic == "deny_on_first_deny" and not answer.decision:
            break
        if semantic == "permit_on_first_permit" and answer.decision:
            break
    return EvaluationsOut(evaluations=answers)


def _whole(body: Evaluations, part: PartialEvaluation, place: str) -> Evaluation:
    subject, action = part.subject or body.subject, part.action or body.action
    resource = part.resource or body.resource
    if subject is None or action is None or resource is None:
        raise BadRequest(f"{place}: a question needs subject, action and resource, here or at the top")
    context = part.context if part.context is not None else body.context
    return Evaluation(subject=subject, action=action, resource=resource, context=context or {})


def _one_of_many(call: Call, body: Evaluations, part: PartialEvaluation, number: int) -> DecisionOut:
    whole = _whole(body, part, f"evaluations.{number}")
    try:
        return _answer(call, whole)
    except (Ambiguous, Denied) as problem:
        error = {"status": problem.status, "message": problem.detail}
        return DecisionOut(decision=False, context={"error": error})


def _cursor(asked: PageIn, purpose: str) -> Cursor | None:
    try:
        return Cursor.decode(asked.token, purpose) if asked.token else None
    except BadCursor as error:
        raise BadRequest(f"page.token: {error}") from None


def _limit(asked: PageIn) -> int:
    return max(1, min(asked.limit, MAX_LIMIT))


@router.governed(
    "POST",
    f"{BASE}/search/subject",
    SignedIn("asks about a resource on which they have see_access; about all, with ask_about_members"),
    Audit.nothing,
    errors=[BadRequest],
)
def search_access_subjects(call: Call, body: SearchSubject) -> SubjectsOut:
    """Search the members who have an action on a resource."""
    kind, resource = _resource(call, body.resource)
    if resource is None or body.subject.type not in SUBJECT_TYPES:
        call.note_denial("see_access", kind, None)
        return SubjectsOut(page=PageOut(count=0), results=[])
    if not call.decide("ask_about_members", "organization", "organization"):
        call.require("see_access", kind, resource)
    purpose, limit = f"subject {body.action.name} {resource}", _limit(body.page)
    people = who_can(
        call.connection, body.action.name, resource, call.now, limit=limit + 1, after=_cursor(body.page, purpose)
    )
    more = people[limit - 1] if len(people) > limit else None
    results = [{"type": body.subject.type, "id": person.id} for person in people[:limit]]
    token = Cursor(more.key, more.id).encode(purpose) if more else ""
    return SubjectsOut(page=PageOut(next_token=token, count=len(results)), results=results)


@router.governed("POST", f"{BASE}/search/resource", SignedIn(ABOUT), Audit.nothing, errors=[BadRequest])
def search_access_resources(call: Call, body: SearchResource) -> ResourcesOut:
    """Search the resources of a kind on which a member has an action."""
    member, kind = _member(call, body.subject), stored_kind(body.resource.type)
    own = member == call.caller.member
    hidden = kind == "saved_query" and not own and not call.caller.operator
    known = kind in Kind.__members__ and any(body.action.name in BOOK.actions(kind) for kind in rule_kinds(kind))
    limits = call.caller.narrowing if own else replace_reach(call)
    if member is None or hidden or not known or not limits.permits_action(body.action.name, call.now):
        return ResourcesOut(page=PageOut(count=0), results=[])
    purpose = f"resource {member} {body.action.name} {kind}"
    try:
        rows, following = page(
            call.connection,
            Query(
                member,
                kind,
                call.now,
                limit=_limit(body.page),
                after=_cursor(body.page, purpose),
                action=body.action.name,
                narrowing=limits,
            ),
        )
    except BadCursor as error:
        raise BadRequest(f"page.token: {error}") from None
    results = [{"type": row.kind, "id": row.id} for row in rows]
    token = following.encode(purpose) if following else ""
    return ResourcesOut(page=PageOut(next_token=token, count=len(results)), results=results)


@router.governed("POST", f"{BASE}/search/action", SignedIn(ABOUT), Audit.nothing, errors=[BadRequest])
def search_access_actions(call: Call, body: SearchAction) -> ActionsOut:
    """Search the actions that a member has on a resource."""
    member = _member(call, body.subject)
    kind, resource = _resource(call, body.resource)
    allowed: tuple[str, ...] = ()
    if member and resource and kind in Kind.__members__:
        limits = call.caller.narrowing if member == call.caller.member else replace_reach(call)
        rows = details(call.connection, member, [resource], call.now, limits)
        allowed = rows[0].allowed if rows else ()
    elif member and resource:
        limits = call.caller.narrowing if member == call.caller.member else replace_reach(call)
        asked = (Question(member, action, kind, resource, narrowing=limits) for action in BOOK.actions(kind))
        allowed = tuple(question.action for question in asked if decide(call.connection, question, call.now))
    return ActionsOut(page=PageOut(count=len(allowed)), results=[{"name": action} for action in allowed])


@router.governed("GET", "/.well-known/authzen-configuration", Public("says where the endpoints are"), Audit.nothing)
def get_authzen_configuration(call: Call) -> Metadata:
    """The URLs of the AuthZEN endpoints."""
    base = own_address(call.settings)
    return Metadata(
        policy_decision_point=base,
        access_evaluation_endpoint=f"{base}{BASE}/evaluation",
        access_evaluations_endpoint=f"{base}{BASE}/evaluations",
        search_subject_endpoint=f"{base}{BASE}/search/subject",
        search_resource_endpoint=f"{base}{BASE}/search/resource",
        search_action_endpoint=f"{base}{BASE}/search/action",
    )
