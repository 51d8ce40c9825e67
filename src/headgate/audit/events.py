"""Audit events, and how they are written: with the change they tell of, or in batches for reads of data."""

import queue
import threading
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, insert
from sqlalchemy.exc import DBAPIError

from headgate.audit.models import audit_event_table
from headgate.kit.db import Busy, Database
from headgate.kit.log import get_logger

CHANGED = "access.changed"
DENIED = "access.denied"
DECIDED = "access.decided"
READ = "resource.read"

_log = get_logger("headgate.audit")


@dataclass(frozen=True, slots=True)
class Event:
    """Something that was decided or changed, by whom, and by which path."""

    at: datetime
    event: str
    allowed: bool
    actor_id: str | None = None
    token_id: str | None = None
    request_id: str | None = None
    action: str | None = None
    kind: str | None = None
    resource_id: str | None = None
    via: list[str] = field(default_factory=list)
    before: dict[str, Any] | None = None
    after: dict[str, Any] | None = None


def record(connection: Connection, events: Iterable[Event]) -> None:
    """Add events to the log, in this transaction."""
    rows = [asdict(event) for event in events]
    if rows:
        connection.execute(insert(audit_event_table), rows)


class Batches:
    """Events that need not wait for a transaction of their own: written together, within a second."""

    INTERVAL = 0.5
    LARGEST = 5000

    def __init__(self, database: Database) -> None:
        self._database = database
        self._queue: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="audit batches", daemon=True)
        self._thread.start()

    def put(self, event: Event) -> None:
        """Have an event written soon."""
        self._queue.put(event)

    def _run(self) -> None:
        while not self._stop.wait(self.INTERVAL):
            self._flush()
        self._flush()

    def _flush(self) -> None:
        pending: list[Event] = []
        while len(pending) < self.LARGEST:
            try:
                pending.append(self._queue.get_nowait())
            except queue.Empty:
                break
        if not pending:
            return
        try:
            self._database.write(lambda connection: record(connection, pending))
        except (Busy, DBAPIError):
            _log.exception("audit events could not be written; they are kept and tried again", events=len(pending))
            for event in pending:
                self._queue.put(event)

    def close(self) -> None:
        """Write what is left, and stop."""
        self._stop.set()
        self._thread.join(timeout=10)
