"""Database access to audit events."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, or_, select

from headgate.kit.rows import columns_of, fetch_all
from headgate.platform.audit.models import audit_event_table

_events = audit_event_table.c


@dataclass(frozen=True, slots=True)
class AuditEvent:
    """An event of the log."""

    id: int
    at: datetime
    event: str
    actor_id: str | None
    action: str | None
    kind: str | None
    resource_id: str | None
    allowed: bool
    via: list[str]
    before: dict[str, Any] | None
    after: dict[str, Any] | None
    request_id: str | None
    seal_number: int | None


def page(connection: Connection, filters: Mapping[str, str | None], limit: int, before: int | None) -> list[AuditEvent]:
    """Events with these column values, newest first.

    Quarantined events were not written by this installation and are not included; `headgate audit verify` reports them.
    """
    recorded = or_(_events.seal.is_(None), _events.seal_number.is_not(None))
    equal = [audit_event_table.c[column] == value for column, value in filters.items() if value is not None]
    query = select(*columns_of(audit_event_table, AuditEvent)).where(recorded, *equal)
    if before is not None:
        query = query.where(_events.id < before)
    return fetch_all(connection, query.order_by(_events.id.desc()).limit(limit), AuditEvent)
