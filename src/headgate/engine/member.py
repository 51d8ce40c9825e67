"""The guarded Spark that runs members' SQL: on this machine, started and watched here, or a server elsewhere."""

import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from headgate.config import Settings
from headgate.engine import conf, failures, guard_jar, jars, java, jvm, sandbox, sizes, versions
from headgate.engine.connect import Connection, Session
from headgate.engine.errors import TIME_LIMIT, EngineDown, Refused, SqlFailed
from headgate.engine.server import LocalServer
from headgate.kit.log import get_logger

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Answer", "EngineDown", "MemberSpark", "Progress", "Refused", "SqlFailed", "SqlSession", "Stage"]

CANARY = "SET"
"""A statement that no guard lets pass."""

HEAP_MARK = 0.6
"""The part of the heap above which an idle server is started anew."""

_log = get_logger("headgate.engine")


@dataclass(frozen=True)
class Stage:
    """A stage of a statement, as Spark counts it."""

    id: int
    tasks_done: int
    tasks_total: int
    bytes_read: int
    done: bool


@dataclass(frozen=True)
class Progress:
    """How far a statement is."""

    stages: list[Stage] = field(default_factory=list)
    tasks_done: int = 0
    tasks_total: int = 0
    bytes_read: int = 0


@dataclass(frozen=True)
class Answer:
    """The result of a statement. Batches come as Spark makes them; whoever stops reading early closes them."""

    schema: "pa.Schema"
    batches: Iterator["pa.RecordBatch"]


class MemberSpark:
    """The guarded Connect server for members' SQL."""

    def __init__(self, settings: Settings, catalog_url: str) -> None:
        self._settings, self._catalog_url = settings, catalog_url
        self._lock = threading.RLock()
        self._server: LocalServer | None = None
        self._connection: Connection | None = None
        self._sessions = 0
        self._since: float | None = None
        self._error: str | None = None

    def ensure(self) -> None:
        """Start it if it is not up, and see that its guard holds; EngineDown says why it is not."""
        with self._lock:
            if self._up():
                if not self._worn():
                    return
                _log.info("a Spark server is started anew: it is idle, and its heap is full")
            self._drop()
            try:
                self._see_that_it_refuses(self._begin())
            except EngineDown as error:
                self._error = error.detail
                self._drop()
                raise
            self._error, self._since = None, time.time()

    def state(self) -> dict[str, Any]:
        """How it is, for an operator."""
        server = self._server
        return {
            "up": self._up(),
            "pid": server.pid if server else None,
            "sandboxed": server.sandboxed if server else None,
            "url": _without_token(self._settings.spark.member_url),
            "memory": server.memory if server else None,
            "cores": server.cores if server else None,
            "resident_bytes": server.resident_bytes if server else None,
            "sessions": self._sessions,
            "since": self._since,
            "versions": {"spark": versions.PYSPARK, "iceberg": versions.ICEBERG},
            "error": self._error,
        }

    def open(self, token: str, *, time_zone: str = "UTC") -> "SqlSession":
        """A session that acts with this token, and with no other right."""
        with self._lock:
            connection = self._connection
            if connection is None or not self._up():
                raise EngineDown("Spark is not up")
            self._sessions += 1
        session = SqlSession(Session(connection), connection, self._closed)
        try:
            session.configure({conf.AUTHORIZATION: f"Bearer {token}", conf.TIME_ZONE: time_zone})
        except BaseException:
            session.close()
            raise
        return session

    def close(self) -> None:
        """End it, and every session on it."""
        with self._lock:
            self._drop()
            self._since = None

    def _closed(self) -> None:
        with self._lock:
            self._sessions -= 1

    def _up(self) -> bool:
        if self._connection is None:
            return False
        return self._server is None or not self._server.ended.is_set()

    def _worn(self) -> bool:
        """Whether it is idle and holds more than it should."""
        if self._server is None or self._sessions:
            return False
        return jvm.heap_after_collection(self._server.scratch) > HEAP_MARK * sizes.memory_bytes(self._server.memory)

    def _begin(self) -> Connection:
        url = self._settings.spark.member_url
        if url is not None:
            self._connection = Connection.by_url(url)
            return self._connection
        server = local_server("member", self._settings, conf.for_members(self._catalog_url))
        address = server.start(lambda: self._ended(server))
        self._server, self._connection = server, Connection.to(address)
        if server.ended.is_set():
            raise EngineDown(f"Spark ended:\n{server.why()}")
        return self._connection

    def _ended(self, server: LocalServer) -> None:
        """It died: whatever runs on it fails now, and not when a timeout comes."""
        connection = self._connection
        if server is self._server and connection is not None:
            connection.fail("Spark ended under the statement")

    def _see_that_it_refuses(self, connection: Connection) -> None:
        """Send the canary. A server that answers it is not guarded, and gets no statement."""
        session = SqlSession(Session(connection), connection, lambda: None)
        try:
            # The guard asks for the current catalog first; with Spark's own, the canary needs no other server.
            session.configure({"spark.sql.defaultCatalog": "spark_catalog"})
            session.run(CANARY).batches.close()  # type: ignore[attr-defined]
        except Refused:
            return
        except SqlFailed as error:
            raise EngineDown(f"Spark answers, but does not say that it is guarded: {error.message}") from None
        finally:
            session.close()
        raise EngineDown(
            "This Spark server is not guarded: it answered a statement that the guard refuses. "
            "`headgate spark conf` prints the settings that it needs"
        )

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        server, self._server = self._server, None
        if connection is not None:
            connection.close()
        if server is not None:
            server.stop()


