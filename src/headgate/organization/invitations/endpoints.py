"""Invitation endpoints: create, resend, revoke, accept."""

from dataclasses import replace
from typing import Annotated

from fastapi import Path, Request

from headgate.access.invitations import MemberScope, reach_for, reach_of
from headgate.kit.clock import now as clock
from headgate.kit.errors import Conflict, Denied, Invalid, LinkSpent, TooManyAttempts
from headgate.kit.names import BadName, check_name, email_key
from headgate.kit.paging import DEFAULT_LIMIT, Cursor
from headgate.organization.access.changes.targets import Targets
from headgate.organization.contexts.repository import context_names
from headgate.organization.invitations import service as invitations
from headgate.organization.invitations.service import Invitation
from headgate.organization.members.emails import usable
from headgate.organization.members.first_owner import UNKNOWN
from headgate.organization.members.schemas import Acceptance, InvitationIn, InvitationOut, InvitationPage, Named
from headgate.organization.sessions import passwords, throttle
from headgate.organization.sessions.endpoints import sign_in_member
from headgate.organization.sessions.schemas import SignedInAs
from headgate.platform.audit.events import CHANGED, Event
from headgate.platform.directory.repository import member_names, organization_name
from headgate.platform.http.authentication import refuse_cross_site
from headgate.platform.http.guards import OwnCredentials, Public, SignedIn
from headgate.platform.http.paging import After, Limit, begins_after
from headgate.platform.http.routes import Audit, GovernedRouter
from headgate.platform.mail import templates
from headgate.platform.mail.outbox import enqueue
from headgate.platform.notifications.service import Notice, notify
from headgate.platform.resources.names import require_names
from headgate.platform.unit_of_work.call import Call
from headgate.platform.unit_of_work.services import Services

router = GovernedRouter(prefix="/api/invitations", tags=["members"])

InvitationId = Annotated[str, Path(pattern="^inv_[0-9a-z]{20}$", examples=["inv_01k6x3v9c2m4n8p0q7rs"])]
PURPOSE = "invitations"


def _shown(call: Call, listed: list[Invitation], link: str | None = None) -> list[InvitationOut]:
    contexts = {context for invitation in listed for context in invitation.reach.contexts}
    names = context_names(call.connection, contexts)
    by = member_names(call.connection, [invitation.invited_by for invitation in listed], with_removed=True)
    return [
        InvitationOut(
            id=invitation.id,
            email=invitation.email,
            role=invitation.role,
            scope=invitation.reach.scope,
            contexts=[Named(id=key, name=names[key]) for key in sorted(invitation.reach.contexts) if key in names],
            state=invitation.state(call.now),
            invited_by=by.get(invitation.invited_by or ""),
            created_at=invitation.created_at,
            expires_at=invitation.expires_at,
            link=link,
        )
        for invitation in listed
    ]


def _send(call: Call, invitation: Invitation, secret: str) -> InvitationOut:
    """Mail the link, or return it to the caller to hand over; the number of mails is rate-limited."""
    throttle.take(call.connection, throttle.of_mails(call.caller.member, email_key(invitation.email)), call.now)
    link: str | None = templates.link_address(call.settings, secret)
    if call.settings.mail.host is not None:
        organization = organization_name(call.connection)
        subject, body = templates.invitation(call.settings, call.subject.name, organization, secret)
        enqueue(call.connection, call.services.sealer, "invitation", invitation.email, subject, body, call.now)
        link = None
    return _shown(call, [invitation], link)[0]


def _reach(call: Call, body: InvitationIn) -> MemberScope:
    targets = Targets(call.facts, call.subject, call.caller.narrowing)
    contexts = [targets.context(name) for name in body.contexts]
    if body.scope == "entire" and contexts:
        raise Invalid("contexts: not allowed with the entire scope; set the scope to selected")
    reach = reach_for(call.subject, body.role, body.scope, contexts)
    if reach is None:
        raise Denied("You may not invite members to a wider scope or more contexts than your own")
    return reach


def _tell(call: Call, invitation: Invitation, what: str, via: tuple[str, ...]) -> None:
    after = {"change": what, "email": invitation.email, "role": invitation.role, "scope": invitation.reach.scope}
    after["contexts"] = sorted(invitation.reach.contexts)  # type: ignore[assignment]
    call.record(
        call.event(
            CHANGED,
            allowed=True,
            action=f"invite_{invitation.role}",
            kind="invitation",
            resource_id=invitation.id,
            via=list(via),
            after=after,
        )
    )


@router.governed(
    "POST",
    "",
    OwnCredentials("invites those roles that the rule tables let them invite"),
    Audit.changes,
    errors=[Conflict, TooManyAttempts],
)
def invite_member(call: Call, body: InvitationIn) -> InvitationOut:
    """Invite someone by mail address. Without a mail relay, the response contains the link to hand over."""
    decision = call.require(f"invite_{body.role}", "organization", "organization")
    if email_key(body.email) == UNKNOWN:
        raise Invalid("email: the address contains masked characters; give a real address")
    reach, days = _reach(call, body), call.settings.sign_in.invitation_days
    try:
        identifier, secret = invitations.make(
            call.connection,
            usable(body.email),
            body.role,
            reach,
            call.caller.member,
            call.now,
            days,
            call.caller.origin,
        )
    except Conflict:
        # Only members who manage members may learn whose address it is.
        if call.decide("manage_members", "organization", "organization"):
            raise
        raise Conflict("This address already belongs to an invitation or a member") from None
    made = invitations.by_id(call.connection, identifier)
    assert made is not None  # noqa: S101 - made just now
    _tell(call, made, "invite", decision.via)
    return _send(call, made, secret)


