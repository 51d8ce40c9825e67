"""Purges deleted items after their retention: their folders by id, then their row.

A row is first marked in a separate transaction, so that it can no longer be restored. After a crash, the next round
repeats all steps.
"""

import threading
from collections.abc import Callable
from datetime import datetime

from sqlalchemy import Connection, exists, or_, select, update

from headgate.kit.database import Database
from headgate.kit.log import get_logger
from headgate.lakehouse.models import layer_table
from headgate.lakehouse.trash import service as trash
from headgate.lakehouse.trash.models import deleted_item_table
from headgate.platform.audit.events import CHANGED, Event, record
from headgate.warehouse.locations import metadata_root, table_root
from headgate.warehouse.store import Store

AT_ONCE = 100
_deleted = deleted_item_table.c
_log = get_logger("headgate.purging")


def purge(database: Database, store: Store, now: datetime, is_stopping: Callable[[], bool] = lambda: False) -> int:
    """Purge everything due; returns the number. Files are deleted outside of any transaction."""
    count = 0
    while not is_stopping():
        marked = database.write(lambda connection: _mark(connection, now))
        for identifier, folders in marked:
            for folder in folders:
                store.delete_folder(folder)
            database.write(lambda connection, value=identifier: _end(connection, value, now))  # type: ignore[misc]
        count += len(marked)
        if len(marked) < AT_ONCE:
            break
    return count


def _mark(connection: Connection, now: datetime) -> list[tuple[str, list[str]]]:
    """Mark due items; returns them with the folders to delete. Items of a purged layer are due too."""
    other = deleted_item_table.alias("other")
    layer_lives = exists(select(layer_table.c.id).where(layer_table.c.id == _deleted.layer_id))
    layer_waits = exists(select(other.c.id).where(other.c.id == _deleted.layer_id))
    due = or_(_deleted.purge_at <= now, ~(layer_lives | layer_waits))
    query = select(_deleted.id, _deleted.kind, _deleted.kept).where(due).order_by(_deleted.purge_at, _deleted.id)
    result = []
    for identifier, kind, kept in connection.execute(query.limit(AT_ONCE)).all():
        folders = kept["folders"] if trash.is_marked(kept) else _folders(identifier, kind)
        if not trash.is_marked(kept):
            values = {"kept": {"folders": folders}, "purge_at": now}
            connection.execute(update(deleted_item_table).where(_deleted.id == identifier).values(values))
        result.append((identifier, folders))
    return result


def _folders(identifier: str, kind: str) -> list[str]:
    if kind == "table":
        return [table_root(identifier), metadata_root(identifier)]
    return [f"volumes/{identifier}"] if kind == "volume" else []


def _end(connection: Connection, identifier: str, now: datetime) -> None:
    row = trash.one(connection, identifier)
    if row is not None and trash.is_marked(row["kept"]):
        trash.forget(connection, identifier)
        after = {"change": f"purge_{row['kind']}", "name": row["name"]}
        event = Event(now, CHANGED, allowed=True, kind=row["kind"], resource_id=identifier, after=after)
        record(connection, [event])


class Purger:
    """Runs `purge` in a separate thread, so that a large table delays only other purges."""

    def __init__(self, database: Database, store: Callable[[], Store]) -> None:
        self._database, self._store = database, store
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def nudge(self, now: datetime) -> None:
        """Start a round, unless one is in progress."""
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._round, args=(now,), name="purge", daemon=True)
            self._thread.start()

    def _round(self, now: datetime) -> None:
        try:
            purge(self._database, self._store(), now, self._stopping.is_set)
        except Exception as error:  # noqa: BLE001 - the next round tries again
            _log.warning("cannot purge deleted resources; trying again", error=(str(error).splitlines() or [""])[0])

    def close(self) -> None:
        """Start no further item; the next process completes an interrupted one."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(timeout=2)
