"""API schemas of API tokens."""

from datetime import datetime
from typing import Annotated

from pydantic import BaseModel, Field

from headgate.kit.names import MAX_LENGTH
from headgate.kit.request_models import Input
from headgate.organization.access.changes.schemas import Instant, Target


class TokenIn(Input):
    """A token to create: its name and its limits."""

    name: Annotated[str, Field(min_length=1, max_length=MAX_LENGTH, examples=["nightly export"])]
    read_only: Annotated[bool, Field(description="A read-only token")] = False
    only: list[Target] | None = Field(
        None,
        max_length=500,
        examples=[["table:gold.orders"]],
        description="Restrict it to these layers, tables, volumes",
    )
    expires: Instant | None = Field(None, description="When it expires")


class TokenOut(BaseModel):
    """A token; never its secret."""

    id: str = Field(examples=["tok_01k6x3v9c2m4n8p0q7rs"])
    name: str
    hint: str | None = Field(examples=["hgt_Ab3d"], description="The start of the secret")
    member: str = Field(examples=["Ana"])
    read_only: bool
    only: list[str] | None = Field(description="The ids that it is restricted to; null if it is not restricted")
    created_at: datetime
    last_used_at: datetime | None
    expires_at: datetime | None
    revoked_at: datetime | None
    tainted: bool = Field(
        description="Whether it was created in a tainted session: it is revoked if its member becomes an owner"
    )


class TokenMade(BaseModel):
    """A new token. The secret is shown only once."""

    id: str
    token: str = Field(description="Send it as `Authorization: Bearer …`")


class TokenPage(BaseModel):
    """A page of tokens, newest first."""

    items: list[TokenOut]
    next_cursor: str | None
