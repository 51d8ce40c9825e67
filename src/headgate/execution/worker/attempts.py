"""One attempt of this worker at a job, whatever its kind: its progress, its stop, and its report."""

import threading
import time
from abc import abstractmethod
from contextlib import suppress
from dataclasses import asdict
from typing import Any, Protocol

from headgate.contracts.jobs import JobOut
from headgate.execution.worker.server_link import Dropped, Link
from headgate.kit.log import get_logger

FAULT = "This is an internal error; the worker's log has the details under the job's id"
_log = get_logger("headgate.worker")


class Attempt:
    """One attempt at a job. `run` works in one thread; other threads stop it, or report it in its place."""

    kind: str
    grace = 30.0
    """Seconds after which an attempt that was stopped, or is over its time limit, and does not end, is given up."""

    def __init__(self, job: JobOut, link: Link) -> None:
        self.job, self.link = job, link
        self._lock = threading.Lock()
        self._progress: dict[str, Any] | None = None
        self._stopped_at: float | None = None
        self._is_reported = False
        self.is_returning = False
        self.reason = ""
        self.until = time.monotonic() + job.seconds

    @abstractmethod
    def work(self) -> None:
        """Do the job and report its outcome with `finish`."""

    def interrupt(self) -> None:
        """Make `work` end soon; called once, from another thread."""

    # What other threads ask for

    def beat(self) -> dict[str, Any]:
        """The job and its progress, for the server; the same progress is sent once."""
        with self._lock:
            progress, self._progress = self._progress, None
        return {"kind": self.kind, "id": self.job.id, "fence": self.job.fence, "progress": progress}

    def stop(self, reason: str, *, returning: bool = False) -> None:
        """Have it end. When `returning`, the server queues the job again."""
        with self._lock:
            if self._stopped_at is not None:
                return
            self._stopped_at, self.is_returning, self.reason = time.monotonic(), returning, reason
        self.interrupt()

    @property
    def is_stopped(self) -> bool:
        """Whether it was stopped."""
        return self._stopped_at is not None

    @property
    def is_stuck(self) -> bool:
        """Whether it should have ended long ago."""
        due = self.until if self._stopped_at is None else min(self.until, self._stopped_at)
        return time.monotonic() > due + self.grace

    def give_up(self) -> None:
        """Report it from here, since its own thread does not come back."""
        if self.is_returning:
            self.finish("returned")
        else:
            self.finish("failed", "STUCK", f"{self.reason or 'It took too long'}; it did not stop in time")

    # The work itself

    def run(self) -> None:
        """Do the job and report its outcome. Nothing is raised."""
        try:
            self.work()
        except Dropped:
            _log.info("A job was taken from this worker", kind=self.kind, job=self.job.id)
        except Exception:  # noqa: BLE001 - whatever it is, the member is told, and the worker goes on
            _log.exception("A job failed by an internal error", kind=self.kind, job=self.job.id)
            self.finish("failed", "INTERNAL", FAULT)

    def note_progress(self, progress: Any) -> None:
        """Keep Spark's progress (headgate.execution.spark.session.Progress) for the next heartbeat."""
        stages = [
            {
                "id": stage.id,
                "tasks": stage.tasks_total,
                "done": stage.tasks_done,
                "bytes_read": stage.bytes_read,
                "complete": stage.done,
            }
            for stage in progress.stages
        ]
        counts = {name: value for name, value in asdict(progress).items() if name != "stages"}
        with self._lock:
            self._progress = {**counts, "stages": stages}

    def finish(
        self, state: str, code: str | None = None, message: str | None = None, result: dict[str, Any] | None = None
    ) -> None:
        """Report the outcome, once."""
        with self._lock:
            if self._is_reported:
                return
            self._is_reported = True
        with suppress(Dropped):
            self.link.finish(self.kind, self.job, state, code, message, result or {})


class Handler(Protocol):
    """Runs jobs of one kind on this worker."""

    @property
    def kind(self) -> str:
        """The kind of job."""

    @property
    def slots(self) -> int:
        """How many it runs at a time."""

    def attempt(self, job: JobOut) -> Attempt:
        """An attempt at a job, to be run in a thread."""
