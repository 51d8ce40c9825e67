"""Connections over HTTP; what they point at is asked by errands."""

from headgate.kit.errors import Conflict
from headgate.kit.paging import DEFAULT_LIMIT
from headgate.platform.authorization.repository import ResourceSort
from headgate.platform.external_systems.schemas import ConnectionId
from headgate.platform.http.guards import MemberOn, SignedIn
from headgate.platform.http.paging import After, Limit, Prefix
from headgate.platform.http.routes import Audit, GovernedRouter
from headgate.platform.resources import presentation
from headgate.platform.unit_of_work.call import Call
from headgate.spaces.connections import repository, service
from headgate.spaces.connections.schemas import (
    ConnectionDeleted,
    ConnectionOut,
    ConnectionPage,
    ConnectionPatch,
    NewConnection,
)
from headgate.spaces.spaces.endpoints import Sort

router = GovernedRouter(prefix="/api/connections", tags=["connections"])


@router.governed("GET", "", SignedIn("sees the connections of the spaces in which they have a role"), Audit.reads)
def list_connections(
    call: Call, sort: Sort = ResourceSort.name, prefix: Prefix = "", limit: Limit = DEFAULT_LIMIT, cursor: After = None
) -> ConnectionPage:
    """Connections by page, with their spaces."""
    resources, following = presentation.listed(call, "connection", sort, prefix, limit, cursor)
    return ConnectionPage(items=repository.shown(call.connection, resources), next_cursor=following)


@router.governed(
    "POST", "", SignedIn("adds connections to the spaces that they may manage"), Audit.changes, errors=[Conflict]
)
def create_connection(call: Call, body: NewConnection) -> ConnectionOut:
    """Add a connection to a space that the caller manages, and own it. Secrets are stored sealed and never given out
    again. `POST /api/connections/{connection_id}/errands` tests it.
    """
    return service.shown(call, service.add(call, body))


@router.governed("GET", "/{connection_id}", MemberOn("list", "connection_id"), Audit.reads)
def get_connection(call: Call, connection_id: ConnectionId) -> ConnectionOut:
    """One connection. Where it points is shown to who may reach it or edit it; which secrets are set, not what they
    are.
    """
    call.note_read("list", "connection", connection_id)
    return service.shown(call, connection_id)


@router.governed("PATCH", "/{connection_id}", MemberOn("edit", "connection_id"), Audit.changes, errors=[Conflict])
def change_connection(call: Call, connection_id: ConnectionId, body: ConnectionPatch) -> ConnectionOut:
    """Change a connection, which its own owner alone may. Pointing it somewhere else (host, port, database, path,
    bucket, URL, TLS) clears its secrets, unless they are given with it, and holds what writes to it until someone who
    may start that confirms the new place. `POST /api/access/changes` with `change_owner` gives it to another member.
    """
    service.change(call, connection_id, body)
    return service.shown(call, connection_id)


@router.governed("DELETE", "/{connection_id}", MemberOn("delete", "connection_id"), Audit.changes, errors=[Conflict])
def delete_connection(call: Call, connection_id: ConnectionId) -> ConnectionDeleted:
    """Delete a connection with its secrets, if no pipeline and no data project uses it."""
    return ConnectionDeleted(id=connection_id, name=service.delete(call, connection_id))
