"""Member endpoints: the list, a member's page, links for members, and their holdings."""

from datetime import timedelta
from typing import Annotated, Any

from fastapi import Path, Query

from headgate.access.book import BOOK
from headgate.kit.errors import Conflict, Invalid, NotFound
from headgate.kit.names import name_key
from headgate.kit.paging import DEFAULT_LIMIT, BadCursor, Cursor
from headgate.organization.access.changes.targets import Targets
from headgate.organization.members import handover, repository
from headgate.organization.members import holdings as held_by
from headgate.organization.members.schemas import (
    Holding,
    Holdings,
    LinkMade,
    MemberAction,
    MemberOut,
    MemberPage,
    MemberPageOut,
    MemberSort,
    Named,
    Reassigned,
    Reassignment,
    RemovedMember,
    RemovedPage,
)
from headgate.organization.sessions import service as sessions
from headgate.platform.http.guards import OnOrganization, OnResource, SignedIn
from headgate.platform.http.paging import After, Limit, Prefix, begins_after
from headgate.platform.http.routes import Audit, GovernedRouter
from headgate.platform.mail import templates
from headgate.platform.mail.outbox import enqueue
from headgate.platform.resources.names import require_names
from headgate.platform.unit_of_work.call import Call

router = GovernedRouter(prefix="/api/members", tags=["members"])

MemberId = Annotated[str, Path(pattern="^mbr_[0-9a-z]{20}$", examples=["mbr_01k6x3v9c2m4n8p0q7rs"])]
LINKED = "link.made"


def _shown(call: Call, rows: Any, *, whole: bool) -> list[MemberOut]:
    """Members as shown to the caller: all fields, or only the name."""
    if not whole:
        return [MemberOut(id=row["id"], name=row["name"]) for row in rows]
    ids = [row["id"] for row in rows]
    contexts = repository.contexts_of(call.connection, ids)
    groups = repository.groups_of(call.connection, ids)
    security = repository.security_roles_of(call.connection, ids)
    return [
        MemberOut(
            id=row["id"],
            name=row["name"],
            email=row["email"],
            role=row["role"],
            scope=row["scope"],
            contexts=[Named(**context) for context in contexts.get(row["id"], [])],
            groups=[Named(**group) for group in groups.get(row["id"], [])],
            security_roles=security.get(row["id"], []),
            status="active" if row["email"] else "no sign-in",
            created_at=row["created_at"],
            last_seen_at=row["last_seen_at"],
        )
        for row in rows
    ]


def _manages(call: Call) -> bool:
    return bool(call.decide("manage_members", "organization", "organization"))


@router.governed("GET", "", SignedIn("sees names; all else with manage_members"), Audit.nothing)
def list_members(
    call: Call,
    sort: Annotated[MemberSort, Query(description="The sort order; a leading minus reverses it")] = MemberSort.name,
    prefix: Prefix = "",
    limit: Limit = DEFAULT_LIMIT,
    cursor: After = None,
) -> MemberPage:
    """List members. Only members who manage members see more than names and can sort by other fields."""
    require_names(call)
    whole = _manages(call)
    if not whole and sort not in {MemberSort.name, MemberSort.name_desc}:
        raise Invalid("sort: you may sort by name or -name only, because you see no other fields")
    if "\0" in prefix:
        raise Invalid("prefix: a name cannot contain control characters")
    purpose = f"members {sort.value} {prefix}"
    try:
        after = begins_after(cursor, purpose)
        rows, following = repository.page(call.connection, sort, name_key(prefix), limit, after)
    except BadCursor as error:
        raise Invalid(f"cursor: {error}") from None
    return MemberPage(
        items=_shown(call, rows, whole=whole), next_cursor=following.encode(purpose) if following else None
    )


@router.governed("GET", "/removed", OnOrganization("ask_about_members"), Audit.nothing)
def list_removed_owners(call: Call, limit: Limit = DEFAULT_LIMIT, cursor: After = None) -> RemovedPage:
    """List removed members by id who solely owned a resource that has no owner since. Their names are deleted."""
    after = begins_after(cursor, "removed members")
    rows = held_by.removed(call.connection, limit + 1, after.id if after else None)
    items = [RemovedMember(id=row.id, removed_at=row.removed_at, solely_owned=row.count) for row in rows[:limit]]
    following = Cursor("", items[-1].id).encode("removed members") if len(rows) > limit else None
    return RemovedPage(items=items, next_cursor=following)


