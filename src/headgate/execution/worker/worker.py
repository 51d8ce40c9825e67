"""A worker: runs jobs of one server, and what its other parts do. The main thread waits."""

import os
import socket
import threading
from collections.abc import Sequence
from typing import Protocol

from headgate.execution.spark.errors import SparkUnavailable
from headgate.execution.worker.attempts import Handler
from headgate.execution.worker.job_loop import JobLoop
from headgate.execution.worker.server_link import Link
from headgate.execution.worker.statement_execution import Spark, StatementHandler
from headgate.kit.ids import new_id
from headgate.kit.log import get_logger

HEAD_START = 1.0
_log = get_logger("headgate.worker")


def name_of_this() -> str:
    """How operators tell workers apart."""
    return f"{socket.gethostname()}:{os.getpid()}"[:200]


class Part(Protocol):
    """Something else that a worker does for its server, in threads of its own."""

    def start(self) -> None:
        """Begin."""

    def stop(self) -> None:
        """End."""


class Closable(Protocol):
    """A Spark that ends with the worker."""

    def close(self) -> None:
        """End it."""


class Worker:
    """Runs statements of one server, so many at a time, and the jobs of further handlers."""

    def __init__(self, server: str, secret: str, spark: Spark, *, slots: int, prewarm: bool) -> None:
        self.link = Link(server, secret, new_id("worker"), name_of_this())
        self._spark, self._prewarm = spark, prewarm
        self._stopping = threading.Event()
        self._jobs = JobLoop(self.link, [StatementHandler(self.link, spark, slots)], spark.state, self._stopping.set)
        self.parts: list[Part] = []
        self._closing: list[Closable] = []

    def handle(self, handlers: Sequence[Handler], platform: Closable | None = None) -> None:
        """Claim the jobs of these handlers too; the platform's Spark, which they use, is closed at the end."""
        self._jobs.handlers += handlers
        self._closing += [platform] if platform else []

    def stop(self) -> None:
        """Ask it to end; safe in a signal handler's thread."""
        self._stopping.set()

    def run(self) -> None:
        """Work until asked to end; BadSecret if the server does not take this worker."""
        if self._prewarm:
            threading.Thread(target=self._warm, name="warm", daemon=True).start()
        for part in (self._jobs, *self.parts):
            part.start()
        while not self._stopping.wait(1.0):
            pass
        self.link.stopping.set()
        self.link.leave()
        for part in (self._jobs, *self.parts):
            part.stop()
        for spark in (*self._closing, self._spark):
            spark.close()
        self.link.close()
        if self._jobs.refused is not None:
            raise self._jobs.refused

    def _warm(self) -> None:
        """Start Spark before it is needed, once the server has had its start; who needs it is told of a failure."""
        if self._stopping.wait(HEAD_START):
            return
        try:
            self._spark.ensure()
        except SparkUnavailable as error:
            _log.warning("Spark cannot be started", detail=error.detail)
