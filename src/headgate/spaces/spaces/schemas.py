"""API schemas of data spaces."""

from datetime import datetime

from pydantic import BaseModel, Field

from headgate.kit.request_models import Input
from headgate.organization.members.schemas import Named
from headgate.platform.authorization.schemas import Creator
from headgate.platform.resources.names import NameText


class NewSpace(Input):
    """A space to create."""

    name: NameText


class SpaceOut(BaseModel):
    """A data space, with the caller's actions on it."""

    id: str = Field(examples=["spc_01k6x3v9c2m4n8p0q7rs"])
    name: str = Field(examples=["Sales data"])
    owner: Named | None = Field(description="Null if its owner was removed")
    personal: bool = Field(description="A personal space has no other members, and its resources cannot be shared")
    created_at: datetime
    updated_at: datetime
    created_by: Creator | None
    allowed: tuple[str, ...] = Field(examples=[["see", "update"]], description="The caller's actions")
    via: tuple[str, ...] = Field(examples=[["any role"]], description="The access paths that grant them")


class SpacePage(BaseModel):
    """A page of spaces."""

    items: list[SpaceOut]
    next_cursor: str | None = Field(description="Pass as `cursor` to get the next page; null on the last page")
