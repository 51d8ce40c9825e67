"""Database access to endpoints."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, delete, insert, select, update
from sqlalchemy.engine import RowMapping

from headgate.contracts.external_systems.kinds import AnyPlace, stored
from headgate.platform.external_systems.models import place_secret_table, place_table

_places, _secrets = place_table.c, place_secret_table.c


@dataclass(frozen=True, slots=True)
class CurrentEndpoint:
    """The current version of an endpoint, and since when."""

    version: int
    moved_at: datetime


def place_of(connection: Connection, identifier: str) -> CurrentEndpoint | None:
    """The current endpoint version of a connection or destination; None without an endpoint.

    `version` starts at 1 and increases with each change of host, port, database, path, bucket, URL, gateway or TLS
    settings, which also clears the secrets. A pipeline that writes stores the confirmed version and must not start
    while it differs from the current one, until a member who may start it confirms the new one (access model, section
    5). A pipeline that only reads need not compare.
    """
    row = connection.execute(select(_places.version, _places.moved_at).where(_places.id == identifier)).one_or_none()
    return CurrentEndpoint(row.version, row.moved_at) if row else None


def row(connection: Connection, identifier: str) -> RowMapping | None:
    """The endpoint row of a connection or destination."""
    return connection.execute(select(place_table).where(_places.id == identifier)).mappings().one_or_none()


def kinds(connection: Connection, identifiers: Iterable[str]) -> dict[str, str]:
    """The endpoint kinds of connections and destinations by id."""
    query = select(_places.id, _places.place_kind).where(_places.id.in_(list(identifiers)))
    return {row.id: row.place_kind for row in connection.execute(query)}


def add(connection: Connection, identifier: str, place: AnyPlace, now: datetime) -> None:
    """Insert the endpoint of a new resource."""
    values = {"id": identifier, "place_kind": place.kind, "config": stored(place), "version": 1, "moved_at": now}
    connection.execute(insert(place_table).values(values))


def write(connection: Connection, identifier: str, place: AnyPlace) -> None:
    """Update the configuration without a change of the endpoint."""
    connection.execute(update(place_table).where(_places.id == identifier).values(config=stored(place)))


def move(connection: Connection, identifier: str, now: datetime) -> None:
    """Increase the endpoint version and delete the secrets of the previous endpoint."""
    values = {"version": _places.version + 1, "moved_at": now}
    connection.execute(update(place_table).where(_places.id == identifier).values(values))
    connection.execute(delete(place_secret_table).where(_secrets.place_id == identifier))


def secrets_set(connection: Connection, identifier: str) -> dict[str, datetime]:
    """The names of stored secrets, with the time when each was set."""
    query = select(_secrets.name, _secrets.set_at).where(_secrets.place_id == identifier)
    return {row.name: row.set_at for row in connection.execute(query)}


def sealed_secrets(connection: Connection, identifier: str) -> dict[str, str]:
    """The sealed secrets of an endpoint."""
    query = select(_secrets.name, _secrets.value).where(_secrets.place_id == identifier)
    return {row.name: row.value for row in connection.execute(query)}
