"""API schemas of access requests."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, StringConstraints

from headgate.kit.request_models import Input
from headgate.organization.access.changes.schemas import Change, Instant
from headgate.organization.access.schemas import Action, MemberName, Target

MAX_TEXT = 2000
Reason = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_TEXT)]
State = Literal["open", "approved", "declined", "withdrawn"]


class RequestWanted(Input):
    """The requested action, and the reason."""

    action: Action
    resource: Target
    reason: Reason = Field(examples=["I check the weekly figures"])


class Approval(Input):
    """The change that fulfils the request: a proposal, or any other."""

    change: Change
    comment: Reason | None = Field(None, examples=["Until the audit is over"])
    expires: Instant | None = Field(None, description="When it ends; of a grant only")


class Refusal(Input):
    """The reason for declining."""

    comment: Reason = Field(examples=["Ask for the aggregated table instead"])


class AccessRequest(BaseModel):
    """An access request and its answer."""

    id: str = Field(examples=["req_01k6x3v9c2m4n8p0q7rs"])
    state: State
    member: MemberName | None = Field(description="Who asks; null for a member who was removed")
    action: str = Field(examples=["edit"])
    kind: str = Field(examples=["data_mart"])
    resource: str = Field(examples=["dm_01k6x3v9c2m4n8p0q7rs"])
    name: str | None = Field(examples=["Sales"], description="Null for what the caller can no longer see")
    reason: str = Field(examples=["I check the weekly figures"])
    created_at: datetime
    answered_at: datetime | None
    answered_by: MemberName | None
    comment: str | None
    change: dict[str, Any] | None = Field(
        examples=[{"change": "grant", "level": "viewer"}],
        description="The change that was made; to who asked, without the names of what it is about",
    )


class ProposalOut(BaseModel):
    """A change that the caller may make and that would fulfil the request."""

    change: dict[str, Any] = Field(
        examples=[{"change": "share", "resource": "dm_01k6x3v9c2m4n8p0q7rs", "for_use": True}],
        description="To be sent with the approval as it is",
    )
    sentence: str = Field(examples=["Share the data mart Sales for reporting"])
    others: int = Field(description="How many other members would gain something on the resource by it")
    takes_end: bool = Field(description="Whether the approval can set when it ends")


class AccessRequestDetails(AccessRequest):
    """An access request, with the caller's options."""

    obstacle: str | None = Field(
        examples=[None, "Ben can do this by now"], description="Why it can no longer be approved, if so"
    )
    proposals: list[ProposalOut] = Field(description="The narrowest first")


class AccessRequestPage(BaseModel):
    """A page of requests: open ones first, newest first."""

    items: list[AccessRequest]
    next_cursor: str | None = Field(
        description="Send it as `cursor` for the next page, which there may be even where this one is short"
    )
