"""One statement on Spark, from its claim to its end."""

import json
import threading
import time
from contextlib import suppress
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any, Protocol

from headgate.contracts.sql_script import split
from headgate.contracts.tables import iceberg, types
from headgate.execution.spark.errors import TIME_LIMIT, SparkUnavailable, SqlFailed, StatementRefused, too_long
from headgate.execution.worker.result_pages import Limits, Pager, TooWide
from headgate.execution.worker.server_link import Dropped, Job, Link, ServerFull
from headgate.kit.errors import DiskFull
from headgate.kit.log import get_logger

ENGINE_DOWN = "ENGINE_DOWN"
NO_ENGINE = "Spark does not run here. Whoever operates this installation can ask `headgate doctor` what is missing"
OUT_OF_MEMORY = "OUT_OF_MEMORY"
LOST_ENGINE = (
    "Spark ended twice while it ran this statement, the second time with nothing beside it. Nothing was written. Make "
    "the statement smaller, or ask whoever operates this installation to look at the worker's log"
)
NO_MEMORY = (
    "This statement needs more memory than Spark has here, also with nothing beside it. Nothing was written. Read "
    "fewer rows or build smaller values; whoever operates this installation can raise `spark.memory`"
)
FAULT = "This is a fault of ours; the worker's log says more under the statement's id"
_A_TIME = datetime(2000, 1, 1, tzinfo=UTC)
RUN_ARGUMENTS = {"run_time": _A_TIME}
WINDOW_ARGUMENTS = {"window_start": _A_TIME, "window_end": _A_TIME}
"""What a query of a pipeline may name as `:run_time` and so on; a probe only needs that they are times."""
NO_COLUMNS = "The SQL gives no columns to write; write one query, such as SELECT"
UNBOUND = "UNBOUND_SQL_PARAMETER"
NO_PARAMETER = (
    "The SQL names a parameter that there is not; there are :run_time and, in a query with write window, :window_start "
    "and :window_end"
)
GRACE = 30.0
"""Seconds after which a statement that was interrupted, and does not end, is given up."""
_log = get_logger("headgate.worker")


class Engine(Protocol):
    """What opens sessions for statements."""

    def ensure(self) -> None:
        """Start it if it is not up."""

    def open(self, token: str, *, user: str, time_zone: str, layer: str | None) -> Any:
        """A session with this token, that names tables without a layer in this one."""


class Spark(Engine, Protocol):
    """What runs statements."""

    @property
    def isolated(self) -> Engine:
        """For statements that may have ended it: what ends one of them ends nothing else."""

    def state(self) -> dict[str, Any]:
        """How it is."""

    def close(self) -> None:
        """End it."""


