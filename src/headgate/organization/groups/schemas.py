"""Groups, as the API takes and shows them."""

from datetime import datetime

from pydantic import BaseModel, Field

from headgate.kit.request_models import Input
from headgate.organization.members.schemas import Named
from headgate.platform.resources.names import NameText


class GroupName(Input):
    """What to call a group."""

    name: NameText


class GroupOut(BaseModel):
    """A group."""

    id: str = Field(examples=["grp_01k6x3v9c2m4n8p0q7rs"])
    name: str = Field(examples=["Analysts"])
    built_in: bool = Field(description="True of All alone, to which every member belongs")
    members: int = Field(description="How many members it has")
    created_at: datetime


class GroupPage(BaseModel):
    """A page of the list of groups."""

    items: list[GroupOut]
    next_cursor: str | None = Field(description="Send it as `cursor` for the next page; null on the last")


class GroupMembers(BaseModel):
    """A group, with a page of its members."""

    group: GroupOut
    members: list[Named] | None = Field(description="Null unless the caller is in it, or manages groups")
    next_cursor: str | None = Field(description="Send it as `cursor` for the next page of members; null on the last")


class GroupDeleted(BaseModel):
    """A group that is no more, and what ended with it."""

    id: str = Field(examples=["grp_01k6x3v9c2m4n8p0q7rs"])
    name: str = Field(examples=["Analysts"])
    members: int = Field(description="How many members it had")
    grants: int = Field(description="How many grants it had")
    space_roles: int = Field(description="How many roles in spaces it had")
