"""API schemas of integrations."""

from datetime import datetime
from typing import Annotated

from pydantic import BaseModel, Field

from headgate.contracts.pipelines.fields import TableRef
from headgate.kit.request_models import Input
from headgate.platform.resources.names import NameText

Tables = Annotated[list[TableRef], Field(min_length=1, max_length=200, description="The tables that it can read")]


class IntegrationIn(Input):
    """An integration to create."""

    name: NameText
    description: Annotated[str, Field(max_length=10_000)] = ""
    tables: Tables
    expires: Annotated[datetime | None, Field(description="When its token expires; null for never")] = None


class IntegrationChange(Input):
    """Changes to an integration; omitted fields stay unchanged."""

    name: NameText | None = None
    description: Annotated[str, Field(max_length=10_000)] | None = None
    tables: Tables | None = None


class TokenIn(Input):
    """A new token for an integration; the previous one is revoked immediately."""

    expires: Annotated[datetime | None, Field(description="When it expires; null for never")] = None


class IntegrationItem(BaseModel):
    """An integration in a list."""

    id: str = Field(examples=["int_01k6x3v9c2m4n8p0q7rs"])
    name: str
    created_at: datetime
    updated_at: datetime
    last_used_at: datetime | None
    allowed: list[str]


class IntegrationPage(BaseModel):
    """A page of integrations visible to the caller."""

    items: list[IntegrationItem]
    next_cursor: str | None


class TableUseOut(BaseModel):
    """The number of reads of a table by the integration in the last thirty days."""

    table: str
    reads: int
    last_at: datetime


class IntegrationOut(IntegrationItem):
    """An integration: its readable tables, its token and its usage."""

    description: str
    tables: list[str]
    acts_for: str | None = Field(description="The member whose permissions its token has")
    token: str | None = Field(description="The id of its token; null if it has no valid token")
    token_expires_at: datetime | None
    uses: list[TableUseOut]


class IntegrationMade(IntegrationOut):
    """An integration with its new token, which is shown once."""

    secret: str = Field(description="Its token, shown only once")


class IntegrationDeleted(BaseModel):
    """A deleted integration; its token is revoked."""

    id: str
    name: str
