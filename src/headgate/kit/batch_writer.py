"""A background writer that batches small writes, each within a second."""

import queue
import threading
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from sqlalchemy import Connection

from headgate.kit.database import Database, passes
from headgate.kit.log import get_logger

T = TypeVar("T")
_log = get_logger("headgate.batches")


class Batches(Generic[T]):
    """Collects items from any thread, and writes them in one transaction every half second."""

    INTERVAL = 0.5
    LARGEST = 5000

    def __init__(self, database: Database, write: Callable[[Connection, Sequence[T]], Any], name: str) -> None:
        self._database, self._write, self._name = database, write, name
        self._queue: queue.SimpleQueue[T] = queue.SimpleQueue()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def put(self, item: T) -> None:
        """Queue an item."""
        self._queue.put(item)

    def _run(self) -> None:
        while not self._stop.wait(self.INTERVAL):
            self._flush()
        self._flush()

    def _flush(self) -> None:
        pending: list[T] = []
        while len(pending) < self.LARGEST:
            try:
                pending.append(self._queue.get_nowait())
            except queue.Empty:
                break
        if not pending:
            return
        try:
            self._database.write(lambda connection: self._write(connection, pending))
        except Exception as error:  # noqa: BLE001 - it must not end this thread
            if passes(error):
                for item in pending:
                    self._queue.put(item)
                _log.exception("could not write; kept for a retry", what=self._name, count=len(pending))
            else:
                self._one_by_one(pending)

    def _one_by_one(self, pending: Sequence[T]) -> None:
        """Write the items one by one, so that an invalid one does not block the others."""
        for item in pending:
            try:
                self._database.write(lambda connection, item=item: self._write(connection, [item]))  # type: ignore[misc]
            except Exception as error:  # noqa: BLE001 - it must not end this thread
                if passes(error):
                    self._queue.put(item)
                else:
                    _log.exception("cannot write", what=self._name, thing=ascii(item)[:2000])

    def close(self) -> None:
        """Write the remaining items, and stop."""
        self._stop.set()
        self._thread.join(timeout=10)
