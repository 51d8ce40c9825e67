"""Access request endpoints: create, view, approve, decline, withdraw."""

from collections.abc import Iterable
from typing import Annotated

from fastapi import Path, Query

from headgate.kit.errors import Conflict, Invalid, TooManyAttempts
from headgate.kit.ids import PATTERN, PREFIXES
from headgate.kit.paging import DEFAULT_LIMIT, BadCursor
from headgate.organization.access.schemas import MemberName
from headgate.organization.access_requests import service
from headgate.organization.access_requests.schemas import (
    AccessRequest,
    AccessRequestDetails,
    AccessRequestPage,
    Approval,
    ProposalOut,
    Refusal,
    RequestWanted,
)
from headgate.platform.directory.repository import member_names
from headgate.platform.http.guards import SignedIn
from headgate.platform.http.paging import After, Limit, begins_after
from headgate.platform.http.routes import Audit, GovernedRouter
from headgate.platform.unit_of_work.call import Call

router = GovernedRouter(prefix="/api/access/requests", tags=["requests"])

ANSWERERS = "has a change to make that gives what was asked for, or is an admin; and sees what it is about"
_SUFFIX = PATTERN.pattern.partition("_")[2]

RequestId = Annotated[
    str, Path(pattern=f"^{PREFIXES['request']}_{_SUFFIX}$", max_length=32, examples=["req_01k6x3v9c2m4n8p0q7rs"])
]


def _people(call: Call, seen: Iterable[service.VisibleRequest]) -> dict[str, MemberName]:
    ids = {request.row[column] for request in seen for column in ("member_id", "answered_by_id")} - {None}
    return {key: MemberName(id=key, name=name) for key, name in member_names(call.connection, ids).items()}


def _shown(seen: service.VisibleRequest, people: dict[str, MemberName]) -> AccessRequest:
    row = seen.row
    return AccessRequest(
        id=row["id"],
        state=row["state"],
        member=people.get(row["member_id"]),
        action=row["action"],
        kind=row["kind"],
        resource=row["resource_id"],
        name=seen.name,
        reason=row["reason"],
        created_at=row["created_at"],
        answered_at=row["answered_at"],
        answered_by=people.get(row["answered_by_id"]),
        comment=row["comment"],
        change=seen.change,
    )


def _one(call: Call, seen: service.VisibleRequest) -> AccessRequest:
    return _shown(seen, _people(call, [seen]))


@router.governed(
    "POST",
    "",
    SignedIn("asks for themselves, on what they see; not by a narrowed token"),
    Audit.changes,
    errors=[Conflict, TooManyAttempts],
)
def request_access(call: Call, body: RequestWanted) -> AccessRequest:
    """Request an action on a visible resource. The members who could grant it are notified."""
    return _one(call, service.make(call, body))


@router.governed("GET", "", SignedIn(f"sees their own; of others', whoever {ANSWERERS}"), Audit.nothing)
def list_access_requests(
    call: Call,
    mine: Annotated[bool, Query(description="Your own, instead of those that you could answer")] = False,
    limit: Limit = DEFAULT_LIMIT,
    cursor: After = None,
) -> AccessRequestPage:
    """List the requests that the caller could answer, or the caller's own: open ones first, newest first."""
    purpose = f"requests {'mine' if mine else 'to answer'}"
    try:
        after = begins_after(cursor, purpose)
        requests, following = service.listed(call, mine=mine, limit=limit, after=after)
    except BadCursor as error:
        raise Invalid(f"cursor: {error}") from None
    people = _people(call, requests)
    return AccessRequestPage(
        items=[_shown(request, people) for request in requests],
        next_cursor=following.encode(purpose) if following else None,
    )


@router.governed("GET", "/{request_id}", SignedIn(f"sees their own; of others', whoever {ANSWERERS}"), Audit.nothing)
def get_access_request(call: Call, request_id: RequestId) -> AccessRequestDetails:
    """Get a request, with the changes that the caller may make and that would fulfil it, narrowest first."""
    seen = service.find(call, request_id)
    prospect = service.prospect(call, seen)
    offered = [
        ProposalOut(
            change=proposal.change.model_dump(mode="json", exclude_none=True),
            sentence=proposal.sentence,
            others=proposal.others,
            takes_end=proposal.takes_end,
        )
        for proposal in prospect.proposals
    ]
    return AccessRequestDetails(**dict(_one(call, seen)), obstacle=prospect.obstacle, proposals=offered)


@router.governed(
    "POST",
    "/{request_id}/approve",
    SignedIn(f"answers if they may make the change, and {ANSWERERS}; not by a narrowed token"),
    Audit.changes,
    errors=[Conflict],
)
def approve_access_request(call: Call, request_id: RequestId, body: Approval) -> AccessRequest:
    """Approve a request with a change made by the caller. If the change does not fulfil the request, nothing is
    changed.
    """
    return _one(call, service.approve(call, request_id, body))


@router.governed(
    "POST",
    "/{request_id}/decline",
    SignedIn(f"answers if they {ANSWERERS}; not by a narrowed token"),
    Audit.changes,
    errors=[Conflict],
)
def decline_access_request(call: Call, request_id: RequestId, body: Refusal) -> AccessRequest:
    """Decline a request with a reason; the requester is notified."""
    return _one(call, service.decline(call, request_id, body.comment))


@router.governed(
    "POST",
    "/{request_id}/withdraw",
    SignedIn("takes back their own; not by a narrowed token"),
    Audit.changes,
    errors=[Conflict],
)
def withdraw_access_request(call: Call, request_id: RequestId) -> AccessRequest:
    """Withdraw one of the caller's own requests."""
    return _one(call, service.withdraw(call, request_id))
