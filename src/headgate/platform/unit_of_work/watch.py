"""Waits for a change in the database without holding a thread, a connection or a transaction.

One thread per process polls for all waiting requests: frequently if other processes may make the change, otherwise when
`ring` reports a change by this process.
"""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from sqlalchemy import Connection

from headgate.kit.database import Database
from headgate.kit.errors import Unavailable
from headgate.kit.log import get_logger

Check = Callable[[Connection], bool]

OFTEN = {"sqlite": 0.02, "postgresql": 0.05}
SELDOM = 0.25
MOST = 500
LONGEST = 25.0
_PAUSE_AFTER_TROUBLE = 1.0
_log = get_logger("headgate.watching")


@dataclass(eq=False, slots=True)
class _Waiter:
    check: Check
    loop: asyncio.AbstractEventLoop
    done: asyncio.Event = field(default_factory=asyncio.Event)

    def wake(self) -> None:
        """Wake the waiter, whose event loop may be closed by now."""
        with suppress(RuntimeError):
            self.loop.call_soon_threadsafe(self.done.set)


class Watch:
    """The waiting requests of one process."""

    def __init__(self, database: Database, *, alone: bool) -> None:
        """`alone` means that no other process makes the changes."""
        self._database = database
        self._interval = SELDOM if alone else OFTEN[database.dialect]
        self._waiters: set[_Waiter] = set()
        self._lock = threading.Lock()
        self._bell = threading.Event()
        self._closed = False
        self._thread: threading.Thread | None = None

    def ring(self) -> None:
        """Poll now, because a change was committed."""
        self._bell.set()

    def close(self) -> None:
        """Wake all waiters and accept no new ones."""
        self._closed = True
        with self._lock:
            waiting = list(self._waiters)
        for waiter in waiting:
            waiter.wake()
        self._bell.set()

    async def wait(self, check: Check, seconds: float) -> None:
        """Wait until the check holds or the time is over; 503 if too many requests are waiting."""
        if seconds <= 0 or self._closed:
            return
        waiter = _Waiter(check, asyncio.get_running_loop())
        with self._lock:
            if len(self._waiters) >= MOST:
                raise Unavailable("Too many wait for statements right now; ask again without `wait`, or in a moment")
            self._waiters.add(waiter)
            self._start()
        self._bell.set()
        try:
            async with asyncio.timeout(min(seconds, LONGEST)):
                await waiter.done.wait()
        except TimeoutError:
            pass
        finally:
            with self._lock:
                self._waiters.discard(waiter)

    def _start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="watch", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while not self._closed:
            with self._lock:
                waiting = list(self._waiters)
            self._bell.wait(self._interval if waiting else None)
            self._bell.clear()
            try:
                self._look()
            except Exception as error:  # noqa: BLE001 - it must not end this thread; those who wait go on in time
                _log.warning("cannot look right now", error=str(error).splitlines()[0] if str(error) else repr(error))
                self._bell.wait(_PAUSE_AFTER_TROUBLE)

    def _look(self) -> None:
        with self._lock:
            waiting = list(self._waiters)
        if not waiting or self._closed:
            return
        with self._database.peek() as connection:
            for waiter in waiting:
                if waiter.check(connection):
                    waiter.wake()
