"""Checks of unsaved configurations or secrets. A stored secret is sent only to the stored endpoint."""

import json
from dataclasses import replace

from sqlalchemy import Connection
from sqlalchemy.engine import RowMapping

from headgate.contracts.external_systems.endpoints import Endpoint
from headgate.contracts.external_systems.kinds import parse, stored
from headgate.kit.encryption import CannotOpen, Sealer
from headgate.kit.errors import Conflict
from headgate.kit.ids import kind_of
from headgate.platform.connection_checks.schemas import CheckIn
from headgate.platform.external_systems import service as places
from headgate.platform.external_systems.opener import open_endpoint
from headgate.platform.unit_of_work.call import Call
from headgate.platform.unit_of_work.services import Services

_TABLE, _COLUMN = "connection_checks", "sealed"


def check(call: Call, about: str, given: CheckIn) -> None:
    """Reject a configuration that could not be saved, a caller who may not save it, and secrets that it does not
    support.
    """
    now = places.stored_place(call, about)
    secrets, kind = given.secrets.given(), kind_of(about) or ""
    if given.place is not None or secrets:
        call.require("test_changes", kind, about)
    if given.place is not None:
        if given.place.kind != now.kind:
            raise Conflict(f"It stays of kind {now.kind}; make another for {given.place.kind}")
        places.check(call, given.place, writes=kind == "destination")
    places.check_secrets(given.place or now, secrets)


def sealed(sealer: Sealer, check: str, secrets: dict[str, str | None]) -> str | None:
    """The sealed secrets of a check, kept until it ends; None if there are none."""
    return sealer.seal(json.dumps(secrets), _TABLE, check, _COLUMN) if secrets else None


def endpoint(connection: Connection, services: Services, row: RowMapping) -> Endpoint:
    """The endpoint for the worker to check; Conflict if it cannot be opened."""
    endpoint = open_endpoint(connection, services, row["place_id"])
    if row["place"]:
        wanted = parse(row["place"]["kind"], {name: row["place"][name] for name in row["place"] if name != "kind"})
        is_stored = wanted.where() == parse(endpoint.kind, endpoint.config).where()
        endpoint = replace(endpoint, config=stored(wanted), secrets=endpoint.secrets if is_stored else {})
    return replace(endpoint, secrets=_given(services.sealer, row, endpoint.secrets))


def _given(sealer: Sealer, row: RowMapping, known: dict[str, str]) -> dict[str, str]:
    """The usable stored secrets, overridden by those given for this check."""
    if row["sealed"] is None:
        return known
    try:
        given = json.loads(sealer.open(row["sealed"], _TABLE, row["id"], _COLUMN))
    except CannotOpen:
        raise Conflict("The secrets given with this check cannot be opened any more; ask again") from None
    return {name: value for name, value in {**known, **given}.items() if value is not None}
