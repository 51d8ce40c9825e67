"""Paging of lists in requests."""

from typing import Annotated

from fastapi import Query

from headgate.kit.errors import Invalid
from headgate.kit.names import MAX_LENGTH
from headgate.kit.paging import MAX_LIMIT, BadCursor, Cursor

Prefix = Annotated[str, Query(max_length=MAX_LENGTH, description="Only names that start with this")]
Limit = Annotated[int, Query(ge=1, le=MAX_LIMIT)]
After = Annotated[str | None, Query(max_length=4000, description="The `next_cursor` of the previous page")]


def begins_after(cursor: str | None, purpose: str, place: str = "cursor") -> Cursor | None:
    """The start of a page; Invalid, naming the parameter, for a cursor of another list."""
    try:
        return Cursor.decode(cursor, purpose) if cursor else None
    except BadCursor as error:
        raise Invalid(f"{place}: {error}") from None
