"""Database access to access requests."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, RowMapping, and_, case, func, insert, or_, select, update

from headgate.kit.ids import new_id
from headgate.kit.paging import BadCursor, Cursor
from headgate.organization.access_requests.models import request_table

OPEN = "open"
_requests = request_table.c
_closed = case((_requests.state == OPEN, 0), else_=1)


def add(connection: Connection, values: dict[str, Any], now: datetime) -> str:
    """Insert a request and return its id."""
    identifier = new_id("request")
    row = {"id": identifier, "state": OPEN, "created_at": now, **values}
    connection.execute(insert(request_table).values(row))
    return identifier


def get(connection: Connection, identifier: str) -> RowMapping | None:
    """A request, or None."""
    query = select(request_table).where(_requests.id == identifier)
    return connection.execute(query).mappings().one_or_none()


def open_one(connection: Connection, member: str, action: str, resource: str) -> str | None:
    """The id of the member's open request for this action and resource, or None."""
    same = (_requests.member_id == member, _requests.action == action, _requests.resource_id == resource)
    query = select(_requests.id).where(*same, _requests.state == OPEN)
    return connection.execute(query.limit(1)).scalar_one_or_none()


def count_open(connection: Connection, member: str) -> int:
    """How many open requests a member has."""
    query = select(func.count()).where(_requests.member_id == member, _requests.state == OPEN)
    return connection.execute(query).scalar_one()


def page(
    connection: Connection, member: str, *, own: bool, limit: int, after: Cursor | None
) -> tuple[Sequence[RowMapping], bool]:
    """Requests of a member, or of all others: open ones first, then the newest; and whether there are more."""
    query = select(request_table).where((_requests.member_id == member) if own else (_requests.member_id != member))
    if after is not None:
        query = query.where(_beyond(after))
    query = query.order_by(_closed, _requests.id.desc()).limit(limit + 1)
    result = connection.execute(query).mappings().all()
    return result[:limit], len(result) > limit


def _beyond(after: Cursor) -> Any:
    if after.value not in {"0", "1"}:
        raise BadCursor("not a cursor; leave it out to start from the first page")
    place = int(after.value)
    return or_(_closed > place, and_(_closed == place, _requests.id < after.id))


def place_of(row: RowMapping) -> Cursor:
    """The cursor after this request."""
    return Cursor("0" if row["state"] == OPEN else "1", row["id"])


def close(connection: Connection, identifier: str, state: str, **answer: Any) -> bool:
    """Close an open request; False if it was already closed."""
    still_open = (_requests.id == identifier, _requests.state == OPEN)
    return connection.execute(update(request_table).where(*still_open).values(state=state, **answer)).rowcount == 1
