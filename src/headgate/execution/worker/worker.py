"""The worker's threads: one claims, one keeps alive and stops, one for each statement. The main thread waits."""

import os
import socket
import threading
import time
from typing import Any, Protocol

import httpx2 as httpx

from headgate.execution.spark.errors import SparkUnavailable
from headgate.execution.worker.server_link import BadSecret, Link
from headgate.execution.worker.statement_execution import Running, Spark
from headgate.kit.ids import new_id
from headgate.kit.log import get_logger

BEAT = 0.5
QUIET = 5.0
HEAD_START = 1.0
FIRST_PAUSE, LONGEST_PAUSE = 0.125, 2.0
STOP_SECONDS = 3.0
_log = get_logger("headgate.worker")


def name_of_this() -> str:
    """How operators tell workers apart."""
    return f"{socket.gethostname()}:{os.getpid()}"[:200]


class Part(Protocol):
    """Something else that a worker does for its server, in threads of its own."""

    def start(self) -> None:
        """Begin."""

    def stop(self) -> None:
        """End, and give back what is under way."""


class Worker:
    """Runs statements of one server, so many at a time, on one Spark; and what its other parts do."""

    def __init__(self, server: str, secret: str, spark: Spark, *, slots: int, prewarm: bool) -> None:
        self.link = Link(server, secret, new_id("worker"), name_of_this())
        self._spark, self._slots, self._prewarm = spark, slots, prewarm
        self._lock = threading.Condition()
        self._running: dict[str, Running] = {}
        self._stopping = threading.Event()
        self._refused: BadSecret | None = None
        self.parts: list[Part] = []

    def stop(self) -> None:
        """Ask it to end; safe in a signal handler's thread."""
        self._stopping.set()

    def run(self) -> None:
        """Work until asked to end; BadSecret if the server does not take this worker."""
        for work in (self._claim, self._keep, *([self._warm] if self._prewarm else [])):
            threading.Thread(target=work, name=work.__name__.strip("_"), daemon=True).start()
        for part in self.parts:
            part.start()
        while not self._stopping.wait(1.0):
            pass
        self.link.stopping.set()
        self.link.leave()
        for part in self.parts:
            part.stop()
        self._give_back()
        self._spark.close()
        self.link.close()
        if self._refused is not None:
            raise self._refused

    def _warm(self) -> None:
        """Start Spark before it is needed, once the server has had its start; who needs it is told of a failure."""
        if self._stopping.wait(HEAD_START):
            return
        try:
            self._spark.ensure()
        except SparkUnavailable as error:
            _log.warning("Spark cannot be started", detail=error.detail)

    def _state(self) -> dict[str, Any]:
        return self._spark.state()

    # Claiming

    def _claim(self) -> None:
        pause = FIRST_PAUSE
        while not self._stopping.is_set():
            free = self._free()
            try:
                for job in self.link.claim(free, self._slots, self._state()):
                    self._begin(Running(job, self.link, self._spark))
                if self._stopping.is_set():
                    self._give_back()
                pause = FIRST_PAUSE
            except BadSecret as error:
                self._refused = error
                self._stopping.set()
            except (httpx.HTTPError, httpx.InvalidURL, ValueError, KeyError) as error:
                if not self._stopping.is_set() and pause == LONGEST_PAUSE / 2:
                    _log.warning("the server does not answer; trying again", error=repr(error))
                self._stopping.wait(pause)
                pause = min(pause * 2, LONGEST_PAUSE)

    def _free(self) -> int:
        """How many slots are free; waits for one."""
        with self._lock:
            self._lock.wait_for(lambda: len(self._running) < self._slots or self._stopping.is_set())
            return max(self._slots - len(self._running), 1)

    def _begin(self, running: Running) -> None:
        with self._lock:
            self._running[running.job.id] = running
            self._lock.notify_all()

        def work() -> None:
            try:
                running.run()
            finally:
                self._ended(running)

        threading.Thread(target=work, name=running.job.id, daemon=True).start()

    def _ended(self, running: Running) -> None:
        with self._lock:
            if self._running.get(running.job.id) is running:
                del self._running[running.job.id]
            self._lock.notify_all()

    def _now_running(self) -> list[Running]:
        with self._lock:
            return list(self._running.values())

    # Keeping alive

    def _keep(self) -> None:
        """Renew leases, tell progress, and do what the server orders."""
        while not self._stopping.is_set():
            running = self._now_running()
            if not running:
                with self._lock:
                    self._lock.wait_for(lambda: self._running or self._stopping.is_set(), timeout=QUIET)
                continue
            try:
                cancel, lost = self.link.beat([running.beat() for running in running], self._state(), BEAT)
            except (httpx.HTTPError, BadSecret, ValueError, KeyError) as error:
                _log.debug("cannot reach the server right now", error=repr(error))
                self._stopping.wait(BEAT)
                continue
            self._obey(running, cancel, lost)
            if cancel or lost:
                # The server answers at once for as long as Spark takes to stop them.
                self._stopping.wait(BEAT / 2)

    def _obey(self, running: list[Running], cancel: list[str], lost: list[str]) -> None:
        for entry in running:
            if entry.job.id in cancel or entry.job.id in lost:
                entry.stop()
            if entry.is_stuck:
                _log.error("a statement does not end; given up", statement=entry.job.id)
                entry.give_up()
                self._ended(entry)

    # Stopping

    def _give_back(self) -> None:
        """Stop what runs, so that another worker begins it again; what does not stop in time is given back as it is."""
        with self._lock:
            self._lock.notify_all()
        for running in self._now_running():
            running.stop(returning=True)
        deadline = time.monotonic() + STOP_SECONDS
        with self._lock:
            self._lock.wait_for(lambda: not self._running, timeout=max(deadline - time.monotonic(), 0))
        for running in self._now_running():
            running.give_up()
