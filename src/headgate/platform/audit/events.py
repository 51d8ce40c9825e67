"""Audit events, written in the transaction of the change they describe, or in batches for reads of data."""

from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, String, insert

from headgate.platform.audit.models import audit_event_table
from headgate.platform.audit.signatures import mark

CHANGED = "access.changed"
DENIED = "access.denied"
DECIDED = "access.decided"
READ = "resource.read"


@dataclass(frozen=True, slots=True)
class Event:
    """A decision or change, with the actor and the path that allowed it."""

    at: datetime
    event: str
    allowed: bool
    actor_id: str | None = None
    token_id: str | None = None
    request_id: str | None = None
    action: str | None = None
    kind: str | None = None
    resource_id: str | None = None
    via: list[str] = field(default_factory=list)
    before: dict[str, Any] | None = None
    after: dict[str, Any] | None = None


_FIELDS = tuple(field.name for field in fields(Event))
_WIDTHS = tuple(
    (column.name, column.type.length)
    for column in audit_event_table.columns
    if column.name in _FIELDS and isinstance(column.type, String) and column.type.length
)


def _stored(event: Event) -> dict[str, Any]:
    """An event as stored; values from callers are truncated to the width of their column."""
    row = {name: getattr(event, name) for name in _FIELDS}
    for name, width in _WIDTHS:
        value = row[name]
        if value is not None and len(value) > width:
            row[name] = value[: width - 1] + "…"
    return row


def record(connection: Connection, events: Iterable[Event]) -> None:
    """Add events to the log in this transaction."""
    rows = [_stored(event) for event in events]
    for row in rows:
        row["mark"] = mark(connection, row)
    if rows:
        connection.execute(insert(audit_event_table), rows)
