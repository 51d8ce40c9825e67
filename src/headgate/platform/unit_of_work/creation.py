"""Authorizes the creation of a resource, and refuses with reasons."""

from typing import Any, NoReturn

from headgate.access.actions import DRAFT_ACTIONS, words
from headgate.access.decision import Decision
from headgate.kit.errors import Denied
from headgate.platform.authorization.drafts import QuestionContext
from headgate.platform.authorization.explanations import explain_draft
from headgate.platform.authorization.questions import Question, decide
from headgate.platform.authorization.refusals import missing
from headgate.platform.unit_of_work.call import Call


def require_new(call: Call, action: str, kind: str, place: dict[str, Any]) -> Decision:
    """The decision if the caller may create one there; otherwise a refusal with the reasons.

    `place` holds fields by id; the caller of this function has checked that the member may know each.
    """
    narrowing = call.caller.narrowing
    question = Question(
        call.caller.member, action, kind, None, place, narrowing, QuestionContext(call.caller.member, narrowing)
    )
    decision = decide(call.connection, question, call.now)
    return decision if decision else _refuse(call, question)


def _refuse(call: Call, question: Question) -> NoReturn:
    call.note_denial(question.action, question.kind, None)
    noun = question.kind.replace("_", " ")
    asked = f"{question.action} a {noun} here" if question.action in DRAFT_ACTIONS else words(question.action)
    full = Question(question.member, question.action, question.kind, None, question.state)
    if question.narrowing.is_narrowed and decide(call.connection, full, call.now):
        raise Denied(f"This token is restricted and may not {asked}; use a token without restrictions")
    ways = explain_draft(call.facts, question, call.subject).ways
    told = [{"path": way.path, "missing": list(way.missing), "how": way.how, "who": list(way.who)} for way in ways]
    detail = ". ".join(value for value in (f"You may not {asked}", missing(ways)) if value)
    raise Denied(detail, action=question.action, ways=told)
