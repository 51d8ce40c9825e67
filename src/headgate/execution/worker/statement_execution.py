"""One statement on Spark, from its claim to its end."""

import base64
import json
import threading
import time
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Protocol

from headgate.contracts.jobs import JobOut
from headgate.contracts.sql_script import split
from headgate.contracts.statements import StatementPayload
from headgate.contracts.tables import iceberg, types
from headgate.execution.spark.errors import TIME_LIMIT, SparkUnavailable, SqlFailed, StatementRefused, too_long
from headgate.execution.worker.attempts import Attempt
from headgate.execution.worker.result_pages import Limits, Pager, TooWide
from headgate.execution.worker.server_link import Link, ServerFull
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
KIND = "statement"
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


class StatementAttempt(Attempt):
    """One statement on Spark."""

    kind = KIND

    def __init__(self, job: JobOut, link: Link, spark: Spark) -> None:
        super().__init__(job, link)
        self._payload = StatementPayload.model_validate(job.payload)
        self._spark: Engine = spark.isolated if job.isolated else spark
        self._session: Any = None
        self._script = split(self._payload.sql)

    def interrupt(self) -> None:
        session = self._session
        if session is not None:
            threading.Thread(target=_interrupt, args=(session,), name="interrupt", daemon=True).start()

    def work(self) -> None:
        try:
            self._run()
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
            self.finish("failed", ENGINE_DOWN, NO_ENGINE)
            return
        try:
            self._on_spark()
        except SqlFailed as error:
            self._failed(error.code, self._words(error))
        except StatementRefused as error:
            self._failed("REFUSED", error.message)
        except TooWide:
            most = self._payload.page_bytes
            self._failed("ROW_TOO_LARGE", f"A row of the result is larger than {most} bytes; select less of it")
        except ServerFull:
            self._failed("DISK_FULL", DiskFull.title)
        except SparkUnavailable as error:
            _log.warning("Spark was lost", statement=self.job.id, isolated=self.job.isolated, detail=error.detail)
            # Beside others, it is not known whose memory it was.
            if self.job.isolated and error.out_of_memory:
                self.finish("lost", OUT_OF_MEMORY, NO_MEMORY)
            else:
                self.finish("lost", ENGINE_DOWN, LOST_ENGINE)

    def _words(self, error: SqlFailed) -> str:
        if error.code == UNBOUND and self._payload.purpose == "probe":
            return NO_PARAMETER
        # Spark was given what was left of the time when it began.
        return too_long(self.job.seconds).message if error.code == TIME_LIMIT else error.message

    def _on_spark(self) -> None:
        script, payload = self._script, self._payload
        session = self._spark.open(payload.token, user=payload.user, time_zone=script.time_zone, layer=script.layer)
        with self._lock:
            self._session = session
        if self.is_stopped:
            self._failed("OPERATION_CANCELED", "The statement was stopped")
        elif payload.purpose == "probe":
            self._probe(session)
        else:
            self._query(session)

    def _probe(self, session: Any) -> None:
        """Analyse all, so that the catalog sees what is read. What the first gives, the rest may read."""
        payload = self._payload
        first, args = self._script.sql, RUN_ARGUMENTS | (WINDOW_ARGUMENTS if payload.windowed else {})
        if payload.tells:
            columns = told(session.analysed(first, args=args), payload.page_bytes)
            self.link.analysed(self.job, **columns)
        else:
            session.schema(first, args=args)
        for sql in payload.more:
            session.schema(sql, args=RUN_ARGUMENTS)
        self.finish("succeeded")

    def _query(self, session: Any) -> None:
        payload = self._payload
        left = max(self.until - time.monotonic(), 0.001)
        # One row more than is kept, so that it is seen whether there are more.
        answer = session.run(self._script.sql, self.note_progress, seconds=left, max_rows=payload.max_rows + 1)
        pager = Pager(answer.schema, Limits(payload.max_rows, payload.max_bytes, payload.page_bytes))
        first = b""
        try:
            for number, page in enumerate(pager.pages_of(answer.batches)):
                if number == 0:
                    first = page
                else:
                    self.link.upload(self.job, number, page)
        finally:
            # Whoever stops reading early closes them, so that Spark stops too.
            with suppress(AttributeError):
                answer.batches.close()
        result = {
            "first_page": base64.b64encode(first).decode(),
            "columns": _columns(answer.schema),
            "rows": pager.rows,
            "bytes": pager.size,
            "pages": pager.pages,
            "truncated": pager.truncated,
        }
        self.finish("succeeded", result=result)

    def _failed(self, code: str, message: str) -> None:
        """It failed, or it was given back and this is how that looks."""
        if self.is_returning:
            self.finish("returned")
        else:
            self.finish("failed", code, message)


class StatementHandler:
    """Runs statements on the guarded Spark."""

    kind = KIND

    def __init__(self, link: Link, spark: Spark, slots: int) -> None:
        self._link, self._spark, self.slots = link, spark, slots

    def attempt(self, job: JobOut) -> StatementAttempt:
        """An attempt at a statement."""
        return StatementAttempt(job, self._link, self._spark)


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
