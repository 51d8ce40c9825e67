"""API schemas of members and invitations."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated

from pydantic import BaseModel, Field

from headgate.kit.names import MAX_LENGTH
from headgate.kit.request_models import Input
from headgate.organization.access.changes.schemas import Role, Scope
from headgate.organization.sessions.schemas import EmailText, LinkText, Password
from headgate.platform.resources.names import Ref


class MemberSort(StrEnum):
    """The sort orders of the list of members; a leading minus reverses one."""

    name = "name"
    email = "email"
    role = "role"
    scope = "scope"
    created = "created"
    last_seen = "last_seen"
    name_desc = "-name"
    email_desc = "-email"
    role_desc = "-role"
    scope_desc = "-scope"
    created_desc = "-created"
    last_seen_desc = "-last_seen"


class Named(BaseModel):
    """An id and a name."""

    id: str
    name: str


class MemberOut(BaseModel):
    """A member. Callers who do not manage members see only the name."""

    id: str = Field(examples=["mbr_01k6x3v9c2m4n8p0q7rs"])
    name: str = Field(examples=["Ana"])
    email: str | None = None
    role: str | None = Field(None, examples=["technical"])
    scope: str | None = Field(None, examples=["selected"])
    contexts: list[Named] | None = None
    groups: list[Named] | None = Field(None, description="Without the built-in group All")
    security_roles: list[str] | None = Field(None, examples=[["data_admin"]])
    status: str | None = Field(
        None, examples=["active"], description="active, or no sign-in: the member has no address or password"
    )
    created_at: datetime | None = None
    last_seen_at: datetime | None = None


class MemberPage(BaseModel):
    """A page of members."""

    items: list[MemberOut]
    next_cursor: str | None = Field(description="Pass as `cursor` to get the next page; null on the last page")


class MemberAction(BaseModel):
    """An action, and the path by which a member has it."""

    action: str = Field(examples=["create_layer"])
    via: list[str] = Field(examples=[["admin"]])


class MemberPageOut(BaseModel):
    """A member's page: their data, and their actions in the organization with the paths."""

    member: MemberOut
    can: list[MemberAction] = Field(description="Actions on the organization; what-can lists those on resources")
    allowed: list[str] = Field(
        examples=[["change_role", "remove"]], description="The actions that the caller has on them"
    )


class InvitationIn(Input):
    """An invitation to create."""

    email: EmailText
    role: Role
    scope: Scope | None = Field(None, description="Default: entire, or the inviter's scope if they are not an admin")
    contexts: list[Ref] = Field([], max_length=200)


class InvitationOut(BaseModel):
    """An invitation that was not accepted yet."""

    id: str = Field(examples=["inv_01k6x3v9c2m4n8p0q7rs"])
    email: str = Field(examples=["ana@example.com"])
    role: str = Field(examples=["technical"])
    scope: str = Field(examples=["selected"])
    contexts: list[Named]
    state: str = Field(examples=["waiting"], description="waiting, expired, revoked or accepted")
    invited_by: str | None = Field(description="The name of the inviter; null for the operator")
    created_at: datetime
    expires_at: datetime
    link: str | None = Field(None, description="The link to send, if mail is not configured; shown only once")


class InvitationPage(BaseModel):
    """A page of invitations, newest first."""

    items: list[InvitationOut]
    next_cursor: str | None


class Acceptance(Input):
    """An invitation to accept, and the new member's data."""

    invitation: LinkText
    name: Annotated[str, Field(min_length=1, max_length=MAX_LENGTH, examples=["Ana"])]
    email: EmailText | None = Field(None, description="For the first owner, who has no address yet")
    password: Password | None = Field(None, description="Without a password, the member signs in by links only")


class LinkMade(BaseModel):
    """A link for a member: sent by mail, or to hand over."""

    sent_to: str | None = Field(description="The address that it was sent to; null if you must send it yourself")
    link: str | None = Field(description="The link to send, if mail is not configured; shown only once")
    expires_at: datetime


class Holding(BaseModel):
    """Something that would lose its owner or stop running if a member were removed."""

    id: str = Field(examples=["dm_01k6x3v9c2m4n8p0q7rs"])
    kind: str = Field(examples=["data_mart"])
    name: str = Field(examples=["Revenue"])
    holds: str = Field(
        examples=["technical"], description="Their relation to it: the type of owner, acts_for or author"
    )


class Holdings(BaseModel):
    """The holdings that a removal would leave, or has left."""

    solely_owned: list[Holding]
    acts_for: list[Holding] = Field(description="Pipelines that run as them, and schedules that they saved last")


class RemovedMember(BaseModel):
    """A removed member with a resource that has no owner since."""

    id: str = Field(examples=["mbr_01k6x3v9c2m4n8p0q7rs"])
    removed_at: datetime
    solely_owned: int = Field(description="The number of resources that they solely owned and that have no owner now")


class RemovedPage(BaseModel):
    """A page of removed members."""

    items: list[RemovedMember]
    next_cursor: str | None


class Reassignment(Input):
    """The new owner of what a member solely owns."""

    to: Ref
    resources: list[str] | None = Field(None, max_length=1000, description="Ids; omit it for all")


class Reassigned(BaseModel):
    """The transferred resources."""

    items: list[Holding]