@router.governed("GET", "", SignedIn("sees their own; all with manage_members"), Audit.nothing)
def list_invitations(
    call: Call,
    limit: Limit = DEFAULT_LIMIT,
    cursor: After = None,
) -> InvitationPage:
    """List pending, expired and revoked invitations, newest first."""
    require_names(call)
    after = begins_after(cursor, PURPOSE)
    all_of_them = call.decide("manage_members", "organization", "organization")
    inviter = None if all_of_them else call.caller.member
    pending = list(invitations.known(call.connection, inviter, limit + 1, after.id if after else None))
    following = Cursor("", pending[limit - 1].id).encode(PURPOSE) if len(pending) > limit else None
    return InvitationPage(items=_shown(call, pending[:limit]), next_cursor=following)


def _own(call: Call, identifier: str) -> Invitation:
    """A pending or expired invitation that the caller made, or manages as an admin."""
    invitation = invitations.by_id(call.connection, identifier)
    if invitation is None or not call.may_handle("revoke", "invitation", invitation.invited_by):
        call.hide("manage_invitation", "invitation", identifier)
    if invitation.state(call.now) in {"accepted", "revoked"}:
        raise Conflict(f"This invitation was {invitation.state(call.now)}")
    return invitation


@router.governed(
    "POST",
    "/{invitation_id}/resend",
    OwnCredentials("sends their own again; any with manage_members"),
    Audit.changes,
    errors=[Conflict, TooManyAttempts],
)
def resend_invitation(call: Call, invitation_id: InvitationId) -> InvitationOut:
    """Send an invitation again with a new link and expiry; the old link is revoked. The caller becomes the inviter."""
    invitation = _own(call, invitation_id)
    decision = call.require(f"invite_{invitation.role}", "organization", "organization")
    if not invitation.reach.is_within(reach_of(call.subject)):
        raise Denied("You may not invite members to a wider scope or more contexts than your own")
    days = call.settings.sign_in.invitation_days
    secret = invitations.renew(call.connection, invitation, call.caller.member, call.now, days, call.caller.origin)
    renewed = invitations.by_id(call.connection, invitation_id)
    assert renewed is not None  # noqa: S101 - renewed just now
    _tell(call, renewed, "invite again", decision.via)
    return _send(call, renewed, secret)


@router.governed(
    "DELETE",
    "/{invitation_id}",
    OwnCredentials("takes their own back; any with manage_members"),
    Audit.changes,
    errors=[Conflict],
)
def revoke_invitation(call: Call, invitation_id: InvitationId) -> InvitationOut:
    """Revoke an invitation and its link."""
    invitation = _own(call, invitation_id)
    invitations.revoke(call.connection, invitation_id, call.now)
    by = call.decide("manage_members", "organization", "organization").via
    _tell(call, invitation, "take the invitation back", by or ("inviter",))
    return _shown(call, [i for i in [invitations.by_id(call.connection, invitation_id)] if i])[0]


def _addressed(invitation: Invitation, body: Acceptance) -> Invitation:
    """The invitation, with the address of the accepting person; only the first owner's invitation lacks one."""
    if invitation.email != UNKNOWN or invitation.invited_by is not None:
        return invitation
    if body.email is None:
        raise Invalid("email: is required")
    return replace(invitation, email=usable(body.email, "email"))


def _prepare(services: Services, request: Request, parameters: dict[str, Acceptance]) -> str | None:
    """Hash the password if the invitation is valid."""
    body = parameters["body"]
    refuse_cross_site(request, services.settings, must_tell=False)
    with services.database.read() as connection:
        invitation = invitations.by_secret(connection, body.invitation.get_secret_value(), clock())
    invitation = _addressed(invitation, body)
    if body.password is None:
        return None
    password = body.password.get_secret_value()
    passwords.check_strength(password, [body.name, invitation.email])
    return passwords.hashed(password)


@router.governed(
    "POST",
    "/accept",
    Public("accepts an invitation by its link"),
    Audit.changes,
    errors=[LinkSpent, Conflict],
    prepare=_prepare,
)
def accept_invitation(call: Call, request: Request, body: Acceptance, prepared: str | None) -> SignedInAs:
    """Accept an invitation: become a member and sign in. The invitation can be used once."""
    try:
        name = check_name(body.name)
    except BadName as error:
        raise Invalid(f"name: {error}") from None
    invitation = _addressed(invitations.by_secret(call.connection, body.invitation.get_secret_value(), call.now), body)
    member = invitations.accept(call.facts, invitation, name, prepared)
    after = {"change": "join", "role": invitation.role, "scope": invitation.reach.scope, "invitation": invitation.id}
    joined = Event(call.now, CHANGED, True, member, request_id=call.request_id, kind="member", resource_id=member)  # noqa: FBT003
    call.record(replace(joined, action=f"invite_{invitation.role}", after=after))
    notice = Notice("members", "joined", actor=member, member=member, facts={"role": invitation.role})
    notify(call.connection, notice, call.now)
    return sign_in_member(call, request, member, "invitation", invitation.origin)
