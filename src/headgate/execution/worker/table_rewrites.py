"""Tables that a worker rewrites for maintenance: one at a time, on the platform's Spark."""

import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn

import httpx2 as httpx

from headgate.execution.spark.errors import SparkUnavailable, SqlFailed, StatementRefused
from headgate.execution.steps.context import Context, RunJob, RunStopped, StepFailed
from headgate.execution.worker.server_link import POLL_SECONDS, BadSecret, Dropped, Link
from headgate.kit.log import get_logger
from headgate.settings.settings import Settings

FUNCTION = "headgate.execution.spark.compaction:compact"
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 8.0
NO_SPARK = "Spark does not run on the worker; `headgate doctor` says what is missing"
STOPPED = "the worker stopped, or it took too long; the next pass tries again"
FAULT = "a fault of ours; the worker's log says more"
_log = get_logger("headgate.worker")


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A table that this worker was given."""

    pass_id: str
    table_id: str
    fence: int
    token: str = field(repr=False)
    layer: str
    name: str
    seconds: float
    min_files: int
    target_mib: int


class Rewriting:
    """Rewrites tables of one server: a part of a worker."""

    def __init__(self, link: Link, settings: Settings, folder: Path, platform: Any) -> None:
        self._link, self._settings, self._folder, self._platform = link, settings, folder, platform
        self._stopping = threading.Event()
        self._context: Context | None = None

    def start(self) -> None:
        """Begin, in a thread."""
        threading.Thread(target=self._claim, name="rewriting", daemon=True).start()

    def stop(self) -> None:
        """Begin no other, and stop the one under way: it commits at its end, or nothing."""
        self._stopping.set()
        context = self._context
        if context is not None:
            context.stop()

    def _claim(self) -> None:
        pause = FIRST_PAUSE
        while not self._stopping.is_set():
            try:
                job = self._claimed()
                if job is not None:
                    self._do(job)
                pause = FIRST_PAUSE
            except BadSecret:
                # The worker's own claim meets the same answer, and ends it.
                return
            except (httpx.HTTPError, httpx.InvalidURL, ValueError, KeyError, TypeError) as error:
                _log.debug("cannot claim tables to rewrite right now", error=type(error).__name__)
                self._stopping.wait(pause)
                pause = min(pause * 2, LONGEST_PAUSE)

    def _claimed(self) -> Rewrite | None:
        body = {"worker": self._link.worker}
        result = self._link.ask("POST", "/api/worker/maintenance/claim", json=body, params={"wait": POLL_SECONDS})
        return Rewrite(**result["job"]) if result["job"] else None

    def _do(self, job: Rewrite) -> None:
        context = self._context = self._made(job)
        if self._stopping.is_set():
            context.stop()
        timer = threading.Timer(job.seconds, context.stop)
        timer.daemon = True
        timer.start()
        began = time.monotonic()
        try:
            told = rewrite(job, self._platform, context)
        except Exception:  # noqa: BLE001 - whatever it is, the server is told, and the worker goes on
            _log.exception("a table was not rewritten by a fault of ours", table=job.table_id)
            told = {"error": FAULT}
        finally:
            timer.cancel()
            self._context = None
        _log.info("rewriting has ended", table=job.table_id, seconds=round(time.monotonic() - began, 1), **told)
        body = {"worker": self._link.worker, "fence": job.fence, **told}
        with suppress(Dropped, BadSecret):
            path = f"/api/worker/maintenance/{job.pass_id}/{job.table_id}/finish"
            self._link.surely("POST", path, waits=True, json=body)

    def _made(self, job: Rewrite) -> Context:
        return made_context(job, self._settings, self._folder, self._platform)


def rewrite(job: Rewrite, platform: Any, context: Context) -> dict[str, Any]:
    """Rewrite a table; what the server is to be told: counts of files, or an error that says what to do."""
    arguments = {"layer": job.layer, "name": job.name, "min_files": job.min_files, "target_bytes": job.target_mib << 20}
    try:
        values: dict[str, Any] = platform.call(FUNCTION, arguments, context)
    except RunStopped:
        return {"error": STOPPED}
    except SparkUnavailable as error:
        _log.warning("Spark is not there to rewrite tables", detail=error.detail)
        return {"error": NO_SPARK}
    except (StepFailed, SqlFailed, StatementRefused) as error:
        return {"error": f"Spark did not rewrite it; the next pass tries again: {error.message}"[:5000]}
    return {"files_before": values["files_before"], "files_after": values["files_after"]}


def made_context(job: Rewrite, settings: Settings, folder: Path, platform: Any) -> Context:
    """What a call on the platform's Spark works with, for one table."""

    def no_member() -> NoReturn:
        raise StepFailed("NO_MEMBER", "Maintenance runs no member's SQL")

    moment = datetime.now(UTC)
    run = RunJob(
        id=job.table_id,
        fence=job.fence,
        token=job.token,
        steps=[],
        done=0,
        moment=moment,
        time_zone="UTC",
        seconds=job.seconds,
        full_refresh=False,
        states={},
        endpoints={},
    )
    return Context(
        run,
        settings,
        folder,
        open_member=no_member,
        platform=platform,
        tell=lambda level, text: _log.info("rewriting a table", table=job.table_id, level=level, told=text),
        note=lambda told: None,
    )
