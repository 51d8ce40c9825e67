"""The row that a new resource gets, its new name, and its end."""

from datetime import datetime

from sqlalchemy import Connection, delete, insert, update

from headgate.kit.ids import new_id
from headgate.kit.names import name_key
from headgate.platform.authorization.models import resource_table

_resources = resource_table.c


def add(connection: Connection, kind: str, name: str, now: datetime, creator: str, scope: str | None = None) -> str:
    """Write the row of a new resource; its id. No other of its kind has its name in the same scope, if one is given."""
    identifier = new_id(kind)
    common = {"id": identifier, "kind": kind, "namespace": kind, "scope_id": scope or identifier, "name": name}
    times = {"created_at": now, "updated_at": now, "created_by_id": creator}
    connection.execute(insert(resource_table).values(**common, name_key=name_key(name), **times))
    return identifier


def touch(connection: Connection, identifier: str, now: datetime, name: str | None = None) -> None:
    """Note that a resource was saved, under another name if one is given."""
    renamed = {"name": name, "name_key": name_key(name)} if name is not None else {}
    connection.execute(update(resource_table).where(_resources.id == identifier).values(updated_at=now, **renamed))


def remove(connection: Connection, identifier: str) -> None:
    """Delete a resource, and all that is kept of it."""
    connection.execute(delete(resource_table).where(_resources.id == identifier))
