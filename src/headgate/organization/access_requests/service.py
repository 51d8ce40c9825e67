"""Access requests and their answers. An approval is an ordinary access change, made with the approver's rights."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, NoReturn

from sqlalchemy import RowMapping

from headgate.access.actions import words
from headgate.access.book import BOOK
from headgate.access.kinds import rule_kinds
from headgate.access.own import AccessRequest
from headgate.access.requests import can_be_asked_for
from headgate.access.sql import NOBODYS
from headgate.kit.errors import Conflict, Denied, Invalid, NotFound
from headgate.kit.paging import Cursor
from headgate.organization.access import service as governance
from headgate.organization.access.changes.schemas import Grant
from headgate.organization.access_requests import repository
from headgate.organization.access_requests.proposals import (
    Proposal,
    RequestedAccess,
    could_answer,
    proposals,
    recipients,
)
from headgate.organization.access_requests.schemas import Approval, RequestWanted
from headgate.organization.sessions import throttle
from headgate.platform.authorization.questions import Question, decide
from headgate.platform.authorization.repository import details
from headgate.platform.notifications.service import Notice, notify
from headgate.platform.unit_of_work.call import Call

REQUESTED, ANSWERED = "access.requested", "access.answered"
MAX_OPEN = 100
MAX_EXAMINED = 200
PLAIN = frozenset(
    {
        "change",
        "level",
        "expires",
        "for_use",
        "for_maintenance",
        "ownership",
        "role",
        "scope",
        "security_role",
        "space_role",
    }
)
"""Fields of a change that never name a hidden item."""
ABOUT_MEMBERS = frozenset({"role", "scope", "security_role"})
"""Those that describe a member, shown only to the member and to admins."""


@dataclass(frozen=True, slots=True)
class VisibleRequest:
    """A request that the caller may see, with the name of its resource if the caller sees that."""

    row: RowMapping
    name: str | None
    own: bool
    whole: bool = False

    @property
    def change(self) -> dict[str, Any] | None:
        """The change that was made; only the approver and admins see all of it."""
        made: dict[str, Any] | None = self.row["change"]
        if made is None or self.whole:
            return made
        return {key: made[key] for key in made if key in PLAIN and (self.own or key not in ABOUT_MEMBERS)}


@dataclass(frozen=True, slots=True)
class RequestOptions:
    """The options for a request: the possible changes, or why there are none."""

    obstacle: str | None
    proposals: list[Proposal]


def _asked(row: RowMapping) -> RequestedAccess:
    return RequestedAccess(row["member_id"], row["action"], row["resource_id"])


def _refuse_narrowed(call: Call) -> None:
    if call.caller.narrowing.is_narrowed:
        call.note_denial("answer", "request", None)
        raise Denied("A narrowed token asks for no access and answers no request; use one without limits")


# Requesting


def make(call: Call, wanted: RequestWanted) -> VisibleRequest:
    """Request an action that the caller lacks on a visible resource."""
    _refuse_narrowed(call)
    kind, resource = governance.target_asked(call, wanted.resource)
    _check(call, wanted.action, kind, resource)
    member = call.caller.member
    if call.decide(wanted.action, kind, resource):
        raise Conflict(f"You can do this already: {words(wanted.action)}")
    same = repository.open_one(call.connection, member, wanted.action, resource)
    if same is not None:
        raise Conflict(f"You have asked for this, and it is open: {same}", request=same)
    if repository.count_open(call.connection, member) >= MAX_OPEN:
        raise Conflict(f"You have {MAX_OPEN} open requests; withdraw one, or wait for answers")
    throttle.take(call.connection, throttle.of_mails(member), call.now)
    values = {"member_id": member, "action": wanted.action, "kind": kind, "resource_id": resource}
    identifier = repository.add(call.connection, {**values, "reason": wanted.reason}, call.now)
    row = repository.get(call.connection, identifier)
    assert row is not None  # noqa: S101 - written just before
    _record(call, REQUESTED, row, reason=wanted.reason)
    _tell(call, "request.made", row, recipients(call.facts, _asked(row)))
    return _own(call, row)


def _check(call: Call, action: str, kind: str, resource: str) -> None:
    """Reject a request for an action that nobody can grant."""
    if kind == "member":
        raise Invalid("resource: access is asked for on a resource, or on the organization")
    actions = [action for action in BOOK.actions(call.facts.thing(resource).kind) if action not in NOBODYS]
    if action not in actions:
        raise Invalid(f"action: there is no action {action!r} to ask for here; there are {', '.join(sorted(actions))}")
    if not can_be_asked_for(action, kind):
        raise Invalid(f"resource: nobody can give access to this {kind}; ask for the tables that it reads")


# Viewing


def find(call: Call, identifier: str) -> VisibleRequest:
    """A request that the caller made or could answer; NotFound for hidden and missing ones alike."""
    row = repository.get(call.connection, identifier)
    seen = _seen(call, row, _names(call, [row])) if row is not None else None
    if seen is None:
        call.note_denial("see", "request", identifier)
        raise NotFound
    return seen


def listed(call: Call, *, mine: bool, limit: int, after: Cursor | None) -> tuple[list[VisibleRequest], Cursor | None]:
    """A page of the caller's own requests, or of those that they could answer, and where the next one starts."""
    most = limit if mine else MAX_EXAMINED
    rows, more = repository.page(call.connection, call.caller.member, own=mine, limit=most, after=after)
    names, requests = _names(call, rows), []
    for number, row in enumerate(rows, 1):
        requests += [seen for seen in (_seen(call, row, names),) if seen is not None]
        if len(requests) == limit:
            more = more or number < len(rows)
            return requests, repository.place_of(row) if more else None
    return requests, repository.place_of(rows[-1]) if more else None


