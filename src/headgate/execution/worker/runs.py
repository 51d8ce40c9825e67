"""The runs of a worker: one thread claims them, one keeps them alive and stops them, one executes each."""

import shutil
import threading
import time
from pathlib import Path
from typing import Any

import httpx2 as httpx

from headgate.execution.steps.context import RunJob
from headgate.execution.worker.run_execution import Execution
from headgate.execution.worker.run_link import RunLink
from headgate.execution.worker.server_link import BadSecret, Link
from headgate.kit.log import get_logger
from headgate.settings.settings import Settings

BEAT = 1.0
QUIET = 5.0
FIRST_PAUSE, LONGEST_PAUSE = 0.125, 2.0
STOP_SECONDS = 5.0
CANCELLED = "The run was cancelled"
STOPPING = "The worker stops"
_log = get_logger("headgate.worker")


class Runs:
    """Executes runs of one server, so many at a time."""

    def __init__(
        self,
        link: Link,
        settings: Settings,
        folder: Path,
        spark: Any,
        platform: Any,
    ) -> None:
        self._link, self._settings, self._folder = RunLink(link), settings, folder
        self._spark, self._platform = spark, platform
        self._slots = settings.runs.slots
        self._lock = threading.Condition()
        self._running: dict[str, Execution] = {}
        self._stopping = threading.Event()

    def start(self) -> None:
        """Work, in threads of its own; what a killed predecessor left in its folder goes first."""
        shutil.rmtree(self._folder, ignore_errors=True)
        for work in (self._claim, self._keep):
            threading.Thread(target=work, name=f"runs {work.__name__.strip('_')}", daemon=True).start()

    def stop(self) -> None:
        """Give back what runs, so that it goes on elsewhere from its last finished step."""
        self._stopping.set()
        with self._lock:
            self._lock.notify_all()
        for execution in self._now_running():
            execution.stop(STOPPING, returning=True)
        deadline = time.monotonic() + STOP_SECONDS
        with self._lock:
            self._lock.wait_for(lambda: not self._running, timeout=max(deadline - time.monotonic(), 0))
        for execution in self._now_running():
            execution.give_up()
        self._platform.close()

    def _claim(self) -> None:
        pause = FIRST_PAUSE
        while not self._stopping.is_set():
            free = self._free()
            if self._stopping.is_set():
                return
            try:
                for job in self._link.claim(free, self._spark.state()):
                    self._begin(job)
                pause = FIRST_PAUSE
            except BadSecret:
                return
            except (httpx.HTTPError, httpx.InvalidURL, ValueError, KeyError) as error:
                _log.debug("cannot claim runs right now", error=repr(error))
                self._stopping.wait(pause)
                pause = min(pause * 2, LONGEST_PAUSE)

    def _free(self) -> int:
        """How many slots are free; waits for one."""
        with self._lock:
            self._lock.wait_for(lambda: len(self._running) < self._slots or self._stopping.is_set())
            return max(self._slots - len(self._running), 1)

    def _begin(self, job: RunJob) -> None:
        execution = Execution(job, self._link, self._settings, self._folder, self._spark, self._platform)
        with self._lock:
            self._running[job.id] = execution
            self._lock.notify_all()
        if self._stopping.is_set():
            execution.stop(STOPPING, returning=True)

        def work() -> None:
            try:
                execution.run()
            finally:
                self._ended(execution)

        threading.Thread(target=work, name=job.id, daemon=True).start()

    def _ended(self, execution: Execution) -> None:
        with self._lock:
            if self._running.get(execution.job.id) is execution:
                del self._running[execution.job.id]
            self._lock.notify_all()

    def _now_running(self) -> list[Execution]:
        with self._lock:
            return list(self._running.values())

    def _keep(self) -> None:
        """Renew leases, tell progress, and do what the server orders."""
        while not self._stopping.is_set():
            running = self._now_running()
            if not running:
                with self._lock:
                    self._lock.wait_for(lambda: self._running or self._stopping.is_set(), timeout=QUIET)
                continue
            try:
                cancel, lost = self._link.beat([entry.beat() for entry in running], self._spark.state(), BEAT)
            except (httpx.HTTPError, BadSecret, ValueError, KeyError) as error:
                _log.debug("cannot reach the server right now", error=repr(error))
                self._stopping.wait(BEAT)
                continue
            for execution in running:
                if execution.job.id in cancel or execution.job.id in lost:
                    execution.stop(CANCELLED)
                if execution.is_stuck:
                    _log.error("a run does not end; given up", run=execution.job.id)
                    execution.give_up()
                    self._ended(execution)
            if cancel or lost:
                self._stopping.wait(BEAT / 2)
