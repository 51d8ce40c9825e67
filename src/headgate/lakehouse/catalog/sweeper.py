"""Removes what the catalog needs no more: tables that were staged and never committed, and tokens of work long over."""

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
"""How long a staged table can be committed: longer than any job that writes it."""
WORK_KEPT = timedelta(days=7)
AT_ONCE = 200

_staged, _work = staged_table.c, work_token_table.c
_log = get_logger("headgate.sweeper")


def take_staged(connection: Connection, before: datetime) -> list[str]:
    """Forget tables that were staged before a time; the ids that no table has or ever had, whose files can go."""
    query = select(_staged.id).where(_staged.created_at < before).order_by(_staged.created_at).limit(AT_ONCE)
    ids = list(connection.execute(query).scalars())
    connection.execute(delete(staged_table).where(_staged.id.in_(ids)))
    own = select(run_pointer_table.c.table_id).where(run_pointer_table.c.table_id.in_(ids))
    in_runs = set(connection.execute(own).scalars())
    return [id_ for id_ in ids if id_ not in in_runs and not was_used(connection, id_)]


def sweep(database: Database, store: Store, now: datetime, left: list[str] | None = None) -> int:
    """Forget what is over, and remove its files; how many tables that were.

    `left` are tables of earlier rounds whose files could not be removed; those of this one that cannot are added.
    """
    left = [] if left is None else left
    database.write(lambda c: c.execute(delete(work_token_table).where(_work.expires_at < now - WORK_KEPT)))
    left += database.write(lambda connection: take_staged(connection, now - STAGED_FOR))
    count, failed = 0, None
    for table in tuple(left):
        # Nobody can commit it any more: its row is gone.
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
    """Sweeps in a thread of its own: many files hold up nothing."""

    def __init__(self, database: Database, store: Callable[[], Store]) -> None:
        self._database, self._store = database, store
        self._left: list[str] = []
        self._thread: threading.Thread | None = None

    def nudge(self, now: datetime) -> None:
        """Start a round, unless one is under way."""
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._round, args=(now,), name="catalog sweep", daemon=True)
            self._thread.start()

    def _round(self, now: datetime) -> None:
        try:
            sweep(self._database, self._store(), now, self._left)
        except Exception as error:  # noqa: BLE001 - the next round tries again
            _log.warning("cannot clean up the catalog; trying again later", error=(str(error).splitlines() or [""])[0])

    def close(self) -> None:
        """Wait for the round that is under way."""
        if self._thread is not None:
            self._thread.join(timeout=10)
