"""The loop of a worker: for each kind of job one thread claims; one thread for all sends heartbeats and stops jobs."""

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import httpx2 as httpx

from headgate.execution.worker.attempts import Attempt, Handler
from headgate.execution.worker.server_link import BadSecret, Link
from headgate.kit.log import get_logger

BEAT = 0.5
QUIET = 5.0
FIRST_PAUSE, LONGEST_PAUSE = 0.125, 2.0
STOP_SECONDS = 5.0
STOPPING = "The worker shuts down"
TROUBLE = (httpx.HTTPError, httpx.InvalidURL, ValueError, KeyError, TypeError)
_log = get_logger("headgate.worker")


class JobLoop:
    """Claims jobs of one server and runs each in a thread, up to the slots of each kind."""

    def __init__(
        self,
        link: Link,
        handlers: Sequence[Handler],
        state: Callable[[], dict[str, Any]] = dict,
        on_refused: Callable[[], None] = lambda: None,
    ) -> None:
        self.handlers = [*handlers]
        self._link, self._state, self._on_refused = link, state, on_refused
        self._lock = threading.Condition()
        self._running: dict[str, Attempt] = {}
        self._stopping = threading.Event()
        self.refused: BadSecret | None = None
        """The answer of a server that does not accept this worker."""

    def start(self) -> None:
        """Begin, in threads."""
        for handler in self.handlers:
            threading.Thread(target=self._claim, args=(handler,), name=f"claim {handler.kind}", daemon=True).start()
        threading.Thread(target=self._keep, name="heartbeat", daemon=True).start()

    def stop(self) -> None:
        """Claim nothing more and give back what runs, so that another worker begins it again."""
        self._stopping.set()
        with self._lock:
            self._lock.notify_all()
        for attempt in self._now_running():
            attempt.stop(STOPPING, returning=True)
        deadline = time.monotonic() + STOP_SECONDS
        with self._lock:
            self._lock.wait_for(lambda: not self._running, timeout=max(deadline - time.monotonic(), 0))
        for attempt in self._now_running():
            attempt.give_up()

    # Claiming

    def _claim(self, handler: Handler) -> None:
        pause = FIRST_PAUSE
        while not self._stopping.is_set():
            free = self._free(handler)
            if self._stopping.is_set():
                return
            try:
                for job in self._link.claim(handler.kind, free, handler.slots, self._state()):
                    self._begin(handler.attempt(job))
                pause = FIRST_PAUSE
            except BadSecret as error:
                self.refused = error
                self._on_refused()
                return
            except TROUBLE as error:
                if not self._stopping.is_set() and pause == LONGEST_PAUSE / 2:
                    _log.warning("The server does not answer; retrying", kind=handler.kind, error=repr(error))
                self._stopping.wait(pause)
                pause = min(pause * 2, LONGEST_PAUSE)

    def _free(self, handler: Handler) -> int:
        """The number of free slots; waits for one."""
        with self._lock:
            self._lock.wait_for(lambda: self._count(handler) < handler.slots or self._stopping.is_set())
            return max(handler.slots - self._count(handler), 1)

    def _count(self, handler: Handler) -> int:
        return sum(attempt.kind == handler.kind for attempt in self._running.values())

    def _begin(self, attempt: Attempt) -> None:
        with self._lock:
            self._running[attempt.job.id] = attempt
            self._lock.notify_all()
        if self._stopping.is_set():
            attempt.stop(STOPPING, returning=True)

        def work() -> None:
            try:
                attempt.run()
            finally:
                self._ended(attempt)

        threading.Thread(target=work, name=attempt.job.id, daemon=True).start()

    def _ended(self, attempt: Attempt) -> None:
        with self._lock:
            if self._running.get(attempt.job.id) is attempt:
                del self._running[attempt.job.id]
            self._lock.notify_all()

    def _now_running(self) -> list[Attempt]:
        with self._lock:
            return list(self._running.values())

    # Keeping alive

    def _keep(self) -> None:
        """Renew leases, report progress, and interrupt what the server orders."""
        while not self._stopping.is_set():
            running = self._now_running()
            if not running:
                with self._lock:
                    self._lock.wait_for(lambda: self._running or self._stopping.is_set(), timeout=QUIET)
                continue
            try:
                orders = self._link.beat([attempt.beat() for attempt in running], self._state(), BEAT)
            except (*TROUBLE, BadSecret) as error:
                _log.debug("Cannot reach the server", error=repr(error))
                self._stopping.wait(BEAT)
                continue
            self._obey(running, {*orders.cancel, *orders.lost})
            if orders.cancel or orders.lost:
                # The server answers at once for as long as Spark takes to stop them.
                self._stopping.wait(BEAT / 2)

    def _obey(self, running: list[Attempt], stopped: set[str]) -> None:
        for attempt in running:
            if attempt.job.id in stopped:
                attempt.stop(f"The {attempt.kind} was cancelled")
            if attempt.is_stuck:
                _log.error("A job does not end; given up", kind=attempt.kind, job=attempt.job.id)
                attempt.give_up()
                self._ended(attempt)
