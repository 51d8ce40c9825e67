"""Removes unreferenced data: expired uploads, their parts, and bytes left by a crash.

Only old bytes are swept, because a file's bytes are written before its row. Bytes of an upload that can still be
finished are kept, and so are those of a volume that can be restored.
"""

import threading
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

from sqlalchemy import Column, Connection, select

from headgate.kit.database import Database
from headgate.kit.log import get_logger
from headgate.lakehouse.files.models import volume_file_table
from headgate.lakehouse.trash.models import deleted_item_table
from headgate.lakehouse.uploads.models import upload_table
from headgate.lakehouse.uploads.repository import take_expired
from headgate.lakehouse.uploads.service import upload_of
from headgate.warehouse.locations import upload_root
from headgate.warehouse.store import Store

OLD = timedelta(days=1)
WALK_EVERY = timedelta(hours=12)
"""Interval of the full scan of all volume files, which takes a while in a large warehouse."""
AT_ONCE = 500

_log = get_logger("headgate.sweeper")


def expire(database: Database, store: Store, now: datetime, is_stopping: Callable[[], bool]) -> int:
    """Delete expired uploads and their parts; returns the number."""
    count = 0
    while not is_stopping():
        ended = database.write(lambda connection: take_expired(connection, now, AT_ONCE))
        for upload in ended:
            store.delete_folder(upload_root(upload))
        count += len(ended)
        if len(ended) < AT_ONCE:
            break
    return count


def sweep(database: Database, store: Store, now: datetime, is_stopping: Callable[[], bool]) -> int:
    """Delete old unreferenced bytes; returns the number of files."""
    count = 0
    for folder, is_named in (("volumes", _named_files), ("uploads", _named_parts)):
        old = (entry.path for entry in store.files(folder) if now - entry.modified > OLD)
        for batch in _batches(old, is_stopping):
            with database.read() as connection:
                named = is_named(connection, batch)
            for path in batch:
                if path not in named:
                    store.delete(path)
                    count += 1
    return count


def _batches(paths: Iterable[str], is_stopping: Callable[[], bool]) -> Iterator[list[str]]:
    left = iter(paths)
    while (batch := list(islice(left, AT_ONCE))) and not is_stopping():
        yield batch


def _there(connection: Connection, column: Column[Any], values: Iterable[str]) -> set[str]:
    query = select(column).where(column.in_(sorted(set(values))))
    return set(connection.execute(query).scalars())


def _split(path: str) -> tuple[str, str]:
    """The volume or upload of a path, and the last path segment."""
    parts = path.split("/")
    return parts[1], parts[-1]


def _named_files(connection: Connection, paths: list[str]) -> set[str]:
    """The subset of volume files that a row references or may reference again."""
    places = {path: _split(path) for path in paths}
    files = _there(connection, volume_file_table.c.id, (file for _, file in places.values()))
    uploads = _there(connection, upload_table.c.id, (upload_of(file) for _, file in places.values()))
    kept = _there(connection, deleted_item_table.c.id, (volume for volume, _ in places.values()))
    return {
        path for path, (volume, file) in places.items() if file in files or upload_of(file) in uploads or volume in kept
    }


def _named_parts(connection: Connection, paths: list[str]) -> set[str]:
    places = {path: _split(path)[0] for path in paths}
    there = _there(connection, upload_table.c.id, places.values())
    return {path for path, upload in places.items() if upload in there}


class Sweeper:
    """Sweeps in a separate thread, so that a large warehouse blocks nothing else."""

    def __init__(self, database: Database, store: Callable[[], Store]) -> None:
        self._database, self._store = database, store
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._walk_at: datetime | None = None

    def nudge(self, now: datetime) -> None:
        """Start a round, unless one is in progress."""
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._round, args=(now,), name="sweep", daemon=True)
            self._thread.start()

    def _round(self, now: datetime) -> None:
        try:
            store = self._store()
            expire(self._database, store, now, self._stopping.is_set)
            if self._walk_at is None or now >= self._walk_at:
                count = sweep(self._database, store, now, self._stopping.is_set)
                self._walk_at = now + WALK_EVERY
                if count:
                    _log.info("deleted unreferenced files", files=count)
        except Exception as error:  # noqa: BLE001 - the next round tries again
            _log.warning("cannot clean up files; trying again", error=(str(error).splitlines() or [""])[0])

    def close(self) -> None:
        """Start no further batch; the next process does the rest."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(timeout=2)
