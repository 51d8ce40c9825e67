"""API schemas of groups."""

from datetime import datetime

from pydantic import BaseModel, Field

from headgate.kit.request_models import Input
from headgate.organization.members.schemas import Named
from headgate.platform.resources.names import NameText


class GroupName(Input):
    """The name of a group."""

    name: NameText


class GroupOut(BaseModel):
    """A group."""

    id: str = Field(examples=["grp_01k6x3v9c2m4n8p0q7rs"])
    name: str = Field(examples=["Analysts"])
    built_in: bool = Field(description="True only for the built-in group All of every member")
    members: int = Field(description="The number of members")
    created_at: datetime


class GroupPage(BaseModel):
    """A page of groups."""

    items: list[GroupOut]
    next_cursor: str | None = Field(description="Pass as `cursor` to get the next page; null on the last page")


class GroupMembers(BaseModel):
    """A group, with a page of its members."""

    group: GroupOut
    members: list[Named] | None = Field(
        description="Null unless the caller is a member of the group, or manages groups"
    )
    next_cursor: str | None = Field(description="Send it as `cursor` for the next page of members; null on the last")


class GroupDeleted(BaseModel):
    """A deleted group, and what ended with it."""

    id: str = Field(examples=["grp_01k6x3v9c2m4n8p0q7rs"])
    name: str = Field(examples=["Analysts"])
    members: int = Field(description="The number of members that it had")
    grants: int = Field(description="The number of grants that it had")
    space_roles: int = Field(description="The number of space roles that it had")
