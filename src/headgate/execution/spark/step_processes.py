"""The worker processes for the platform's Spark: one per call, and a preloaded spare."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from headgate.execution.spark.errors import SparkUnavailable, SqlFailed, StatementRefused
from headgate.execution.spark.session import StageProgress, StatementProgress
from headgate.execution.steps.context import StepFailed
from headgate.kit.file_ownership import is_root
from headgate.kit.log import get_logger

FAULT = "Internal error; see the worker's log for the id of the run"
LOST = "The process of this step died; the step is retried. If this repeats, the worker may need more memory"
_KEPT = ("PATH", "LANG", "LC_ALL", "HOME", "TMPDIR", "PYTHONPATH")
_log = get_logger("headgate.engine")


class ProcessLost(Exception):
    """The process ended without a response."""


class StepProcess:
    """A process that takes one request. It ends with `end`, or with this process."""

    def __init__(self) -> None:
        environment = {name: os.environ[name] for name in _KEPT if name in os.environ}
        # Makes PySpark's functions those of Spark Connect.
        environment |= {"SPARK_CONNECT_MODE_ENABLED": "1", "TZ": "UTC"}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "headgate.execution.spark.step_process"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            start_new_session=True,
            # Spark runs as another user and writes to folders that this process creates, within a folder that only root
            # can enter.
            umask=0 if is_root() else -1,
        )

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    @property
    def lives(self) -> bool:
        """Whether the process is running."""
        return self._process.poll() is None

    def ask(self, request: dict[str, Any], told: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
        """The response to a request; other messages go to `told`. Raises ProcessLost if the process ends before."""
        assert self._process.stdin and self._process.stdout  # noqa: S101, PT018 - both are pipes
        with suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
        for line in self._process.stdout:
            try:
                document: dict[str, Any] = json.loads(line)
            except ValueError:
                break
            if "result" in document or "failed" in document:
                return document
            told(document)
        raise ProcessLost

    def kill(self) -> None:
        """Kill it immediately; callable from any thread."""
        self._process.kill()
        self._process.wait()

    def end(self) -> None:
        """End it and release its resources; call it in the thread that uses it."""
        self.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(OSError):
                if pipe is not None:
                    pipe.close()


class SpareProcess:
    """A preloaded spare process, because importing PySpark takes seconds."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._child: StepProcess | None = None

    def ready(self) -> None:
        """Ensure that there is a spare process."""
        with self._lock:
            if self._child is None or not self._child.lives:
                self._child = StepProcess()

    def take(self) -> StepProcess:
        """The spare process, or a new one."""
        with self._lock:
            child, self._child = self._child, None
        return child if child is not None and child.lives else StepProcess()

    def end(self) -> None:
        """End the spare process."""
        with self._lock:
            child, self._child = self._child, None
        if child is not None:
            child.end()


def outcome(answer: dict[str, Any], run: str) -> dict[str, Any]:
    """The result reported by a process; raises its failure."""
    if "result" in answer:
        values: dict[str, Any] = answer["result"]
        return values
    failed = answer["failed"]
    kind, code, message = failed["kind"], failed["code"], failed["message"]
    match kind:
        case "step":
            raise StepFailed(code, message, passing=failed["passing"])
        case "sql":
            raise SqlFailed(code, message)
        case "refused":
            raise StatementRefused(message)
        case "down":
            raise SparkUnavailable(message)
    _log.error("a step failed with an internal error", run=run, trace=message)
    raise StepFailed("INTERNAL", FAULT)


def progress(stages: list[list[Any]]) -> StatementProgress:
    """The progress of Spark reported by a process."""
    stage_progresses = [StageProgress(*stage) for stage in stages]
    done, total = (
        sum(stage_progress.tasks_done for stage_progress in stage_progresses),
        sum(stage_progress.tasks_total for stage_progress in stage_progresses),
    )
    return StatementProgress(
        stage_progresses, done, total, sum(stage_progress.bytes_read for stage_progress in stage_progresses)
    )
