"""Creates, changes and deletes connections in the transaction of the call, with audit events."""

from typing import Any

from sqlalchemy import insert

from headgate.kit.errors import Conflict, Invalid
from headgate.platform.authorization import writer
from headgate.platform.external_systems import service as places
from headgate.platform.resources import presentation
from headgate.platform.unit_of_work.call import Call
from headgate.platform.unit_of_work.creation import require_new
from headgate.spaces.connections import repository
from headgate.spaces.connections.models import connection_table
from headgate.spaces.connections.schemas import ConnectionOut, ConnectionPatch, NewConnection

KIND = "connection"
SEES_PLACE = frozenset({"connect", "edit"})
"""The actions that allow seeing a connection's host and settings; more members see its name in lists."""


def add(call: Call, given: NewConnection) -> str:
    """Create a connection in a space and return its id. The caller becomes its owner."""
    space = presentation.named(call, "space", given.space)
    decision = require_new(call, "add", KIND, {"space": space})
    _refuse_same_name(call, space, given.name)
    owner, secrets = call.caller.member, given.secrets.given()
    allowed_by = owner if given.allow_code else None
    with writer.new_resource(call.connection, KIND, given.name, call.now, owner) as identifier:
        row = {"id": identifier, "space_id": space, "owner_id": owner, "code_allowed_by_id": allowed_by}
        call.connection.execute(insert(connection_table).values(row))
        places.add(call, identifier, given.place, secrets, writes=False)
    told: dict[str, Any] = {
        "name": given.name,
        "space": space,
        "place": given.place.where(),
        "secrets": sorted(secrets),
    }
    told |= {"allow_code": given.allow_code}
    call.record_change(decision, "add", KIND, identifier, before={}, after={"change": "add_connection", **told})
    return identifier


def change(call: Call, identifier: str, given: ConnectionPatch) -> None:
    """Change the name, the settings or the secrets of a connection."""
    decision = call.require("edit", KIND, identifier)
    secrets = given.secrets.given()
    if given.name is None and given.place is None and given.allow_code is None and not secrets:
        raise Invalid("the request changes nothing; give a name, a place, secrets or allow_code")
    if given.name is not None:
        _refuse_same_name(call, repository.space_of(call.connection, identifier), given.name, identifier)
    before = presentation.one(call, identifier).name
    told: dict[str, Any] = {"name": given.name} if given.name is not None else {}
    if given.place is not None or secrets:
        told |= places.change(call, identifier, given.place, secrets, writes=False)
    if given.allow_code is not None:
        repository.allow_code(call.connection, identifier, call.caller.member if given.allow_code else None)
        told["allow_code"] = given.allow_code
    writer.save(call.connection, identifier, call.now, given.name)
    after = {"change": "change_connection", **told}
    call.record_change(decision, "edit", KIND, identifier, before={"name": before}, after=after)


def delete(call: Call, identifier: str) -> str:
    """Delete an unused connection; returns its name."""
    decision = call.require("delete", KIND, identifier)
    name = presentation.one(call, identifier).name
    for noun, count in repository.users(call.connection, identifier).items():
        if count:
            users = f"a {noun} uses" if count == 1 else f"{count} {noun}s use"
            raise Conflict(f"{name!r} cannot be deleted: {users} it; change their connection first")
    writer.remove(call.connection, [identifier])
    after = {"change": "delete_connection"}
    call.record_change(decision, "delete", KIND, identifier, before={"name": name}, after=after)
    return name


def shown(call: Call, identifier: str) -> ConnectionOut:
    """A connection, with its host and settings only if the caller may use or edit it."""
    resource = presentation.one(call, identifier)
    item = repository.shown(call.connection, [resource])[0]
    gateway = repository.gateway_of(call.connection, identifier)
    is_open = not SEES_PLACE.isdisjoint(resource.allowed)
    if gateway is not None and not call.may_see(gateway.id):
        gateway = None
    place = places.shown(call, identifier) if is_open else None
    return ConnectionOut(**item.model_dump(), gateway=gateway, place=place)


def _refuse_same_name(call: Call, space: str, name: str, own: str = "") -> None:
    taken = repository.same_name(call.connection, space, name, own)
    if taken is not None:
        raise Conflict(
            f"A connection called {taken!r} already exists in this space; names that look alike are the same"
        )