class SqlSession:
    """A session of one member, for one statement at a time."""

    def __init__(self, session: Session, connection: Connection, on_close: Callable[[], None]) -> None:
        self._session, self._connection, self._on_close = session, connection, on_close
        self._operation: str | None = None
        self._stopped: SqlFailed | None = None
        self._open = True

    def configure(self, values: dict[str, str]) -> None:
        """Set values of the session."""
        with self._told():
            self._session.configure(values)

    def run(
        self, sql: str, on_progress: Callable[[Progress], None] | None = None, *, seconds: float | None = None
    ) -> Answer:
        """Execute a statement, once. Comes back with the first rows, or at the end; stops it after so many seconds."""
        if self._stopped is not None:
            raise self._stopped
        batches = self._batches(sql, on_progress or (lambda _: None), seconds)
        try:
            first = next(batches)
        except StopIteration:
            import pyarrow as pa

            return Answer(pa.schema([]), iter(()))
        return Answer(first.schema, _after(first, batches))

    def schema(self, sql: str) -> "pa.Schema":
        """The columns that a query would give. Nothing is executed."""
        from pyspark.sql.connect.types import proto_schema_to_pyspark_data_type
        from pyspark.sql.pandas.types import to_arrow_schema

        with self._told():
            found = self._session.analyse(sql)
        struct: Any = proto_schema_to_pyspark_data_type(found.schema)
        return to_arrow_schema(struct)

    def interrupt(self) -> None:
        """Stop the statement, in Spark and not only here. To be called from another thread."""
        self._stop(failures.STOPPED)

    def close(self) -> None:
        """Free the session on the server, and stop what it runs."""
        if not self._open:
            return
        self._open = False
        try:
            with suppress(EngineDown, SqlFailed, Refused), self._told():
                self._session.release()
        finally:
            self._on_close()

    def _stop(self, reason: SqlFailed) -> None:
        self._stopped = reason
        operation = self._operation
        deadline = time.monotonic() + 5
        with suppress(EngineDown, SqlFailed, Refused), self._told():
            # A statement that was sent a moment ago may not have arrived.
            while operation is not None and self._operation == operation and time.monotonic() < deadline:
                if self._session.interrupt(operation):
                    return
                time.sleep(0.05)

    def _batches(
        self, sql: str, on_progress: Callable[[Progress], None], seconds: float | None
    ) -> Iterator["pa.RecordBatch"]:
        self._operation = operation = str(uuid.uuid4())
        limit = threading.Timer(seconds, self._stop, [_too_long(seconds)]) if seconds is not None else None
        if limit is not None:
            limit.daemon = True
            limit.start()
        ended = False
        try:
            with self._told():
                yield from _decoded(self._session.execute(sql, operation), on_progress)
            ended = True
        except (SqlFailed, Refused, EngineDown):
            ended = True
            raise
        finally:
            if limit is not None:
                limit.cancel()
            self._operation = None
            if not ended:
                # Whoever reads has had enough: Spark need not go on.
                with suppress(EngineDown, SqlFailed, Refused), self._told():
                    self._session.interrupt(operation)

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Turn errors of the protocol into ours."""
        self._connection.check()
        try:
            yield
        except (SqlFailed, Refused, EngineDown):
            raise
        except Exception as error:
            self._connection.check()
            found = failures.translate(error, self._session.error_details)
            if found is failures.STOPPED and self._stopped is not None:
                raise self._stopped from None
            if found is error:
                raise
            raise found from None


def local_server(kind: str, settings: Settings, confs: conf.Conf, *, may_sandbox: bool = True) -> LocalServer:
    """A server on this machine, not yet started; EngineDown says what is missing."""
    complaints = versions.complaints()
    if complaints:
        raise EngineDown("; ".join(complaints))
    wanted = settings.spark.sandbox if may_sandbox else "off"
    lacking = None if wanted == "off" else sandbox.missing()
    if lacking and wanted == "required":
        raise EngineDown(f"spark.sandbox is `required`, and {lacking}")
    if lacking:
        _log.warning("members' SQL runs without a sandbox", why=lacking)
    try:
        s3 = settings.warehouse_url.startswith("s3://")
        found = jars.ensure(settings.spark.jars_dir, s3=s3)
        return LocalServer(kind, settings, found, confs, sandboxed=wanted != "off" and not lacking)
    except (jars.BadJar, guard_jar.BadBuild, java.NoJava) as error:
        raise EngineDown(str(error)) from None


def _decoded(answers: Iterator[Any], on_progress: Callable[[Progress], None]) -> Iterator["pa.RecordBatch"]:
    """The rows among the answers; a large batch comes in parts."""
    import pyarrow as pa

    parts: list[bytes] = []
    try:
        for answer in answers:
            if answer.HasField("execution_progress"):
                on_progress(_progress(answer.execution_progress))
            if answer.HasField("arrow_batch"):
                parts.append(answer.arrow_batch.data)
                if len(parts) >= answer.arrow_batch.num_chunks_in_batch:
                    with pa.ipc.open_stream(b"".join(parts)) as reader:
                        parts.clear()
                        yield from reader
    finally:
        answers.close()  # type: ignore[attr-defined]


def _progress(told: Any) -> Progress:
    stages = [
        Stage(one.stage_id, one.num_completed_tasks, one.num_tasks, one.input_bytes_read, one.done)
        for one in told.stages
    ]
    done, total = sum(one.tasks_done for one in stages), sum(one.tasks_total for one in stages)
    return Progress(stages, done, total, sum(one.bytes_read for one in stages))


def _after(first: Any, rest: Iterator[Any]) -> Iterator[Any]:
    try:
        yield first
        yield from rest
    finally:
        rest.close()  # type: ignore[attr-defined]


def _too_long(seconds: float | None) -> SqlFailed:
    return SqlFailed(TIME_LIMIT, f"The statement ran longer than {seconds:g} seconds, and was stopped")


def _without_token(url: str | None) -> str | None:
    return url.partition("/;")[0] if url else None
