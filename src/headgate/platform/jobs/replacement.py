"""Replaces a dead worker: its leases end immediately, and its jobs are queued again."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import Connection, select

from headgate.platform.jobs import queue
from headgate.platform.jobs.kinds import all_kinds
from headgate.platform.jobs.models import worker_table

_workers = worker_table.c


def release(connection: Connection, now: datetime, name: str, dead: Sequence[str]) -> list[str]:
    """Take back the jobs of dead workers on the caller's machine; returns their ids.

    The caller has checked that their processes are gone. Safety does not depend on it, because each claim increments
    the fence and messages with an older one are refused.
    """
    known = connection.execute(select(_workers.id, _workers.name).where(_workers.id.in_(dead))).all()
    here = [row.id for row in known if _host(row.name) == _host(name)]
    return [job for worker in here for kind in all_kinds() for job in queue.release(kind, connection, now, worker)]


def _host(name: str) -> str:
    """The host of a worker, from its name HOST:PID."""
    return name.rpartition(":")[0]
