"""Connection endpoints. Connection checks have their own endpoints."""

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
    """List connections, each with its space."""
    resources, following = presentation.listed(call, "connection", sort, prefix, limit, cursor)
    return ConnectionPage(items=repository.shown(call.connection, resources), next_cursor=following)


@router.governed(
    "POST", "", SignedIn("adds connections to the spaces that they may manage"), Audit.changes, errors=[Conflict]
)
def create_connection(call: Call, body: NewConnection) -> ConnectionOut:
    """Create a connection in a space that the caller manages, and become its owner. Secrets are stored sealed and never
    returned. `POST /api/connections/{connection_id}/checks` tests it.
    """
    return service.shown(call, service.add(call, body))


@router.governed("GET", "/{connection_id}", MemberOn("list", "connection_id"), Audit.reads)
def get_connection(call: Call, connection_id: ConnectionId) -> ConnectionOut:
    """Get a connection. Its host and settings are shown to callers who may use or edit it, with the names of stored
    secrets but not their values.
    """
    call.note_read("list", "connection", connection_id)
    return service.shown(call, connection_id)


@router.governed("PATCH", "/{connection_id}", MemberOn("edit", "connection_id"), Audit.changes, errors=[Conflict])
def change_connection(call: Call, connection_id: ConnectionId, body: ConnectionPatch) -> ConnectionOut:
    """Change a connection; only its owner may. A change of host, port, database, path, bucket, URL or TLS settings
    deletes the secrets, unless the request includes new ones, and stops pipelines that write to it until a member who
    may start them confirms the change. `POST /api/access/changes` with `change_owner` transfers it to another member.
    """
    service.change(call, connection_id, body)
    return service.shown(call, connection_id)


@router.governed("DELETE", "/{connection_id}", MemberOn("delete", "connection_id"), Audit.changes, errors=[Conflict])
def delete_connection(call: Call, connection_id: ConnectionId) -> ConnectionDeleted:
    """Delete a connection and its secrets, if no pipeline and no data project uses it."""
    return ConnectionDeleted(id=connection_id, name=service.delete(call, connection_id))
