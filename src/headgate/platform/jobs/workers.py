"""The workers of this installation: their last heartbeat, and whether they are shutting down."""

from datetime import datetime
from typing import Any

from sqlalchemy import Connection, insert, select, update

from headgate.contracts.jobs import LEAVING, WorkerIn
from headgate.platform.jobs.models import worker_table

_workers = worker_table.c


def note_worker(connection: Connection, now: datetime, worker: WorkerIn) -> None:
    """Record a worker's heartbeat and state."""
    values: dict[str, Any] = {"name": worker.name, "version": worker.version, "seen_at": now, "state": worker.state}
    done = connection.execute(update(worker_table).where(_workers.id == worker.worker).values(values))
    if done.rowcount == 0:
        connection.execute(insert(worker_table).values(id=worker.worker, started_at=now, **values))


def is_leaving(connection: Connection, worker: str) -> bool:
    """Whether a worker is shutting down; then its waiting claims get nothing."""
    state = connection.execute(select(_workers.state).where(_workers.id == worker)).scalar()
    return bool(state and state.get(LEAVING))
