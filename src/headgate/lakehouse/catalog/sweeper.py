"""Removes expired catalog state: staged tables that were never committed, and tokens of finished work."""

import threading
from collections.abc import Callable
from datetime import datetime, timedelta

from sqlalchemy import Connection, delete, select

from headgate.kit.database import Database
from headgate.kit.log import get_logger
from headgate.lakehouse.catalog.models import run_pointer_table, staged_table, work_token_table
from headgate.lakehouse.catalog.pointers import was_used
from headgate.warehouse.locations import metadata_root, table_root
from headgate.warehouse.store import Store

STAGED_FOR = timedelta(days=3)
"""Time during which a staged table can be committed; longer than any job that writes it."""
WORK_KEPT = timedelta(days=7)
AT_ONCE = 200

_staged, _work = staged_table.c, work_token_table.c
_log = get_logger("headgate.sweeper")


def take_staged(connection: Connection, before: datetime) -> list[str]:
    """Delete the rows of tables staged before `before`; returns the ids that never became a table, whose files can be
    removed.
    """
    query = select(_staged.id).where(_staged.created_at < before).order_by(_staged.created_at).limit(AT_ONCE)
    ids = list(connection.execute(query).scalars())
    connection.execute(delete(staged_table).where(_staged.id.in_(ids)))
    own = select(run_pointer_table.c.table_id).where(run_pointer_table.c.table_id.in_(ids))
    in_runs = set(connection.execute(own).scalars())
    return [id_ for id_ in ids if id_ not in in_runs and not was_used(connection, id_)]


def sweep(database: Database, store: Store, now: datetime, left: list[str] | None = None) -> int:
    """Delete expired state and its files; returns the number of tables.

    `left` holds tables whose files could not be removed in earlier rounds; new failures are added.
    """
    left = [] if left is None else left
    database.write(lambda c: c.execute(delete(work_token_table).where(_work.expires_at < now - WORK_KEPT)))
    left += database.write(lambda connection: take_staged(connection, now - STAGED_FOR))
    count, failed = 0, None
    for table in tuple(left):
        # Its row is deleted, so nobody can commit it any more.
        try:
            store.delete_folder(table_root(table))
            store.delete_folder(metadata_root(table))
        except Exception as error:  # noqa: BLE001 - of any store; the others do not wait for this one
            failed = error
            continue
        left.remove(table)
        count += 1
    if failed is not None:
        raise failed
    return count


class CatalogSweeper:
    """Sweeps in a separate thread, so that many files block nothing else."""

    def __init__(self, database: Database, store: Callable[[], Store]) -> None:
        self._database, self._store = database, store
        self._left: list[str] = []
        self._thread: threading.Thread | None = None

    def nudge(self, now: datetime) -> None:
        """Start a round, unless one is in progress."""
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._round, args=(now,), name="catalog sweep", daemon=True)
            self._thread.start()

    def _round(self, now: datetime) -> None:
        try:
            sweep(self._database, self._store(), now, self._left)
        except Exception as error:  # noqa: BLE001 - the next round tries again
            _log.warning("cannot clean up the catalog; trying again later", error=(str(error).splitlines() or [""])[0])

    def close(self) -> None:
        """Wait for the round in progress."""
        if self._thread is not None:
            self._thread.join(timeout=10)
