"""API schemas of contexts."""

from datetime import datetime
from typing import Annotated

from pydantic import BaseModel, Field

from headgate.kit.request_models import Input
from headgate.platform.resources.names import NameText

Count = Annotated[int | None, Field(description="Null for callers who may not manage contexts")]


class ContextName(Input):
    """The name of a context."""

    name: NameText


class ContextOut(BaseModel):
    """A context, and the number of its attachments."""

    id: str = Field(examples=["ctx_01k6x3v9c2m4n8p0q7rs"])
    name: str = Field(examples=["Finance"])
    created_at: datetime
    resources: Count = None
    members: Count = None
    invitations: Count = None


class ContextPage(BaseModel):
    """A page of contexts."""

    items: list[ContextOut]
    next_cursor: str | None = Field(description="Pass as `cursor` to get the next page; null on the last page")


class ContextDeleted(BaseModel):
    """A deleted context."""

    id: str = Field(examples=["ctx_01k6x3v9c2m4n8p0q7rs"])
    name: str = Field(examples=["Finance"])