@router.governed(
    "GET", "/{member_id}", SignedIn("sees themselves and names; all of others with ask_about_members"), Audit.nothing
)
def get_member(call: Call, member_id: MemberId) -> MemberPageOut:
    """Get a member: their actions in the organization with the reasons, and the caller's actions on them."""
    require_names(call)
    row = repository.one(call.connection, member_id)
    if row is None:
        raise NotFound
    whole = call.may_handle("see", "profile", member_id)
    subject = call.facts.subject(member_id)
    organization = call.facts.organization()
    decisions = {action: BOOK.decide(subject, action, organization) for action in BOOK.actions("organization")}
    can = [MemberAction(action=name, via=list(decision.via)) for name, decision in decisions.items() if decision]
    allowed = [action for action in BOOK.actions("member") if call.decide(action, "member", member_id)]
    return MemberPageOut(member=_shown(call, [row], whole=whole)[0], can=can if whole else [], allowed=allowed)


def _link(call: Call, member_id: str, purpose: str) -> LinkMade:
    row = repository.one(call.connection, member_id)
    if row is None:
        raise NotFound
    minutes = call.settings.sign_in.link_minutes
    maker, origin = call.caller.member, call.caller.origin
    secret = sessions.make_link(call.connection, member_id, purpose, maker, call.now, minutes, origin)
    mailed = call.settings.mail.host is not None and row["email"] is not None
    if mailed:
        subject, body = (templates.sign_in if purpose == "sign_in" else templates.password)(call.settings, secret)
        arguments = (purpose, row["email"], subject, body, call.now)
        enqueue(call.connection, call.services.sealer, *arguments, member=member_id)
    call.record(call.event(LINKED, allowed=True, kind="member", resource_id=member_id, after={"purpose": purpose}))
    return LinkMade(
        sent_to=row["email"] if mailed else None,
        link=None if mailed else templates.link_address(call.settings, secret),
        expires_at=call.now + timedelta(minutes=minutes),
    )


@router.governed("POST", "/{member_id}/magic-link", OnResource("make_magic_link", "member_id"), Audit.changes)
def create_sign_in_link(call: Call, member_id: MemberId) -> LinkMade:
    """Create a one-time sign-in link for the member, sent by mail or returned to the caller to hand over."""
    return _link(call, member_id, "sign_in")


@router.governed("POST", "/{member_id}/password-reset", OnResource("reset_password", "member_id"), Audit.changes)
def reset_password(call: Call, member_id: MemberId) -> LinkMade:
    """Reset a password: revoke the member's password and sessions, and create a link to choose a new one."""
    sessions.forget_password(call.connection, member_id, call.now)
    return _link(call, member_id, "password")


def _held(holdings: list[held_by.OwnedResource]) -> list[Holding]:
    return [Holding(id=holding.id, kind=holding.kind, name=holding.name, holds=holding.holds) for holding in holdings]


@router.governed("GET", "/{member_id}/holdings", OnOrganization("ask_about_members"), Audit.nothing)
def list_holdings(call: Call, member_id: MemberId) -> Holdings:
    """List what the member solely owns, what runs with their rights, and the schedules they last saved. For a removed
    member: what they solely owned and has no owner since.
    """
    _require_known(call, member_id)
    return Holdings(
        solely_owned=_held(held_by.solely_owned(call.connection, member_id)),
        acts_for=_held(held_by.acting_for(call.connection, member_id)),
    )


def _require_known(call: Call, member_id: str) -> None:
    if not repository.was_member(call.connection, member_id):
        raise NotFound(f"There is no current or removed member {member_id}")


@router.governed("POST", "/{member_id}/reassign", OnOrganization("manage_members"), Audit.changes, errors=[Conflict])
def reassign_holdings(call: Call, member_id: MemberId, body: Reassignment) -> Reassigned:
    """Assign another owner to what the member solely owns, or owned until their removal: all, or some."""
    _require_known(call, member_id)
    to = Targets(call.facts, call.subject, call.caller.narrowing).member(body.to)
    if to == member_id:
        raise Conflict("This member already owns it; choose another member")
    return Reassigned(items=_held(handover.reassign(call, member_id, to, body.resources)))
