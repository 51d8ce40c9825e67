"""Replacing a dead worker: its leases end at once, and what it had is given to others, or to its successor."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import Connection, select

from headgate.lakehouse.maintenance import queue as maintenance
from headgate.lakehouse.sql import queue as statements
from headgate.lakehouse.sql.models import worker_table
from headgate.pipelines.runs import queue as runs
from headgate.platform.connection_checks import queue as errands
from headgate.settings.settings import Settings

_workers = worker_table.c


def release(connection: Connection, now: datetime, settings: Settings, name: str, dead: Sequence[str]) -> list[str]:
    """Take back what dead workers of the caller's machine had; what was taken back, of all kinds of work.

    The caller has made sure that their processes are gone. Nothing depends on it: each claim counts the fence up, so
    that nothing which comes with an older one is accepted.
    """
    known = connection.execute(select(_workers.id, _workers.name).where(_workers.id.in_(dead))).all()
    taken: list[str] = []
    for row in known:
        if _host(row.name) != _host(name):
            continue
        taken += statements.release(connection, now, row.id)
        taken += runs.release(connection, now, row.id)
        taken += errands.release(connection, now, row.id)
        taken += maintenance.release(connection, row.id)
    return taken


def _host(name: str) -> str:
    """The machine of a worker, by its name HOST:PID."""
    return name.rpartition(":")[0]
