"""One run on this worker, from its claim to its end: step after step, each reported when it begins and ends."""

import importlib
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from headgate.contracts.jobs import JobOut
from headgate.contracts.pipelines.steps import AnyStep, title
from headgate.execution.spark.errors import SparkUnavailable, SqlFailed, StatementRefused
from headgate.execution.steps.context import Context, Result, RunStopped, Session, StepFailed
from headgate.execution.steps.volumes import StoredVolumes
from headgate.execution.worker.attempts import FAULT, Attempt
from headgate.execution.worker.run_link import RunLink, run_job
from headgate.execution.worker.server_link import Dropped, Link, ServerFull
from headgate.kit.clock import now
from headgate.kit.crash_points import crash_point
from headgate.kit.errors import DiskFull, is_disk_full
from headgate.kit.log import get_logger
from headgate.settings.settings import Settings

EXECUTORS = {
    "land": "headgate.execution.steps.land",
    "refine": "headgate.execution.steps.refine",
    "notebook": "headgate.execution.steps.notebook",
    "save_staged": "headgate.execution.steps.save_staged",
    "history": "headgate.execution.steps.history",
    "check": "headgate.execution.steps.check",
    "deliver": "headgate.execution.steps.deliver",
}
"""Where each kind of step is executed; loaded when one comes."""

EXPECTATION_FAILED = "EXPECTATION_FAILED"
DISK_FULL = "DISK_FULL"
FULL = "The worker's disk is full, so nothing was published; the operator must free space in `data_dir`"
SERVER_FULL = f"{DiskFull.title}. Nothing was published"
OURS = frozenset({"ENGINE_DOWN", "STEP_LOST", "SPARK_DID_NOT_START"})
"""What passes and is no fault of the pipeline's: the run goes on from its last finished step."""
CATALOG_FAILED = "CATALOG_FAILED"
LOST_CATALOG = "The server did not answer Spark while it ran this; nothing was published"
LOST_ENGINE = "Spark ended while it ran this, several times; it may need more memory (`spark.memory`)"
NO_MEMORY = (
    "A query of this run needs more memory than Spark has here, also with nothing beside it. Nothing was published. "
    "Read fewer rows or build smaller values; whoever operates this installation can raise `spark.memory`"
)
TOO_LONG = "The run took longer than its {:g} seconds; give the pipeline a longer `timeout`, or less to do at a time"
KIND = "run"
_LINES_EVERY = 0.5
_log = get_logger("headgate.worker")


