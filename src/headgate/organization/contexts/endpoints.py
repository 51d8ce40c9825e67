"""Context endpoints. Contexts are attached and detached by access changes."""

from typing import Annotated, Any

from fastapi import Path

from headgate.kit.errors import Conflict
from headgate.kit.paging import DEFAULT_LIMIT
from headgate.organization.contexts import repository, service
from headgate.organization.contexts.models import context_table
from headgate.organization.contexts.schemas import ContextDeleted, ContextName, ContextOut, ContextPage
from headgate.platform.http.guards import OnOrganization, SignedIn
from headgate.platform.http.paging import After, Limit, Prefix
from headgate.platform.http.routes import Audit, GovernedRouter
from headgate.platform.resources.names import one, page, require_names
from headgate.platform.unit_of_work.call import Call

router = GovernedRouter(prefix="/api/contexts", tags=["contexts"])

ContextId = Annotated[str, Path(pattern="^ctx_[0-9a-z]{20}$", examples=["ctx_01k6x3v9c2m4n8p0q7rs"])]


def _shown(call: Call, rows: Any) -> list[ContextOut]:
    """Contexts as shown to the caller: with counts, or only the name."""
    counts: dict[str, dict[str, int]] = {}
    if call.decide("manage_contexts", "organization", "organization"):
        counts = repository.attachments(call.connection, [row["id"] for row in rows], call.now)
    return [
        ContextOut(id=row["id"], name=row["name"], created_at=row["created_at"], **counts.get(row["id"], {}))
        for row in rows
    ]


@router.governed(
    "GET", "", SignedIn("knows the names of contexts; counts with manage_contexts", operator_too=True), Audit.nothing
)
def list_contexts(call: Call, prefix: Prefix = "", limit: Limit = DEFAULT_LIMIT, cursor: After = None) -> ContextPage:
    """List contexts by name; members who manage contexts also see the number of attachments."""
    require_names(call)
    rows, following = page(call, context_table, prefix, limit, cursor)
    return ContextPage(items=_shown(call, rows), next_cursor=following)


def _context(call: Call, context: str) -> ContextOut:
    return _shown(call, [one(call.connection, context_table, context)])[0]


@router.governed("POST", "", OnOrganization("manage_contexts"), Audit.changes, errors=[Conflict])
def create_context(call: Call, body: ContextName) -> ContextOut:
    """Create a context without attachments."""
    return _context(call, service.create(call, body.name))


@router.governed("PATCH", "/{context_id}", OnOrganization("manage_contexts"), Audit.changes, errors=[Conflict])
def rename_context(call: Call, context_id: ContextId, body: ContextName) -> ContextOut:
    """Rename a context; its attachments remain."""
    service.rename(call, context_id, body.name)
    return _context(call, context_id)


@router.governed("DELETE", "/{context_id}", OnOrganization("manage_contexts"), Audit.changes, errors=[Conflict])
def delete_context(call: Call, context_id: ContextId) -> ContextDeleted:
    """Delete a context; refused while it is attached to a resource, a member or a pending invitation."""
    return ContextDeleted(id=context_id, name=service.remove(call, context_id))
