"""Places in the database."""

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
    """Which of its places something points at: the number of it, and since when."""

    version: int
    moved_at: datetime


def place_of(connection: Connection, identifier: str) -> CurrentEndpoint | None:
    """Which of its places a connection or destination points at now; None for what points nowhere.

    `version` starts at 1 and counts up each time that it is pointed somewhere else: to another host, port, database,
    path, bucket or URL, through another gateway, or with other TLS. Its secrets are cleared then. What writes to it
    keeps the version that it was confirmed for, and must not start while that differs from this one (access model,
    section 5): someone who may start it confirms the new place first. What only reads need not compare.
    """
    row = connection.execute(select(_places.version, _places.moved_at).where(_places.id == identifier)).one_or_none()
    return CurrentEndpoint(row.version, row.moved_at) if row else None


def row(connection: Connection, identifier: str) -> RowMapping | None:
    """The place of a connection or destination."""
    return connection.execute(select(place_table).where(_places.id == identifier)).mappings().one_or_none()


def kinds(connection: Connection, identifiers: Iterable[str]) -> dict[str, str]:
    """The kinds of the places of some connections or destinations, by id."""
    query = select(_places.id, _places.place_kind).where(_places.id.in_(list(identifiers)))
    return {row.id: row.place_kind for row in connection.execute(query)}


def add(connection: Connection, identifier: str, place: AnyPlace, now: datetime) -> None:
    """Point something that is new somewhere."""
    values = {"id": identifier, "place_kind": place.kind, "config": stored(place), "version": 1, "moved_at": now}
    connection.execute(insert(place_table).values(values))


def write(connection: Connection, identifier: str, place: AnyPlace) -> None:
    """Store another configuration of the same place."""
    connection.execute(update(place_table).where(_places.id == identifier).values(config=stored(place)))


def move(connection: Connection, identifier: str, now: datetime) -> None:
    """Note that it points somewhere else now, and forget the secrets for where it pointed before."""
    values = {"version": _places.version + 1, "moved_at": now}
    connection.execute(update(place_table).where(_places.id == identifier).values(values))
    connection.execute(delete(place_secret_table).where(_secrets.place_id == identifier))


def secrets_set(connection: Connection, identifier: str) -> dict[str, datetime]:
    """Which secrets a place has, and when each was given."""
    query = select(_secrets.name, _secrets.set_at).where(_secrets.place_id == identifier)
    return {row.name: row.set_at for row in connection.execute(query)}


def sealed_secrets(connection: Connection, identifier: str) -> dict[str, str]:
    """The secrets of a place, as they are stored."""
    query = select(_secrets.name, _secrets.value).where(_secrets.place_id == identifier)
    return {row.name: row.value for row in connection.execute(query)}