def _names(call: Call, rows: Iterable[RowMapping]) -> dict[str, str]:
    """The names of those resources that the caller sees."""
    values = {"organization": "organization"} if call.caller.narrowing.only is None else {}
    by_kind: dict[str, set[str]] = {}
    for row in rows:
        by_kind.setdefault(row["kind"], set()).add(row["resource_id"])
    by_kind.pop("organization", None)
    for kind, ids in by_kind.items():
        listing = {BOOK.tables[kind].listed_by for kind in rule_kinds(kind)} | {"restore"}
        shown = details(call.connection, call.caller.member, sorted(ids), call.now, call.caller.narrowing)
        values.update({resource.id: resource.name for resource in shown if listing & set(resource.allowed)})
    return values


def _seen(call: Call, row: RowMapping, names: dict[str, str]) -> VisibleRequest | None:
    """The request, if the caller made it or could answer it."""
    name, own = names.get(row["resource_id"]), _may(call, "withdraw", row)
    is_reached = name is not None or (own and not call.caller.narrowing.is_narrowed)
    if not is_reached or not _may(call, "see", row):
        return None
    return VisibleRequest(row, name, own=own, whole=_may(call, "see_change", row))


def _own(call: Call, row: RowMapping) -> VisibleRequest:
    return VisibleRequest(row, _names(call, [row]).get(row["resource_id"]), own=True)


def _may(call: Call, action: str, row: RowMapping) -> bool:
    """Whether the caller may do an action on a request; with a narrowed token, only on their own and on those they
    answered.
    """
    asker = call.facts.subject(row["member_id"])
    request = AccessRequest(
        about=call.facts.thing(row["resource_id"]),
        asked_by=asker.id if asker else None,
        answered_by=row["answered_by_id"],
    )
    decision = BOOK.decide(call.subject, action, request)
    if not decision and "could give it" in decision.missing and asker and asker.id != call.caller.member:
        request = replace(request, could_give=could_answer(call, _asked(row)))
        decision = BOOK.decide(call.subject, action, request)
    limits = call.caller.narrowing
    is_whole = limits.only is None and limits.permits_action("answer", call.now)
    return decision.allowed and (is_whole or not {"asker", "answered it"}.isdisjoint(decision.via))


def prospect(call: Call, seen: VisibleRequest) -> RequestOptions:
    """The caller's options for a request."""
    if seen.row["state"] != repository.OPEN:
        return RequestOptions(None, [])
    obstacle = _obstacle(call, seen.row)
    return RequestOptions(obstacle, [] if obstacle or seen.own else proposals(call, _asked(seen.row)))


def _obstacle(call: Call, row: RowMapping) -> str | None:
    """Why an open request can no longer be approved, or None."""
    subject = call.facts.subject(row["member_id"])
    if subject is None:
        return "Whoever asked for this is no longer a member; decline it"
    return f"{subject.name} can do this by now" if _has(call, row) else None


