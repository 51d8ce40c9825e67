"""What the scheduler does for runs: takes back what dead workers had, and deletes the record of those long over."""

import threading
from collections.abc import Callable
from datetime import datetime, timedelta

from sqlalchemy import delete, select

from headgate.config import Settings
from headgate.edge.services import Services
from headgate.kit.db import Database
from headgate.kit.log import get_logger
from headgate.resources.models import resource_table
from headgate.runs import queue, staged_files
from headgate.runs.models import run_table
from headgate.warehouse.store import Store

AT_ONCE = 200
_runs = run_table.c
_log = get_logger("headgate.scheduler")


def sweep(database: Database, now: datetime) -> None:
    """Take back what dead workers had. A look costs one statement."""
    with database.read() as connection:
        if not queue.has_expired(connection, now):
            return
    for run in database.write(lambda connection: queue.sweep(connection, now)):
        _log.warning("a worker was lost", run=run)


def purge(
    database: Database, store: Store, settings: Settings, now: datetime, is_stopping: Callable[[], bool] = lambda: False
) -> None:
    """Delete the record of runs that ended too long ago, with their files. What they wrote stays."""
    oldest = now - timedelta(days=settings.runs.history_days)
    over = _runs.state.in_(queue.ENDED) & (_runs.ended_at < oldest)
    while not is_stopping():
        with database.read() as connection:
            old = list(connection.execute(select(_runs.id).where(over).limit(AT_ONCE)).scalars())
        if not old:
            return
        for run in old:
            store.delete_folder(f"runs/{run}")
        gone = delete(resource_table).where(resource_table.c.id.in_(old))
        database.write(lambda connection, gone=gone: connection.execute(gone))  # type: ignore[misc]


class Cleaner:
    """Runs rounds of `purge` in a thread of their own, so that many files hold up nothing else."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def nudge(self, now: datetime) -> None:
        """Start a round, unless one is under way."""
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._round, args=(now,), name="clean runs", daemon=True)
            self._thread.start()

    def _round(self, now: datetime) -> None:
        try:
            database, store = self._services.database, self._services.store
            for run in staged_files.unmoved(database, store):
                staged_files.move_outputs(self._services, run)
            staged_files.drop_staged(database, store)
            purge(database, store, self._services.settings, now, self._stopping.is_set)
        except Exception as error:  # noqa: BLE001 - the next round tries again
            _log.warning("cannot delete old runs right now", error=(str(error).splitlines() or [""])[0])

    def close(self) -> None:
        """Begin no other; one that is cut short is taken up by the next process."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(timeout=2)
