"""The first owner of a new installation: created by `headgate init`, or invited by a link at the first start."""

from datetime import datetime

from sqlalchemy import Connection, update

from headgate.access.invitations import MemberScope
from headgate.kit.errors import Conflict
from headgate.organization.invitations import service as invitations
from headgate.organization.invitations.models import invitation_table
from headgate.organization.invitations.service import has_owner
from headgate.platform.audit.events import CHANGED, Event, record
from headgate.platform.directory.models import organization_table
from headgate.platform.mail.templates import link_address
from headgate.settings.settings import Settings

UNKNOWN = "the-first-owner@localhost"
"""Placeholder for an unknown address; the person who opens the link enters theirs."""


def make_owner(
    connection: Connection, name: str, email: str, password: str | None, now: datetime, organization: str | None = None
) -> str:
    """Create the first owner and return their id. Raises Conflict if there is one."""
    if has_owner(connection):
        raise Conflict("this installation already has an owner, who can invite other members")
    if organization is not None:
        connection.execute(update(organization_table).values(name=organization))
    member = invitations.new_member(
        connection, name, email, "owner", MemberScope(entire=True), password=password, now=now
    )
    connection.execute(
        update(invitation_table)
        .where(invitation_table.c.invited_by_id.is_(None), invitation_table.c.accepted_at.is_(None))
        .values(revoked_at=now)
    )
    event = Event(now, CHANGED, allowed=True, kind="member", resource_id=member, after={"change": "first owner"})
    record(connection, [event])
    return member


def invite_owner(connection: Connection, settings: Settings, now: datetime) -> str | None:
    """The URL of a new one-time link for the first owner, which replaces any earlier one; None if there is an owner."""
    if has_owner(connection):
        return None
    table = invitation_table.c
    waiting = (table.invited_by_id.is_(None), table.accepted_at.is_(None), table.revoked_at.is_(None))
    connection.execute(update(invitation_table).where(*waiting).values(revoked_at=now))
    days = settings.sign_in.invitation_days
    _, secret = invitations.make(connection, UNKNOWN, "owner", MemberScope(entire=True), None, now, days)
    return link_address(settings, secret)
