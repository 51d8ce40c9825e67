"""Shared by groups and contexts: unique names, and lists ordered by name."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any

from pydantic import AfterValidator, Field
from sqlalchemy import Connection, Table, select, tuple_
from sqlalchemy.exc import IntegrityError

from headgate.kit.errors import Conflict, Denied, Invalid, NotFound
from headgate.kit.names import MAX_LENGTH, check_name, name_key
from headgate.kit.paging import Cursor
from headgate.platform.http.paging import begins_after
from headgate.platform.unit_of_work.call import Call

NameText = Annotated[str, Field(min_length=1, max_length=MAX_LENGTH, examples=["Analysts"]), AfterValidator(check_name)]
LONGEST = MAX_LENGTH + 150
Ref = Annotated[str, Field(min_length=1, max_length=LONGEST)]
"""A name or an id."""
LAST = "\U0010ffff"


def require_names(call: Call) -> None:
    """Refuse a token narrowed to listed data, because names of the organization are not included."""
    if not call.caller.narrowing.reaches_id("see", "organization", "organization", None):
        call.note_denial("see", "organization", "organization")
        raise Denied(
            "This token is restricted to a list of layers, tables and volumes, and may not access anything else"
        )


def page(call: Call, table: Table, prefix: str, limit: int, cursor: str | None) -> tuple[Sequence[Any], str | None]:
    """A page of a table's rows by name, and the next cursor."""
    if "\0" in prefix:
        raise Invalid("prefix: a name cannot contain control characters")
    purpose, key = f"{table.name} {prefix}", name_key(prefix)
    query = select(table)
    if key:
        query = query.where(table.c.name_key >= key, table.c.name_key < key + LAST)
    return paged(call.connection, query, table, limit, begins_after(cursor, purpose), purpose)


def paged(
    connection: Connection, query: Any, table: Table, limit: int, after: Cursor | None, purpose: str
) -> tuple[Sequence[Any], str | None]:
    """A page of a query's rows by name, and the next cursor."""
    place = tuple_(table.c.name_key, table.c.id)
    if after is not None:
        query = query.where(place > tuple_(after.value, after.id))
    ordered = query.order_by(table.c.name_key, table.c.id).limit(limit + 1)
    rows = connection.execute(ordered).mappings().all()
    last = rows[limit - 1] if len(rows) > limit else None
    return rows[:limit], Cursor(last["name_key"], last["id"]).encode(purpose) if last else None


def one(connection: Connection, table: Table, identifier: str) -> Any:
    """The row with this id, or NotFound."""
    row = connection.execute(select(table).where(table.c.id == identifier)).mappings().one_or_none()
    if row is None:
        raise NotFound
    return row


@contextmanager
def uniquely(connection: Connection, table: Table, noun: str, name: str, own: str = "") -> Iterator[None]:
    """Context manager around writing a name; raises Conflict if it is taken, even by a concurrent write."""
    same = select(table.c.name).where(table.c.name_key == name_key(name), table.c.id != own)
    value = connection.execute(same).scalar_one_or_none()
    if value is not None:
        raise Conflict(f"A {noun} called {value!r} already exists; names that look alike are the same")
    try:
        yield
    except IntegrityError:
        raise Conflict(f"A {noun} called {name!r} already exists; names that look alike are the same") from None