class RunAttempt(Attempt):
    """A run on this worker, from its first unfinished step on."""

    kind = KIND
    grace = 60.0

    def __init__(self, job: JobOut, link: Link, settings: Settings, folder: Path, spark: Any, platform: Any) -> None:
        super().__init__(job, link)
        self._run, self._told_by, self._spark = run_job(job), RunLink(link), spark
        self._lines: list[tuple[datetime, str, str]] = []
        self._over = threading.Event()
        self.context = Context(
            self._run,
            settings,
            folder / job.id / str(job.fence),
            open_member=self._open,
            platform=platform,
            tell=self._tell,
            note=self.note_progress,
            volumes=StoredVolumes(settings, lambda volume: self._told_by.files(self._run, volume)),
            catalog_url=self._told_by.catalog_url,
            keep=lambda name, media_type, content: self._told_by.artifact(self._run, name, media_type, content),
        )
        self.context.remembers = self._remember

    def interrupt(self) -> None:
        self.context.stop()

    def _open(self) -> Session:
        """A session on the guarded Spark, with the run's member, token and time zone."""
        spark = self._spark.isolated if self.job.isolated else self._spark
        spark.ensure()
        session: Session = spark.open(self._run.token, user=self._run.user, time_zone=self._run.time_zone)
        return session

    @contextmanager
    def _platform(self) -> Iterator[None]:
        """Have the steps call a Spark of the run's own, if it may be what ended the one that it shared."""
        if not self.job.isolated:
            yield
            return
        with self.context.platform.alone() as self.context.platform:
            yield

    def _remember(self, number: int, memory: dict[str, Any]) -> None:
        """Have the server keep what a step tells; Stopped if it says that the run is not to go on."""
        try:
            self._told_by.remember(self._run, number, memory)
        except ServerFull:
            raise
        except Dropped:
            self.stop("The run was cancelled, or has another worker")
            raise RunStopped from None

    # The work itself

    def work(self) -> None:
        limit = threading.Timer(self.job.seconds, self.stop, [TOO_LONG.format(self.job.seconds)])
        limit.daemon = True
        limit.start()
        teller = threading.Thread(target=self._send_lines, name="lines", daemon=True)
        teller.start()
        try:
            with self._platform():
                outcome = self._outcome()
            crash_point("before the finish")
            self._flush(teller)
            self.finish(*outcome)
        finally:
            limit.cancel()
            self._over.set()
            shutil.rmtree(self.context.folder, ignore_errors=True)
            with suppress(OSError):
                self.context.folder.parent.rmdir()

    def _outcome(self) -> tuple[str, str | None, str | None]:
        """What came of the steps: a state, a code and a message."""
        try:
            self.context.folder.mkdir(parents=True, exist_ok=True)
            self._steps()
        except ServerFull:
            return self._failed(DISK_FULL, SERVER_FULL)
        except Dropped:
            raise
        except StepFailed as error:
            return self._failed(error.code, error.message, is_ours=error.passing and error.code in OURS)
        except SqlFailed as error:
            if error.code == CATALOG_FAILED:
                return self._failed(error.code, LOST_CATALOG, is_ours=True)
            return self._failed(error.code, error.message)
        except StatementRefused as error:
            return self._failed("REFUSED", error.message)
        except SparkUnavailable as error:
            return self._without_spark(error)
        except RunStopped:
            return self._failed("STOPPED", self.reason or "The run was stopped")
        except Exception as error:  # noqa: BLE001 - whatever it is, whoever sees the run is told, and the worker goes on
            return self._at_fault(error)
        return "succeeded", None, None

    def _without_spark(self, error: SparkUnavailable) -> tuple[str, str | None, str | None]:
        _log.warning("Spark was lost", run=self.job.id, isolated=self.job.isolated, detail=error.detail)
        if self.job.isolated and error.out_of_memory:
            return self._failed("OUT_OF_MEMORY", NO_MEMORY)
        return self._failed("ENGINE_DOWN", LOST_ENGINE, is_ours=True)

    def _at_fault(self, error: Exception) -> tuple[str, str | None, str | None]:
        if is_disk_full(error):
            return self._failed(DISK_FULL, FULL)
        _log.error("a run failed by a fault of ours", run=self.job.id, exc_info=error)
        return self._failed("INTERNAL", FAULT)

    def _failed(self, code: str, message: str, *, is_ours: bool = False) -> tuple[str, str | None, str | None]:
        """How a failure is told: if the run was stopped meanwhile, that is what it was."""
        if self.is_returning:
            return "returned", None, None
        if self.is_stopped:
            code, message, is_ours = "STOPPED", self.reason, False
        self.context.log(message, "error")
        return ("lost" if is_ours else "failed"), code, message

    def _steps(self) -> None:
        for number, step in enumerate(self._run.steps):
            if number < self._run.done:
                continue
            self.context.check_stopped()
            self._told_by.step(self._run, number, "running")
            self.context.log(title(step))
            crash_point(f"in step {number}")
            try:
                result = execute(step, self.context)
            except ServerFull:
                raise
            except BaseException:
                with suppress(Dropped):
                    self._told_by.step(self._run, number, "failed")
                raise
            crash_point(f"after the work of step {number}")
            self.context.check_stopped()
            # One that stops the run is not finished: whoever goes on with the run must make it again.
            self._told_by.step(self._run, number, "failed" if _stops(step, result) else "succeeded", result)
            self._judge(step, result)
            crash_point(f"after step {number}")

    def _judge(self, step: AnyStep, result: Result) -> None:
        """Tell what a check found; one that stops the run stops it."""
        if result.check is None or result.check.passed:
            return
        self.context.log(result.check.message, "error" if _stops(step, result) else "warning")
        if _stops(step, result):
            raise StepFailed(EXPECTATION_FAILED, f"{title(step)}: {result.check.message}. Nothing was published")

    # Telling

    def _tell(self, level: str, text: str) -> None:
        with self._lock:
            self._lines.append((now(), level, text))

    def _send_lines(self) -> None:
        """Send lines as they come, a few at a time."""
        while True:
            is_over = self._over.wait(_LINES_EVERY)
            with self._lock:
                lines, self._lines = self._lines[:400], self._lines[400:]
            if lines:
                with suppress(Dropped):
                    self._told_by.lines(self._run, lines)
            elif is_over:
                return

    def _flush(self, teller: threading.Thread) -> None:
        """Have all lines sent before the end is told: after it the run is no longer ours."""
        self._over.set()
        teller.join(30)
        while self._told_by.is_full and teller.is_alive():
            teller.join(1)


def _stops(step: AnyStep, result: Result) -> bool:
    """Whether a step is a check that does not hold, and that must hold before anything is published."""
    is_wanted = step.kind == "check" and step.expectation.severity == "stop"
    return is_wanted and result.check is not None and not result.check.passed


def execute(step: AnyStep, context: Context) -> Result:
    """Do one step."""
    module = importlib.import_module(EXECUTORS[step.kind])
    result: Result = module.run(step, context)
    return result


class RunHandler:
    """Executes runs, so many at a time."""

    kind = KIND

    def __init__(self, link: Link, settings: Settings, folder: Path, spark: Any, platform: Any) -> None:
        self._link, self._settings, self._folder = link, settings, folder
        self._spark, self._platform, self.slots = spark, platform, settings.runs.slots
        # A killed predecessor may have left files.
        shutil.rmtree(folder, ignore_errors=True)

    def attempt(self, job: JobOut) -> RunAttempt:
        """An attempt at a run."""
        return RunAttempt(job, self._link, self._settings, self._folder, self._spark, self._platform)
