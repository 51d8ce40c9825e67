"""API schemas of access questions and answers."""

from typing import Annotated, Any

from pydantic import BaseModel, Field

from headgate.kit.paging import DEFAULT_LIMIT, MAX_LIMIT
from headgate.kit.request_models import Input
from headgate.organization.access.changes.schemas import Change
from headgate.platform.resources.names import Ref

Action = Annotated[str, Field(min_length=1, max_length=40, examples=["edit"])]
Target = Annotated[
    str,
    Field(min_length=1, max_length=350, examples=["data_mart:Sales"], description="kind:name, organization, or an id"),
]
Limit = Annotated[int, Field(ge=1, le=MAX_LIMIT)]
PageCursor = Annotated[str | None, Field(max_length=4000, description="From `next_cursor` of the page before")]


class ExplainRequest(Input):
    """Whether a member may do an action, and why. Without a member, it is about the caller."""

    member: Ref | None = Field(None, examples=["Bob"], description="A name or id; left out, oneself")
    action: Action
    resource: Target | None = None
    kind: str | None = Field(
        None, max_length=40, examples=["report"], description="Instead of a resource, to create or add one"
    )
    state: dict[str, Any] | None = Field(
        None, alias="with", description="The place of what is created, or the state after; fields as in worlds"
    )


class PathToActionOut(BaseModel):
    """A path to an action: what is missing, and what would help."""

    path: str = Field(examples=["shared for reporting"])
    missing: list[str] = Field(examples=[["shared for reporting"]])
    how: str | None = Field(None, examples=["turn the sharing toggle on"])
    who: list[str] = Field([], examples=[["Ana"]], description="Members who could do that")


class Explained(BaseModel):
    """A decision and its reasons."""

    member: str = Field(examples=["Bob"])
    action: str = Field(examples=["edit"])
    resource: str | None = Field(examples=["data_mart:Sales"])
    allowed: bool
    via: list[str] = Field(examples=[["technical owner"]], description="The paths that grant it")
    because: list[str] = Field(examples=[["technical owner; role technical"]])
    ways: list[PathToActionOut] = []


class WhoRequest(Input):
    """Who can do an action on a resource."""

    action: Action
    resource: Target
    limit: Limit = DEFAULT_LIMIT
    cursor: PageCursor = None


class MemberName(BaseModel):
    """A member's id and name."""

    id: str = Field(examples=["mbr_01k6x3v9c2m4n8p0q7rs"])
    name: str = Field(examples=["Ana"])


class WhoPage(BaseModel):
    """A page of members by name."""

    items: list[MemberName]
    next_cursor: str | None = None


class WhatRequest(Input):
    """What a member can do with the resources of a kind."""

    member: Ref | None = Field(None, description="A name or id; left out, oneself")
    kind: str = Field(examples=["data_mart"])
    limit: Limit = DEFAULT_LIMIT
    cursor: PageCursor = None


class Can(BaseModel):
    """A resource and the member's actions on it."""

    id: str = Field(examples=["dm_01k6x3v9c2m4n8p0q7rs"])
    kind: str = Field(examples=["data_mart"])
    name: str = Field(examples=["Sales"])
    actions: list[str] = Field(examples=[["see", "use"]])
    via: list[str] = Field(examples=[["ownership floor"]], description="The paths that give them")


class WhatPage(BaseModel):
    """A page of resources by name, with the member's actions."""

    member: str
    items: list[Can]
    next_cursor: str | None = None


class WhatIfRequest(Input):
    """A change to preview."""

    change: Change
    member: Ref | None = Field(None, description="Look at one member only")


class EffectOut(BaseModel):
    """The actions that one member would gain and lose on one resource."""

    member: str = Field(examples=["Bob"])
    kind: str = Field(examples=["data_mart"])
    id: str = Field(examples=["dm_01k6x3v9c2m4n8p0q7rs"])
    name: str = Field(examples=["Sales"])
    gains: list[str] = Field(examples=[["see", "use"]])
    loses: list[str] = Field(examples=[[]])


class WhatIfAnswer(BaseModel):
    """The members who would gain or lose access, on resources that the caller may see and share; for admins, on all
    that they may see.
    """

    items: list[EffectOut]
    total: int = Field(description="How many of those there are in all")


class Changed(BaseModel):
    """An applied change."""

    action: str = Field(examples=["configure_sharing"], description="The action that it needed")
    via: list[str] = Field(examples=[["owner"]], description="The path that allowed it")
    before: dict[str, Any]
    after: dict[str, Any]


class PathOut(BaseModel):
    """A path in a rule table."""

    name: str = Field(examples=["shared for reporting"])
    condition: str = Field(examples=["shared for reporting; role technical or business; in scope"])
    grants: list[str] = Field(examples=[["see", "use"]])


class TableOut(BaseModel):
    """The rule table of a kind."""

    kind: str = Field(examples=["data_mart"])
    title: str = Field(examples=["Data mart"])
    actions: dict[str, str] = Field(description="Each action, and what it means")
    paths: list[PathOut]


class TablesOut(BaseModel):
    """All rule tables."""

    tables: list[TableOut]


class Me(BaseModel):
    """The caller."""

    id: str
    name: str
    role: str
    scope: str
    token: str | None
    read_only: bool
    allowed: list[str] = Field(description="The caller's actions on the organization")
