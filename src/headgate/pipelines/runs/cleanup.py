"""Scheduled cleanup of runs: moves the staged files of runs whose server died, and deletes expired run records."""

import threading
from collections.abc import Callable
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, Connection, select

from headgate.kit.database import Database
from headgate.kit.log import get_logger
from headgate.pipelines.runs import artifacts, staged_files
from headgate.pipelines.runs.models import run_table
from headgate.platform.authorization import writer
from headgate.platform.jobs.models import ENDED
from headgate.platform.unit_of_work.services import Services
from headgate.settings.settings import Settings
from headgate.warehouse.store import Store

AT_ONCE = 200
MOVING = timedelta(seconds=20)
"""Time that a server has to move the files of a run into their volumes before another process takes over."""
_runs = run_table.c
_log = get_logger("headgate.scheduler")


def purge(
    database: Database, store: Store, settings: Settings, now: datetime, is_stopping: Callable[[], bool] = lambda: False
) -> None:
    """Delete expired run records with their files. The tables they wrote remain."""
    oldest = now - timedelta(days=settings.runs.history_days)
    over = _runs.state.in_(ENDED) & (_runs.ended_at < oldest)
    while not is_stopping():
        with database.read() as connection:
            old = list(connection.execute(select(_runs.id).where(over).limit(AT_ONCE)).scalars())
        if not old:
            return
        for run in database.write(lambda connection, old=old: _deleted(connection, old, over)):  # type: ignore[misc]
            store.delete_folder(f"runs/{run}")


def _deleted(connection: Connection, runs: list[str], over: ColumnElement[bool]) -> list[str]:
    """Delete the runs that are still finished; a run may have been resumed since it was selected."""
    gone = list(connection.execute(select(_runs.id).where(_runs.id.in_(runs), over)).scalars())
    writer.remove(connection, gone)
    return gone


class Cleaner:
    """Cleans up files in a separate thread, so that many files do not block the scheduler."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def nudge(self, now: datetime) -> None:
        """Move staged files of dead servers into their volumes, and delete expired run records."""
        self._start(lambda: self._move(now), lambda: self._purge(now))

    def nudge_moves(self, now: datetime) -> None:
        """Move staged files of dead servers into their volumes."""
        self._start(lambda: self._move(now))

    def _start(self, *parts: Callable[[], None]) -> None:
        """Start a round, unless one is in progress."""
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._round, args=parts, name="clean runs", daemon=True)
            self._thread.start()

    def _round(self, *parts: Callable[[], None]) -> None:
        try:
            for part in parts:
                part()
        except Exception as error:  # noqa: BLE001 - the next round tries again
            _log.warning("cannot clean up after runs; trying again", error=(str(error).splitlines() or [""])[0])

    def _move(self, now: datetime) -> None:
        for run in staged_files.unmoved(self._services.database, self._services.store, now - MOVING):
            staged_files.move_outputs(self._services, run)

    def _purge(self, now: datetime) -> None:
        database, store = self._services.database, self._services.store
        resumable = timedelta(days=self._services.settings.maintenance.orphan_days)
        staged_files.drop_staged(database, store, now - resumable)
        artifacts.drop_left(database, store)
        purge(database, store, self._services.settings, now, self._stopping.is_set)

    def close(self) -> None:
        """Start no further round. The next process completes an interrupted one."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(timeout=2)
