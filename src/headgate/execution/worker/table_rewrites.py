"""Table rewrites on a worker, for maintenance: one at a time, on the platform's Spark."""

import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn

from headgate.contracts.jobs import JobOut
from headgate.contracts.table_rewrites import RewritePayload
from headgate.execution.spark.errors import SparkUnavailable, SqlFailed, StatementRefused
from headgate.execution.steps.context import Context, RunJob, RunStopped, StepFailed
from headgate.execution.worker.attempts import Attempt
from headgate.execution.worker.server_link import Link
from headgate.kit.log import get_logger
from headgate.settings.settings import Settings

KIND = "table_rewrite"
FUNCTION = "headgate.execution.spark.compaction:compact"
NO_SPARK = "Spark does not run on the worker; `headgate doctor` says what is missing"
STOPPED = "The worker shut down, or the rewrite took too long; the next pass tries again"
_log = get_logger("headgate.worker")


class RewriteAttempt(Attempt):
    """The rewrite of one table. Spark commits at its end or not at all, so that it can be stopped at any time."""

    kind = KIND

    def __init__(self, job: JobOut, link: Link, settings: Settings, folder: Path, platform: Any) -> None:
        super().__init__(job, link)
        self._payload, self._platform = RewritePayload.model_validate(job.payload), platform
        self._context = made_context(job, self._payload, settings, folder, platform)

    def interrupt(self) -> None:
        self._context.stop()

    def work(self) -> None:
        limit = threading.Timer(self.job.seconds, self.stop, ["The rewrite took too long"])
        limit.daemon = True
        limit.start()
        began = time.monotonic()
        try:
            counts = rewrite(self._payload, self._platform, self._context)
        except RunStopped:
            self.finish("failed", "STOPPED", STOPPED)
        except SparkUnavailable as error:
            _log.warning("Spark is not there to rewrite tables", detail=error.detail)
            self.finish("failed", "ENGINE_DOWN", NO_SPARK)
        except (StepFailed, SqlFailed, StatementRefused) as error:
            message = f"Spark did not rewrite the table; the next pass tries again: {error.message}"
            self.finish("failed", "NOT_REWRITTEN", message[:5000])
        else:
            seconds = round(time.monotonic() - began, 1)
            _log.info("Rewrote a table", table=self._payload.table_id, seconds=seconds, **counts)
            self.finish("succeeded", result=counts)
        finally:
            limit.cancel()


class RewriteHandler:
    """Rewrites one table at a time."""

    kind, slots = KIND, 1

    def __init__(self, link: Link, settings: Settings, folder: Path, platform: Any) -> None:
        self._link, self._settings, self._folder, self._platform = link, settings, folder, platform

    def attempt(self, job: JobOut) -> RewriteAttempt:
        """An attempt at a rewrite."""
        return RewriteAttempt(job, self._link, self._settings, self._folder, self._platform)


def rewrite(payload: RewritePayload, platform: Any, context: Context) -> dict[str, int]:
    """Rewrite a table; the number of files before and after."""
    arguments = {
        "layer": payload.layer,
        "name": payload.name,
        "min_files": payload.min_files,
        "target_bytes": payload.target_mib << 20,
    }
    counts: dict[str, Any] = platform.call(FUNCTION, arguments, context)
    return {"files_before": counts["files_before"], "files_after": counts["files_after"]}


def made_context(job: JobOut, payload: RewritePayload, settings: Settings, folder: Path, platform: Any) -> Context:
    """What a call on the platform's Spark works with, for one table."""

    def no_member() -> NoReturn:
        raise StepFailed("NO_MEMBER", "Maintenance runs no member's SQL")

    run = RunJob(
        id=payload.table_id,
        fence=job.fence,
        token=payload.token,
        steps=[],
        done=0,
        moment=datetime.now(UTC),
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
        tell=lambda level, text: _log.info("Rewriting a table", table=payload.table_id, level=level, detail=text),
        note=lambda progress: None,
    )
