"""What the scheduler does for errands: takes back what dead workers held, and forgets what is too old."""

import time
from collections.abc import Callable

from headgate.kit.database import Database
from headgate.kit.leases import Sweeper
from headgate.platform.connection_checks import queue


def sweeper(database: Database, ticks: Callable[[], float] = time.monotonic) -> Sweeper:
    """What takes errands back from workers that are gone."""
    return Sweeper("errand", database, queue.LEASE, queue.has_expired, queue.sweep, ticks)
