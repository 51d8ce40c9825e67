"""Contexts, as the API takes and shows them."""

from datetime import datetime
from typing import Annotated

from pydantic import BaseModel, Field

from headgate.kit.request_models import Input
from headgate.platform.resources.names import NameText

Count = Annotated[int | None, Field(description="Null for callers who may not manage contexts")]


class ContextName(Input):
    """What to call a context."""

    name: NameText


class ContextOut(BaseModel):
    """A context, and to how much it is attached."""

    id: str = Field(examples=["ctx_01k6x3v9c2m4n8p0q7rs"])
    name: str = Field(examples=["Finance"])
    created_at: datetime
    resources: Count = None
    members: Count = None
    invitations: Count = None


class ContextPage(BaseModel):
    """A page of the list of contexts."""

    items: list[ContextOut]
    next_cursor: str | None = Field(description="Pass as `cursor` to get the next page; null on the last page")


class ContextDeleted(BaseModel):
    """A context that is no more."""

    id: str = Field(examples=["ctx_01k6x3v9c2m4n8p0q7rs"])
    name: str = Field(examples=["Finance"])
