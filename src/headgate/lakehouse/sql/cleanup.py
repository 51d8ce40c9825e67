"""Scheduled cleanup of statements."""

import threading
from collections.abc import Callable
from datetime import datetime, timedelta

from sqlalchemy import delete, select, update

from headgate.kit.database import Database
from headgate.kit.log import get_logger
from headgate.lakehouse.sql.models import statement_table
from headgate.platform.jobs.models import ENDED, worker_table
from headgate.settings.settings import Settings
from headgate.warehouse.store import Store

AT_ONCE = 200
WORKERS_KEPT = timedelta(days=1)
_rows = statement_table.c
_log = get_logger("headgate.scheduler")


class Cleaner:
    """Runs `purge` in a separate thread, so that many files block nothing else."""

    def __init__(self, settings: Settings, database: Database, store: Callable[[], Store]) -> None:
        self._settings, self._database, self._store = settings, database, store
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def nudge(self, now: datetime) -> None:
        """Start a round, unless one is in progress."""
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._round, args=(now,), name="clean", daemon=True)
            self._thread.start()

    def _round(self, now: datetime) -> None:
        try:
            purge(self._database, self._store(), self._settings, now, self._stopping.is_set)
        except Exception as error:  # noqa: BLE001 - the next round tries again
            _log.warning("cannot delete old results right now", error=(str(error).splitlines() or [""])[0])

    def close(self) -> None:
        """Start no further round. The next process completes an interrupted one."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(timeout=2)


def purge(
    database: Database,
    store: Store,
    settings: Settings,
    now: datetime,
    is_stopping: Callable[[], bool] = lambda: False,
) -> None:
    """Delete expired results, then expired statements, then workers that are long gone."""
    while not is_stopping() and (expired := _expired(database, now)):
        for statement in expired:
            store.delete_folder(f"results/{statement}")
        values = {"first_page": None, "results_expire_at": None}
        gone = update(statement_table).where(_rows.id.in_(expired)).values(values)
        database.write(lambda connection, gone=gone: connection.execute(gone))  # type: ignore[misc]
    oldest = now - timedelta(days=settings.sql.history_days)
    while not is_stopping() and (old := _old(database, oldest)):
        for statement in old:
            store.delete_folder(f"results/{statement}")
        forgotten = delete(statement_table).where(_rows.id.in_(old))
        database.write(lambda connection, forgotten=forgotten: connection.execute(forgotten))  # type: ignore[misc]
    silent = delete(worker_table).where(worker_table.c.seen_at < now - WORKERS_KEPT)
    database.write(lambda connection: connection.execute(silent))


def _expired(database: Database, now: datetime) -> list[str]:
    query = select(_rows.id).where(_rows.results_expire_at < now).order_by(_rows.results_expire_at).limit(AT_ONCE)
    with database.read() as connection:
        return list(connection.execute(query).scalars())


def _old(database: Database, oldest: datetime) -> list[str]:
    over = _rows.state.in_(ENDED) & (_rows.ended_at < oldest)
    with database.read() as connection:
        return list(connection.execute(select(_rows.id).where(over).limit(AT_ONCE)).scalars())
