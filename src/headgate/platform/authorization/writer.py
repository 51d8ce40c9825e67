"""The only writer of resources. Each write updates the audience index in the same transaction.

The index is derived from the rule tables. No other module writes the resource table or updates the index: an import
contract and tests/platform/authorization/test_writer.py enforce this.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime

from sqlalchemy import Connection, insert, update

from headgate.kit.database import among, execute, many
from headgate.kit.ids import new_id
from headgate.kit.names import name_key
from headgate.platform.authorization.list_index import file_new, refresh
from headgate.platform.authorization.models import resource_table

_resources = resource_table.c
_ADD = insert(resource_table)


@contextmanager
def new_resource(
    connection: Connection,
    kind: str,
    name: str,
    now: datetime,
    creator: str | None,
    *,
    scope: str | None = None,
    namespace: str | None = None,
    identifier: str | None = None,
) -> Iterator[str]:
    """Insert the row of a resource and yield its id; the caller writes the other rows in the context. Then the resource
    is indexed.

    Its name must be unique within the namespace (by default its kind) and the scope; without a scope, names may repeat.
    """
    identifier = identifier or new_id(kind)
    row = {"id": identifier, "kind": kind, "namespace": namespace or kind, "name": name, "name_key": name_key(name)}
    row["scope_id"] = identifier if scope is None else scope
    connection.execute(_ADD, {**row, "created_at": now, "updated_at": now, "created_by_id": creator})
    yield identifier
    file_new(connection, [identifier])


def save(
    connection: Connection,
    identifier: str,
    now: datetime,
    name: str | None = None,
    *,
    scope: str | None = None,
    affected: Iterable[str] = (),
) -> None:
    """Update a resource after a save, with a new name or scope if given. Write its other rows first.

    It is reindexed, together with `affected`: the other resources whose access depends on it.
    """
    values: dict[str, object] = {"updated_at": now}
    if name is not None:
        values |= {"name": name, "name_key": name_key(name)}
    if scope is not None:
        values["scope_id"] = scope
    connection.execute(update(resource_table).where(_resources.id == identifier).values(values))
    refresh(connection, {identifier, *affected})


def remove(connection: Connection, identifiers: Iterable[str], *, affected: Iterable[str] = ()) -> None:
    """Delete resources with their dependent rows, and reindex `affected`."""
    text = f"DELETE FROM resources WHERE {among(connection, 'id', 'ids')}"
    execute(connection, text, {"ids": many(connection, list(identifiers))})
    refresh(connection, affected)


@contextmanager
def access_change(connection: Connection, affected: Callable[[], set[str]]) -> Iterator[None]:
    """Context manager around writing access facts: resources affected before or after are reindexed."""
    before = affected()
    yield
    refresh(connection, before | affected())
