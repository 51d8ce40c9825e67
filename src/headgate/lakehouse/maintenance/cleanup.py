"""What the scheduler does for tables that workers rewrite: gives up those that nobody does."""

import time
from collections.abc import Callable

from headgate.kit.database import Database
from headgate.kit.leases import Sweeper
from headgate.lakehouse.maintenance import queue
from headgate.settings.settings import Settings


def sweeper(settings: Settings, database: Database, ticks: Callable[[], float] = time.monotonic) -> Sweeper:
    """What gives up tables that nobody rewrites. After the clock was set, workers that live have time to be heard."""
    length = queue.lease(settings.maintenance)
    return Sweeper(
        "table",
        database,
        queue.SILENT,
        lambda connection, now: queue.has_expired(connection, now, length),
        lambda connection, now: queue.sweep(connection, now, length),
        ticks,
    )
