"""Scheduled cleanup of jobs: takes them back from dead workers, and fails outdated ones."""

import time
from collections.abc import Callable
from datetime import datetime

from sqlalchemy import Connection

from headgate.kit.database import Database
from headgate.kit.leases import LeaseGrace
from headgate.kit.log import get_logger
from headgate.platform.jobs import queue
from headgate.platform.jobs.kinds import JobKind
from headgate.settings.settings import Settings

_log = get_logger("headgate.scheduler")


class LeaseSweeper:
    """Takes jobs of one kind back from dead workers. After a clock change, live workers get time to renew their
    leases.
    """

    def __init__(
        self, kind: JobKind, settings: Settings, database: Database, ticks: Callable[[], float] = time.monotonic
    ) -> None:
        self._kind, self._settings, self._database = kind, settings, database
        self._grace = LeaseGrace(kind.lease(settings), ticks)

    def sweep(self, now: datetime) -> None:
        """Check once, in one or two statements."""
        off = self._grace.look(now)
        if off is None or off < 0:
            self._database.write(lambda connection: self._kind.clock_was_set(connection, now))
        if not self._grace.is_over:
            return
        with self._database.read() as connection:
            if not self._has_work(connection, now):
                return
        for job in self._database.write(lambda connection: self._work(connection, now)):
            _log.warning("A worker was lost", kind=self._kind.name, job=job)

    def _has_work(self, connection: Connection, now: datetime) -> bool:
        return self._kind.is_outdated(connection, now) or queue.has_lost(self._kind, connection, now, self._settings)

    def _work(self, connection: Connection, now: datetime) -> list[str]:
        self._kind.expire(connection, now)
        return queue.sweep(self._kind, connection, now, self._settings)
