"""Creates, changes, deletes and restores destinations in the transaction of the call, with audit events."""

from typing import Any

from sqlalchemy import insert

from headgate.kit.errors import Invalid
from headgate.marts.destinations import repository
from headgate.marts.destinations.schemas import DestinationDeleted, DestinationOut, DestinationPatch, NewDestination
from headgate.marts.models import destination_table
from headgate.organization.access import service as governance
from headgate.organization.access.changes.schemas import DeleteDestination, RestoreDestination
from headgate.platform.authorization import writer
from headgate.platform.authorization.fact_tables import owner_table
from headgate.platform.external_systems import service as places
from headgate.platform.resources import presentation
from headgate.platform.unit_of_work.call import Call
from headgate.platform.unit_of_work.creation import require_new

KIND = "destination"


def create(call: Call, given: NewDestination) -> str:
    """Create a private destination owned by the caller and return its id."""
    decision = require_new(call, "create", KIND, {})
    member = call.caller.member
    presentation.refuse_twin(call, KIND, given.name)
    secrets = given.secrets.given()
    with writer.new_resource(call.connection, KIND, given.name, call.now, member) as identifier:
        call.connection.execute(insert(destination_table).values(id=identifier))
        call.connection.execute(insert(owner_table).values(resource_id=identifier, member_id=member, ownership="owner"))
        places.add(call, identifier, given.place, secrets, writes=True)
    told = {"name": given.name, "owner": member, "place": given.place.where(), "secrets": sorted(secrets)}
    after = {"change": "create_destination", **told}
    call.record_change(decision, "create", KIND, identifier, before={}, after=after)
    return identifier


def change(call: Call, identifier: str, given: DestinationPatch) -> None:
    """Change the name, the settings or the secrets of a destination."""
    decision = call.require("edit", KIND, identifier)
    secrets = given.secrets.given()
    if given.name is None and given.place is None and not secrets:
        raise Invalid("the request changes nothing; give a name, a place or secrets")
    before = presentation.one(call, identifier).name
    if given.name is not None:
        presentation.refuse_twin(call, KIND, given.name, identifier)
    told: dict[str, Any] = {"name": given.name} if given.name is not None else {}
    if given.place is not None or secrets:
        told |= places.change(call, identifier, given.place, secrets, writes=True)
    writer.save(call.connection, identifier, call.now, given.name)
    after = {"change": "change_destination", **told}
    call.record_change(decision, "edit", KIND, identifier, before={"name": before}, after=after)


def delete(call: Call, identifier: str) -> DestinationDeleted:
    """Delete a destination; it can be restored. Deliveries to it no longer start."""
    name, users = presentation.one(call, identifier).name, repository.users(call.connection, identifier)
    governance.apply(call, DeleteDestination(destination=identifier))
    return DestinationDeleted(id=identifier, name=name, users=users)


def restore(call: Call, identifier: str) -> None:
    """Restore a deleted destination."""
    governance.apply(call, RestoreDestination(destination=identifier))


def shown(call: Call, identifier: str) -> DestinationOut:
    """A destination with its host and settings."""
    resource = presentation.one(call, identifier)
    item = repository.shown(call.connection, [resource])[0]
    users = repository.users(call.connection, identifier) if "delete" in resource.allowed else None
    return DestinationOut(**item.model_dump(), place=places.shown(call, identifier), users=users)
