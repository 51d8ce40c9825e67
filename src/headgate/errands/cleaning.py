"""What the scheduler does for errands: takes back what dead workers held, and forgets what is too old."""

from datetime import datetime

from headgate.errands import queue
from headgate.kit.db import Database
from headgate.kit.log import get_logger

_log = get_logger("headgate.scheduler")


def sweep(database: Database, now: datetime) -> None:
    """Take back, and forget. A look costs one statement."""
    with database.read() as connection:
        if not queue.has_expired(connection, now):
            return
    for errand in database.write(lambda connection: list(queue.sweep(connection, now))):
        _log.warning("a worker was lost", errand=errand)
