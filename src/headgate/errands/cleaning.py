"""What the scheduler does for errands: takes back what dead workers held, and forgets what is too old."""

import time
from collections.abc import Callable
from datetime import datetime

from headgate.errands import queue
from headgate.kit.db import Database
from headgate.kit.leases import Patience
from headgate.kit.log import get_logger

_log = get_logger("headgate.scheduler")


class Sweeper:
    """Takes back, and forgets. After the clock was set, a worker that lives has time to finish what it has."""

    def __init__(self, database: Database, ticks: Callable[[], float] = time.monotonic) -> None:
        self._database, self._patience = database, Patience(queue.LEASE, ticks)

    def sweep(self, now: datetime) -> None:
        """Look once. It costs one statement."""
        self._patience.look(now)
        if not self._patience.is_over:
            return
        with self._database.read() as connection:
            if not queue.has_expired(connection, now):
                return
        for errand in self._database.write(lambda connection: list(queue.sweep(connection, now))):
            _log.warning("a worker was lost", errand=errand)
