"""Destination endpoints. Sharing, owners and contexts are changed by `POST /api/access/changes`."""

from typing import Annotated

from fastapi import Query

from headgate.kit.errors import Conflict
from headgate.kit.paging import DEFAULT_LIMIT
from headgate.marts.destinations import repository, service
from headgate.marts.destinations.schemas import (
    DestinationDeleted,
    DestinationOut,
    DestinationPage,
    DestinationPatch,
    NewDestination,
)
from headgate.platform.authorization.repository import ResourceSort
from headgate.platform.external_systems.schemas import DestinationId
from headgate.platform.http.guards import MemberOn, SignedIn
from headgate.platform.http.paging import After, Limit, Prefix
from headgate.platform.http.routes import Audit, GovernedRouter
from headgate.platform.resources import presentation
from headgate.platform.unit_of_work.call import Call
from headgate.spaces.spaces.endpoints import Sort

router = GovernedRouter(prefix="/api/destinations", tags=["destinations"])

Deleted = Annotated[bool, Query(description="Deleted destinations that the caller may restore")]


@router.governed("GET", "", SignedIn("sees the destinations that they own or that are shared with them"), Audit.reads)
def list_destinations(
    call: Call,
    deleted: Deleted = False,
    sort: Sort = ResourceSort.name,
    prefix: Prefix = "",
    limit: Limit = DEFAULT_LIMIT,
    cursor: After = None,
) -> DestinationPage:
    """List destinations."""
    action = "restore" if deleted else None
    resources, following = presentation.listed(call, "destination", sort, prefix, limit, cursor, action=action)
    return DestinationPage(items=repository.shown(call.connection, resources), next_cursor=following)


@router.governed("POST", "", SignedIn("makes destinations, whatever their role"), Audit.changes, errors=[Conflict])
def create_destination(call: Call, body: NewDestination) -> DestinationOut:
    """Create a destination and become its owner; it is private until it is shared. Secrets are stored sealed and never
    returned.
    """
    return service.shown(call, service.create(call, body))


@router.governed("GET", "/{destination_id}", MemberOn("see", "destination_id"), Audit.reads)
def get_destination(call: Call, destination_id: DestinationId) -> DestinationOut:
    """Get a destination with its host and settings, and with the names of stored secrets but not their values."""
    call.note_read("see", "destination", destination_id)
    return service.shown(call, destination_id)


@router.governed("PATCH", "/{destination_id}", MemberOn("edit", "destination_id"), Audit.changes, errors=[Conflict])
def change_destination(call: Call, destination_id: DestinationId, body: DestinationPatch) -> DestinationOut:
    """Change a destination. A change of host, port, database, path, bucket, URL or TLS settings deletes the secrets,
    unless the request includes new ones, and stops deliveries to it until a member who may start them confirms the
    change.
    """
    service.change(call, destination_id, body)
    return service.shown(call, destination_id)


@router.governed("DELETE", "/{destination_id}", MemberOn("delete", "destination_id"), Audit.changes)
def delete_destination(call: Call, destination_id: DestinationId) -> DestinationDeleted:
    """Delete a destination, even if it is in use: deliveries to it do not start until it is restored or replaced."""
    return service.delete(call, destination_id)


@router.governed("POST", "/{destination_id}/restore", MemberOn("restore", "destination_id"), Audit.changes)
def restore_destination(call: Call, destination_id: DestinationId) -> DestinationOut:
    """Restore a deleted destination with its secrets."""
    service.restore(call, destination_id)
    return service.shown(call, destination_id)
