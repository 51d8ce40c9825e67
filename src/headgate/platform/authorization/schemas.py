"""API schemas of resources."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated

from pydantic import BaseModel, Field

from headgate.access.kinds import KINDS, stored_kind


def _kinds() -> dict[str, str]:
    hidden = {"organization", "member", "ref"}
    return {kind: kind for kind in dict.fromkeys(stored_kind(value) for value in KINDS) if kind not in hidden}


Kind = StrEnum("Kind", _kinds())  # type: ignore[misc]
Kind.__doc__ = "The kinds of resources."


# Not frozen: a page creates a hundred of these, and a frozen dataclass takes five times as long to create.
@dataclass(slots=True)
class Creator:
    """The creator of a resource."""

    id: Annotated[str, Field(examples=["mbr_01k6x3v9c2m4n8p0q7rs"])]
    name: Annotated[str, Field(examples=["Ana"])]


@dataclass(slots=True)
class Resource:
    """A resource, with the caller's actions on it."""

    id: Annotated[str, Field(examples=["dm_01k6x3v9c2m4n8p0q7rs"])]
    kind: Annotated[str, Field(examples=["data_mart"])]
    name: Annotated[str, Field(examples=["Sales"], description="Of a table or volume, with its layer: gold.orders")]
    created_at: datetime
    updated_at: Annotated[datetime, Field(description="When it was last saved; changes of access do not count")]
    created_by: Annotated[Creator | None, Field(description="Null for a removed member")]
    allowed: Annotated[tuple[str, ...], Field(examples=[["see", "use"]], description="The caller's actions")]
    via: Annotated[
        tuple[str, ...], Field(examples=[["ownership floor"]], description="The access paths that grant them")
    ]


class ResourcePage(BaseModel):
    """A page of a list."""

    items: list[Resource]
    next_cursor: str | None = Field(description="Pass as `cursor` to get the next page; null on the last page")
    total: str | None = Field(
        None, examples=["42", "10,000+"], description="The total number, if requested; exact up to 10,000"
    )


Limit = Annotated[int, Field(ge=1, le=200, description="Maximum number of items on a page")]
