"""The audit log, newest first."""

from datetime import datetime
from typing import Annotated, Any

from fastapi import Query
from pydantic import BaseModel, Field
from sqlalchemy import select

from headgate.audit.models import audit_event_table
from headgate.edge.call import Call
from headgate.edge.guards import OnOrganization
from headgate.edge.routes import Audit, GovernedRouter
from headgate.errors import Invalid
from headgate.kit.paging import DEFAULT_LIMIT, MAX_LIMIT, BadCursor, Cursor

router = GovernedRouter(prefix="/api/audit", tags=["audit"])
_events = audit_event_table


class AuditEventOut(BaseModel):
    """Something that was decided or changed."""

    id: int
    at: datetime
    event: str = Field(examples=["access.changed"])
    actor: str | None = Field(examples=["mbr_01k6x3v9c2m4n8p0q7rs"])
    action: str | None = Field(examples=["grant"])
    kind: str | None = Field(examples=["table"])
    resource: str | None = Field(examples=["tbl_01k6x3v9c2m4n8p0q7rs"])
    allowed: bool
    via: list[str] = Field(examples=[["Manager"]])
    before: dict[str, Any] | None
    after: dict[str, Any] | None
    request_id: str | None
    sealed: bool = Field(description="Whether it is chained to the event before it")


class AuditPage(BaseModel):
    """A page of the log."""

    items: list[AuditEventOut]
    next_cursor: str | None


@router.governed(
    "GET", "", guard=OnOrganization("read_audit"), audit=Audit.nothing, summary="The audit log, newest first"
)
def list_audit_events(
    call: Call,
    actor: Annotated[str | None, Query(max_length=40, description="Only by this member, by id")] = None,
    resource: Annotated[str | None, Query(max_length=40, description="Only about this resource, by id")] = None,
    event: Annotated[str | None, Query(max_length=40, description="Only of this sort")] = None,
    limit: Annotated[int, Query(ge=1, le=MAX_LIMIT)] = DEFAULT_LIMIT,
    cursor: Annotated[str | None, Query(max_length=4000)] = None,
) -> AuditPage:
    """What was decided and changed."""
    filters = {"actor_id": actor, "resource_id": resource, "event": event}
    if any("\0" in value for value in filters.values() if value):
        raise Invalid("query: an id cannot hold control characters")
    purpose = "audit " + " ".join(value or "" for value in filters.values())
    query = select(_events).order_by(_events.c.id.desc()).limit(limit + 1)
    for column, value in filters.items():
        if value is not None:
            query = query.where(_events.c[column] == value)
    if cursor is not None:
        query = query.where(_events.c.id < _before(cursor, purpose))
    rows = call.connection.execute(query).mappings().all()
    items = [_shown(row) for row in rows[:limit]]
    following = Cursor("", str(items[-1].id)).encode(purpose) if len(rows) > limit else None
    return AuditPage(items=items, next_cursor=following)


def _before(cursor: str, purpose: str) -> int:
    try:
        return int(Cursor.decode(cursor, purpose).id)
    except (BadCursor, ValueError) as error:
        raise Invalid(f"query.cursor: {error}") from None


def _shown(row: Any) -> AuditEventOut:
    return AuditEventOut(
        id=row["id"],
        at=row["at"],
        event=row["event"],
        actor=row["actor_id"],
        action=row["action"],
        kind=row["kind"],
        resource=row["resource_id"],
        allowed=row["allowed"],
        via=row["via"],
        before=row["before"],
        after=row["after"],
        request_id=row["request_id"],
        sealed=row["seal_number"] is not None,
    )
