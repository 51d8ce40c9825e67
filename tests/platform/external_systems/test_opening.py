"""Places as workers get them: opened with their secrets, whatever keys were turned meanwhile."""

from typing import Any

import pytest
from sqlalchemy import text

from headgate.kit.errors import Conflict, NotFound
from headgate.platform.external_systems.opener import open_endpoint
from headgate.platform.secrets.installation_keys import key_file
from headgate.platform.secrets.rotation import rotate, usage
from tests.spaces.connections.support import SECRET, added
from tests.support.company import Company


def opened(millrace: Company, identifier: str) -> Any:
    services = millrace.client.app.state.services  # type: ignore[attr-defined]
    with millrace.database.read() as connection:
        return open_endpoint(connection, services, identifier)


def test_an_opened_place_has_its_secrets_and_does_not_show_them(millrace: Company) -> None:
    found = added(millrace)
    place = opened(millrace, found["id"])
    assert (place.kind, place.config["host"], place.secrets) == ("postgresql", "db.example.com", {"password": SECRET})
    assert SECRET not in repr(place)


def test_a_rotation_of_keys_goes_through_the_secrets_of_places(millrace: Company) -> None:
    found = added(millrace)
    keys = key_file(millrace.settings)
    before = set(_keys(millrace))
    done = rotate(millrace.database, keys)
    assert done.resealed == 1
    assert set(_keys(millrace)).isdisjoint(before)
    assert opened(millrace, found["id"]).secrets == {"password": SECRET}


def _keys(millrace: Company) -> list[str | None]:
    with millrace.database.read() as connection:
        return list(usage(connection))


def test_a_secret_opens_only_where_it_was_sealed(millrace: Company) -> None:
    one, other = added(millrace), added(millrace, name="Other")
    stolen = "(SELECT value FROM place_secrets WHERE place_id = :one)"
    move = text(f"UPDATE place_secrets SET value = {stolen} WHERE place_id = :other")
    millrace.database.write(lambda c: c.execute(move, {"one": one["id"], "other": other["id"]}))
    with pytest.raises(Conflict, match="set them again"):
        opened(millrace, other["id"])


def test_what_points_nowhere_or_goes_by_a_gateway_is_not_opened(millrace: Company) -> None:
    nowhere = millrace.id("connection", "Shop database")
    with pytest.raises(NotFound):
        opened(millrace, nowhere)
    found = added(millrace)
    gateway = text("UPDATE connections SET gateway_id = :gateway WHERE id = :id")
    values = {"gateway": millrace.id("gateway", "Mill network"), "id": found["id"]}
    millrace.database.write(lambda connection: connection.execute(gateway, values))
    with pytest.raises(Conflict, match="gateway"):
        opened(millrace, found["id"])
