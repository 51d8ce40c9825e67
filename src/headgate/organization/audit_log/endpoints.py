"""Audit log endpoint, newest events first."""

from datetime import datetime
from typing import Annotated, Any

from fastapi import Query
from pydantic import BaseModel, Field

from headgate.access.kinds import KINDS, stored_kind
from headgate.kit.errors import Invalid
from headgate.kit.ids import kind_of
from headgate.kit.paging import DEFAULT_LIMIT, MAX_LIMIT, BadCursor, Cursor
from headgate.organization.audit_log import repository
from headgate.organization.audit_log.repository import AuditEvent
from headgate.platform.directory.repository import member_names
from headgate.platform.http.guards import OnOrganization
from headgate.platform.http.routes import Audit, GovernedRouter
from headgate.platform.unit_of_work.call import Call

router = GovernedRouter(prefix="/api/audit", tags=["audit"])
LARGEST = (1 << 63) - 1


class AuditEventOut(BaseModel):
    """A decision or change."""

    id: int
    at: datetime
    event: str = Field(examples=["access.changed"])
    actor: str | None = Field(examples=["mbr_01k6x3v9c2m4n8p0q7rs"])
    actor_name: str | None = Field(examples=["Ana"], description="Null for a removed member")
    action: str | None = Field(examples=["grant"])
    kind: str | None = Field(examples=["table"])
    resource: str | None = Field(examples=["tbl_01k6x3v9c2m4n8p0q7rs"])
    allowed: bool
    via: list[str] = Field(examples=[["Manager"]])
    before: dict[str, Any] | None
    after: dict[str, Any] | None
    request_id: str | None
    sealed: bool = Field(description="Whether it is part of the hash chain")


class AuditPage(BaseModel):
    """A page of the log."""

    items: list[AuditEventOut]
    next_cursor: str | None


@router.governed("GET", "", OnOrganization("read_audit"), Audit.nothing)
def list_audit_events(
    call: Call,
    actor: Annotated[str | None, Query(max_length=350, description="Only by this member, by name or id")] = None,
    resource: Annotated[
        str | None, Query(max_length=350, description="Only about this resource: kind:name, or an id")
    ] = None,
    event: Annotated[str | None, Query(max_length=40, description="Only this type of event")] = None,
    limit: Annotated[int, Query(ge=1, le=MAX_LIMIT)] = DEFAULT_LIMIT,
    cursor: Annotated[str | None, Query(max_length=4000)] = None,
) -> AuditPage:
    """List audit events."""
    filters = {"actor_id": _actor(call, actor), "resource_id": _resource(call, resource), "event": event}
    if event and "\0" in event:
        raise Invalid("event: cannot contain control characters")
    purpose = "audit " + " ".join(value or "" for value in filters.values())
    before = _before(cursor, purpose) if cursor is not None else None
    rows = repository.page(call.connection, filters, limit + 1, before)
    names = member_names(call.connection, [row.actor_id for row in rows[:limit]])
    items = [_shown(row, names, call.caller.member) for row in rows[:limit]]
    following = Cursor("", str(items[-1].id)).encode(purpose) if len(rows) > limit else None
    return AuditPage(items=items, next_cursor=following)


def _before(cursor: str, purpose: str) -> int:
    try:
        identifier = int(Cursor.decode(cursor, purpose).id)
    except (BadCursor, ValueError) as error:
        raise Invalid(f"cursor: {error}") from None
    return min(max(identifier, 0), LARGEST)


def _actor(call: Call, text: str | None) -> str | None:
    """The id of the actor; an id that no current member has may be that of a removed one."""
    if text is None or kind_of(text):
        return text
    resolved = call.lookup.of("member", text)
    if resolved is None:
        raise Invalid(f"actor: there is no member called {text!r}; give a removed member by id")
    return resolved


def _resource(call: Call, text: str | None) -> str | None:
    """The id of the resource; deleted resources are named by id."""
    if text is None or kind_of(text):
        return text
    kind, _, name = text.partition(":")
    resolved = call.lookup.of(kind, name) if stored_kind(kind) in KINDS and name else None
    if resolved is None:
        raise Invalid(f"resource: there is no {text!r}; write kind:name, or an id")
    return resolved


def _shown(row: AuditEvent, names: dict[str, str], reader: str) -> AuditEventOut:
    # Saved queries are private, including their existence.
    is_private = row.kind == "saved_query" and row.actor_id != reader
    return AuditEventOut(
        id=row.id,
        at=row.at,
        event=row.event,
        actor=row.actor_id,
        actor_name=names.get(row.actor_id or ""),
        action=row.action,
        kind=row.kind,
        resource=None if is_private else row.resource_id,
        allowed=row.allowed,
        via=row.via,
        before=row.before,
        after=row.after,
        request_id=row.request_id,
        sealed=row.seal_number is not None,
    )