def _has(call: Call, row: RowMapping) -> bool:
    """Whether the requester has the action now."""
    question = Question(row["member_id"], row["action"], row["kind"], row["resource_id"])
    return bool(decide(call.connection, question, call.now))


# Answering


def approve(call: Call, identifier: str, answer: Approval) -> VisibleRequest:
    """Make the change as the caller if it fulfils the request, in this transaction."""
    row = _to_answer(call, identifier)
    obstacle = _obstacle(call, row)
    if obstacle:
        raise Conflict(obstacle)
    change = _with_end(answer)
    made = governance.apply(call, change)
    if not _has(call, row):
        raise Conflict("This change would not give what was asked for; nothing was changed. The proposals would")
    kept = change.model_dump(mode="json", exclude_none=True)
    return _close(call, row, "approved", answer.comment, change=kept, via=list(made.decision.via))


def _with_end(answer: Approval) -> Any:
    """The change, with the expiry set by the approval."""
    if answer.expires is None:
        return answer.change
    if not isinstance(answer.change, Grant):
        raise Invalid("expires: only a grant can end; leave it out, or approve by a grant")
    if answer.change.expires not in {None, answer.expires}:
        raise Invalid("expires: the change has another end; say it once")
    return answer.change.model_copy(update={"expires": answer.expires})


def decline(call: Call, identifier: str, comment: str) -> VisibleRequest:
    """Decline a request with a reason."""
    return _close(call, _to_answer(call, identifier), "declined", comment)


def withdraw(call: Call, identifier: str) -> VisibleRequest:
    """Withdraw one of the caller's own requests."""
    _refuse_narrowed(call)
    seen = find(call, identifier)
    if not _may(call, "withdraw", seen.row):
        _refuse_answer(call, "withdraw", seen.row, "Only who asked takes a request back; you can decline it")
    _check_open(seen.row)
    return _close(call, seen.row, "withdrawn", None)


def _to_answer(call: Call, identifier: str) -> RowMapping:
    """An open request of another member that the caller could answer."""
    _refuse_narrowed(call)
    seen = find(call, identifier)
    if seen.own:
        _refuse_answer(call, "answer", seen.row, "This is your own request; somebody else answers it")
    _check_open(seen.row)
    return seen.row


def _refuse_answer(call: Call, action: str, row: RowMapping, sentence: str) -> NoReturn:
    call.note_denial(action, "request", row["id"])
    raise Denied(sentence)


def _check_open(row: RowMapping) -> None:
    if row["state"] != repository.OPEN:
        raise Conflict(f"This request was {row['state']} already")


def _close(
    call: Call,
    row: RowMapping,
    state: str,
    comment: str | None,
    *,
    change: dict[str, Any] | None = None,
    via: list[str] | None = None,
) -> VisibleRequest:
    """Store the answer, audit it, and notify the requester."""
    answer = {"answered_at": call.now, "answered_by_id": call.caller.member, "comment": comment}
    if change is not None:
        answer["change"] = change
    if not repository.close(call.connection, row["id"], state, **answer):
        raise Conflict("This request was answered already")
    _record(call, ANSWERED, row, via=via or [], state=state, comment=comment)
    own = row["member_id"] == call.caller.member
    if not own and call.facts.subject(row["member_id"]) is not None:
        _tell(call, f"request.{state}", row, (row["member_id"],))
    closed = repository.get(call.connection, row["id"])
    assert closed is not None  # noqa: S101 - written just before
    return VisibleRequest(closed, _names(call, [closed]).get(row["resource_id"]), own=own, whole=not own)


def _record(call: Call, event: str, row: RowMapping, via: list[str] | None = None, **after: Any) -> None:
    about = {"action": row["action"], "kind": row["kind"], "resource_id": row["resource_id"]}
    told = {"request": row["id"], "member": row["member_id"], **after}
    call.record(call.event(event, allowed=True, **about, via=via or [], after=told))


def _tell(call: Call, event: str, row: RowMapping, to: tuple[str, ...]) -> None:
    """Notify members who may see the resource; everyone sees the organization."""
    is_resource = row["kind"] != "organization"
    notice = Notice(
        "access",
        event,
        actor=call.caller.member,
        member=row["member_id"],
        kind=row["kind"] if is_resource else None,
        resource=row["resource_id"] if is_resource else None,
        recipients=to,
        facts={"request": row["id"], "action": row["action"]},
    )
    notify(call.connection, notice, call.now)
