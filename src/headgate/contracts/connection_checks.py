"""Messages between workers and the server about connection checks."""

from datetime import datetime
from typing import Annotated, Any

from pydantic import BaseModel, Field

from headgate.contracts.external_systems.endpoints import Endpoint


class CheckPayload(BaseModel):
    """A connection or destination to check."""

    check: str = Field(examples=["test"], description="test or discover")
    question: dict[str, Any]
    writes: bool = Field(description="Whether it is a destination, which is written to")
    endpoint: Endpoint
    max_bytes: int = Field(description="The largest result that the server takes, as JSON")


class DiscoveredColumn(BaseModel):
    """A column of a stream."""

    name: str = Field(examples=["order_id"])
    type: str = Field(examples=["bigint"], description="As its own system calls it")
    nullable: bool = True


class DiscoveredStream(BaseModel):
    """A stream that a pipeline could read."""

    name: str = Field(examples=["public.orders"], description="As a stream of a pipeline names it")
    sort: str = Field(examples=["table"], description="table, view or file")
    columns: list[DiscoveredColumn] = Field(default_factory=list)
    keys: list[str] = Field(default_factory=list, description="The columns of its primary key")
    bytes: int | None = None
    modified_at: datetime | None = None


class Findings(BaseModel):
    """The result of a connection check."""

    detail: str = Field(examples=["PostgreSQL 17.2, as reader, over TLSv1.3"])
    milliseconds: int
    streams: list[DiscoveredStream] | None = None
    truncated: Annotated[bool, Field(description="Whether there are more than were asked for, or than fit")] = False