class Running:
    """A statement that this worker runs. `run` works in one thread; the others stop it, or report it, from theirs."""

    def __init__(self, job: Job, link: Link, spark: Spark) -> None:
        self.job, self._link = job, link
        self._spark: Engine = spark.isolated if job.isolated else spark
        self._lock = threading.Lock()
        self._session: Any = None
        self._progress: dict[str, Any] | None = None
        self._stopped_at: float | None = None
        self._returning = self._told = False
        self._until = time.monotonic() + job.seconds
        self._script = split(job.sql)

    # What other threads ask for

    def beat(self) -> dict[str, Any]:
        """How far it is, for the server; the same progress is told once."""
        with self._lock:
            told, self._progress = self._progress, None
        return {"id": self.job.id, "fence": self.job.fence, "progress": told}

    def stop(self, *, returning: bool = False) -> None:
        """Have Spark stop it. When `returning`, it is given back, to be begun again."""
        with self._lock:
            if self._stopped_at is not None:
                return
            self._stopped_at, self._returning = time.monotonic(), returning
            session = self._session
        if session is not None:
            threading.Thread(target=_interrupt, args=(session,), name="interrupt", daemon=True).start()

    @property
    def is_stuck(self) -> bool:
        """Whether it should have ended long ago."""
        now = time.monotonic()
        return now > self._until + GRACE or (self._stopped_at is not None and now > self._stopped_at + GRACE)

    def give_up(self) -> None:
        """Report it from here, since its own thread does not come back."""
        if self._returning:
            self._finish("returned")
        else:
            self._finish("failed", error_code="STUCK", error="Spark did not stop this statement in time")

    # The work itself

    def run(self) -> None:
        """Run it, and report what came of it. Nothing is raised."""
        try:
            self._run()
        except Dropped:
            _log.info("a statement was taken from this worker", statement=self.job.id)
        except Exception:  # noqa: BLE001 - whatever it is, the member is told, and the worker goes on
            _log.exception("a statement failed by a fault of ours", statement=self.job.id)
            self._finish("failed", error_code="INTERNAL", error=FAULT)
        finally:
            with self._lock:
                session, self._session = self._session, None
            if session is not None:
                session.close()

    def _run(self) -> None:
        try:
            self._spark.ensure()
        except SparkUnavailable as error:
            _log.error("Spark cannot be started", detail=error.detail)
            self._finish("failed", error_code=ENGINE_DOWN, error=NO_ENGINE)
            return
        try:
            self._on_spark()
        except SqlFailed as error:
            self._failed(error.code, self._words(error))
        except StatementRefused as error:
            self._failed("REFUSED", error.message)
        except TooWide:
            most = self.job.page_bytes
            self._failed("ROW_TOO_LARGE", f"A row of the result is larger than {most} bytes; select less of it")
        except ServerFull:
            self._failed("DISK_FULL", DiskFull.title)
        except SparkUnavailable as error:
            _log.warning("Spark was lost", statement=self.job.id, isolated=self.job.isolated, detail=error.detail)
            # Beside others, it is not known whose memory it was.
            if self.job.isolated and error.out_of_memory:
                self._finish("lost", error_code=OUT_OF_MEMORY, error=NO_MEMORY)
            else:
                self._finish("lost", error_code=ENGINE_DOWN, error=LOST_ENGINE)

    def _words(self, error: SqlFailed) -> str:
        if error.code == UNBOUND and self.job.purpose == "probe":
            return NO_PARAMETER
        # Spark was given what was left of the time when it began.
        return too_long(self.job.seconds).message if error.code == TIME_LIMIT else error.message

    def _on_spark(self) -> None:
        script = self._script
        session = self._spark.open(self.job.token, user=self.job.user, time_zone=script.time_zone, layer=script.layer)
        with self._lock:
            self._session = session
            is_stopped = self._stopped_at is not None
        if is_stopped:
            self._failed("OPERATION_CANCELED", "The statement was stopped")
        elif self.job.purpose == "probe":
            self._probe(session)
        else:
            self._query(session)

    def _probe(self, session: Any) -> None:
        """Analyse all, so that the catalog sees what is read. What the first gives, the rest may read."""
        first, args = self._script.sql, RUN_ARGUMENTS | (WINDOW_ARGUMENTS if self.job.windowed else {})
        if self.job.tells:
            self._link.analysed(self.job, **told(session.analysed(first, args=args), self.job.page_bytes))
        else:
            session.schema(first, args=args)
        for sql in self.job.more:
            session.schema(sql, args=RUN_ARGUMENTS)
        self._finish("succeeded")

    def _query(self, session: Any) -> None:
        job = self.job
        left = max(self._until - time.monotonic(), 0.001)
        # One row more than is kept, so that it is seen whether there are more.
        answer = session.run(self._script.sql, self._note, seconds=left, max_rows=job.max_rows + 1)
        pager = Pager(answer.schema, Limits(job.max_rows, job.max_bytes, job.page_bytes))
        first: bytes | None = None
        try:
            for number, page in enumerate(pager.pages_of(answer.batches)):
                if number == 0:
                    first = page
                else:
                    self._link.upload(job, number, page)
        finally:
            # Whoever stops reading early closes them, so that Spark stops too.
            with suppress(AttributeError):
                answer.batches.close()
        self._finish(
            "succeeded",
            first_page=first,
            columns=_columns(answer.schema),
            rows=pager.rows,
            bytes=pager.size,
            pages=pager.pages,
            truncated=pager.truncated,
        )

    def _note(self, progress: Any) -> None:
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
        told = {name: value for name, value in asdict(progress).items() if name != "stages"}
        with self._lock:
            self._progress = {**told, "stages": stages}

    def _failed(self, code: str, message: str) -> None:
        """It failed, or it was given back and this is how that looks."""
        if self._returning:
            self._finish("returned")
        else:
            self._finish("failed", error_code=code, error=message)

    def _finish(self, state: str, **more: Any) -> None:
        with self._lock:
            if self._told:
                return
            self._told = True
        with suppress(Dropped):
            self._link.finish(self.job, state, **more)


def told(result: Any, most: int) -> dict[str, Any]:
    """What the server is told of a query: its columns, or why no table can hold them, and what they are made of.

    What is longer than a request may be is left out: then that is not known.
    """
    try:
        fields = iceberg.fields(types.of_arrow(result.schema))
    except types.InvalidColumns as error:
        return {"columns": None, "problem": str(error)}
    if not fields:
        return {"columns": None, "problem": NO_COLUMNS}
    origins = list(zip(result.schema.names, result.origins, strict=True))
    ways: tuple[dict[str, Any], ...] = ({"columns": fields, "origins": origins}, {"columns": fields}, {})
    return next(way for way in ways if len(json.dumps(way)) <= most)


def _interrupt(session: Any) -> None:
    try:
        session.interrupt()
    except Exception:  # noqa: BLE001 - it may be over by now
        _log.warning("a statement could not be interrupted", exc_info=True)


def _columns(schema: Any) -> list[dict[str, Any]]:
    """The columns of a result."""
    return [{"name": field.name, "type": str(field.type), "nullable": field.nullable} for field in schema]
