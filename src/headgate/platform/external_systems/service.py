"""Sets and shows the endpoints of connections and destinations. The calling packages authorize."""

from typing import Any

from headgate.contracts.external_systems.kinds import AnyPlace, Folder, parse
from headgate.kit.call_errors import CallRefused
from headgate.kit.errors import Conflict, Invalid
from headgate.outgoing.client import check_url
from headgate.outgoing.folders import FolderNotAllowed, check_saved
from headgate.outgoing.sockets import check_host
from headgate.platform.external_systems import repository
from headgate.platform.external_systems import secrets as sealing
from headgate.platform.external_systems.schemas import EndpointFieldsOut, SecretOut
from headgate.platform.unit_of_work.call import Call


def check(call: Call, place: AnyPlace, *, writes: bool) -> None:
    """Reject an endpoint that is known to be forbidden: a non-public address, or a folder that is not allowed.

    Host names are checked again by their addresses each time a worker connects.
    """
    settings = call.settings
    try:
        for target in place.dials():
            if "://" in target:
                check_url(target, settings.outgoing)
            else:
                check_host(target, settings.outgoing)
        if isinstance(place, Folder):
            allowed = settings.deliveries.folders if writes else settings.sources.folders
            check_saved(place.path, allowed, "deliveries.folders" if writes else "sources.folders")
    except (CallRefused, FolderNotAllowed) as error:
        raise Invalid(f"place: {error}") from None


def check_secrets(place: AnyPlace, secrets: dict[str, str | None]) -> None:
    """Reject secrets that an endpoint does not support."""
    takes = place.takes()
    for name, value in secrets.items():
        if name not in takes and value is not None:
            supported = f"it takes {', '.join(takes)}" if takes else "it takes none"
            raise Invalid(f"secrets.{name}: there is no such secret for this kind; {supported}")


def stored_place(call: Call, identifier: str) -> AnyPlace:
    """The stored endpoint configuration; Conflict if there is none."""
    row = repository.row(call.connection, identifier)
    if row is None:
        raise Conflict("It has no host configured; set `place` first")
    return parse(row["place_kind"], row["config"])


def add(call: Call, identifier: str, place: AnyPlace, secrets: dict[str, str | None], *, writes: bool) -> None:
    """Set the endpoint and the secrets of a new resource."""
    check(call, place, writes=writes)
    check_secrets(place, secrets)
    repository.add(call.connection, identifier, place, call.now)
    sealing.put(call.connection, call.services.sealer, identifier, secrets, call.now)


def change(
    call: Call, identifier: str, place: AnyPlace | None, secrets: dict[str, str | None], *, writes: bool
) -> dict[str, Any]:
    """Change an endpoint or its secrets; returns the fields for the audit log.

    If the endpoint changes, its stored secrets are deleted, so that nobody can have them sent to their own host.
    """
    row = repository.row(call.connection, identifier)
    if row is None:
        if place is None:
            raise Conflict("It has no host configured; set `place` in this request")
        add(call, identifier, place, secrets, writes=writes)
        return {"place": place.where(), "moved": True, "secrets": sorted(secrets)}
    before = parse(row["place_kind"], row["config"])
    after = place or before
    details: dict[str, Any] = {}
    if place is not None:
        if place.kind != before.kind:
            raise Conflict(f"The kind {before.kind} cannot change; create a new one for {place.kind}")
        check(call, place, writes=writes)
        repository.write(call.connection, identifier, place)
        details["place"] = place.where()
        if place.where() != before.where():
            repository.move(call.connection, identifier, call.now)
            details["moved"] = True
    check_secrets(after, secrets)
    stale = set(repository.secrets_set(call.connection, identifier)) - set(after.takes())
    sealing.put(call.connection, call.services.sealer, identifier, {**dict.fromkeys(stale), **secrets}, call.now)
    return {**details, **({"secrets": sorted(secrets)} if secrets else {})}


def shown(call: Call, identifier: str) -> EndpointFieldsOut | None:
    """The endpoint, and which of its secrets are set; None without an endpoint."""
    row = repository.row(call.connection, identifier)
    if row is None:
        return None
    place, set_at = parse(row["place_kind"], row["config"]), repository.secrets_set(call.connection, identifier)
    return EndpointFieldsOut(
        kind=row["place_kind"],
        config=row["config"],
        secrets=[
            SecretOut(name=name, needed=needed, set_at=set_at.get(name)) for name, needed in place.takes().items()
        ],
        version=row["version"],
        moved_at=row["moved_at"],
    )
