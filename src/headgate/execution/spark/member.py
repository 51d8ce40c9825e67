"""The guarded Spark server for members' SQL: started and monitored on this machine, or remote."""

import threading
import time
from collections.abc import Callable
from typing import Any

from headgate.execution.spark import conf, jvm, sizes, versions
from headgate.execution.spark.connect import Connection
from headgate.execution.spark.errors import SparkUnavailable, SqlFailed, StatementRefused
from headgate.execution.spark.isolated import IsolatedSpark
from headgate.execution.spark.local import local_server
from headgate.execution.spark.server import LocalServer
from headgate.execution.spark.session import (
    SqlSession,
    StageProgress,
    StatementProgress,
    StatementResult,
    verify_guard,
)
from headgate.kit.log import get_logger
from headgate.settings.settings import Settings

__all__ = [
    "MemberSpark",
    "SparkUnavailable",
    "SqlFailed",
    "SqlSession",
    "StageProgress",
    "StatementProgress",
    "StatementRefused",
    "StatementResult",
]

HEAP_MARK = 0.6
"""The fraction of the heap above which an idle server is restarted."""

FRESH_SECONDS = 600
"""Minimum run time before a server is restarted for memory."""

_log = get_logger("headgate.engine")


class MemberSpark:
    """The guarded Connect server for members' SQL."""

    def __init__(self, settings: Settings, catalog_url: str, kind: str = "member") -> None:
        self._settings, self._catalog_url, self._kind = settings, catalog_url, kind
        self._isolated = IsolatedSpark(lambda: MemberSpark(settings, catalog_url, "isolated"))
        self._lock, self._counting = threading.RLock(), threading.Lock()
        self._server: LocalServer | None = None
        self._starting: LocalServer | None = None
        self._connection: Connection | None = None
        self._sessions = 0
        self._since: float | None = None
        self._error: str | None = None

    def ensure(self) -> None:
        """Start the server if it is not running, and verify its guard; raises SparkUnavailable.

        Call it before every statement; it costs nothing while the server is running and healthy.
        """
        with self._lock:
            if self._runs() and self._answers() and not self._worn():
                return
            self._drop()
            try:
                self._begin()
            except SparkUnavailable as error:
                self._error = error.detail
                self._drop()
                raise
            self._error, self._since = None, time.time()

    def state(self) -> dict[str, Any]:
        """The state of the server, for operators."""
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

    @property
    def isolated(self) -> "MemberSpark | IsolatedSpark":
        """Servers for work that may have crashed this one; a remote server has no alternative."""
        return self if self._settings.spark.member_url is not None else self._isolated

    def open(
        self,
        token: str,
        *,
        user: str = "",
        time_zone: str = "UTC",
        layer: str | None = None,
        on_close: Callable[[], None] = lambda: None,
    ) -> "SqlSession":
        """A session with only the rights of this token; `current_user()` returns the user."""
        with self._lock:
            connection = self._connection
            if connection is None or not self._up():
                raise SparkUnavailable("Spark is not running")
            self._count(1)
            server = self._server
        stuck = server.kill if server else lambda: None

        def closed() -> None:
            self._count(-1)
            on_close()

        session = SqlSession(connection, self._settings.sql.max_rows + 1, closed, stuck)
        try:
            session.configure(conf.acting(token, time_zone, user, layer))
            if server is None:
                # A remote server may have been restarted without its guard.
                verify_guard(session)
        except BaseException:
            session.close()
            raise
        return session

    def close(self) -> None:
        """Stop the server with all its sessions, also while it is starting."""
        self._isolated.close()
        starting = self._starting
        if starting is not None:
            starting.stop()
        with self._lock:
            self._drop()
            self._since = None

    def _count(self, more: int) -> None:
        with self._counting:
            self._sessions += more

    def _up(self) -> bool:
        if self._connection is None:
            return False
        return self._server is None or not self._server.ended.is_set()

    def _runs(self) -> bool:
        """Whether it is running, checked by its process, which may just have ended."""
        return self._up() and (self._server is None or self._server.pid is not None)

    def _worn(self) -> bool:
        """Whether it is idle and uses too much memory."""
        if self._server is None or self._sessions or time.time() - self._server.since < FRESH_SECONDS:
            return False
        if jvm.heap_after_collection(self._server.scratch) <= HEAP_MARK * sizes.memory_bytes(self._server.memory):
            return False
        _log.info("restarting an idle Spark server whose heap is full")
        return True

    def _begin(self) -> None:
        url = self._settings.spark.member_url
        if url is not None:
            self._connection = Connection.by_url(url)
        else:
            server = local_server(self._kind, self._settings, conf.for_members(self._catalog_url))
            self._starting = server
            try:
                address = server.start(lambda: self._ended(server))
            finally:
                self._starting = None
            self._server, self._connection = server, Connection.to(address)
            self._connection.ran_out_of_memory = server.ran_out_of_memory
            if server.ended.is_set():
                raise SparkUnavailable(f"Spark ended:\n{server.why()}")
        self._see_that_it_is_guarded(self._connection)

    def _see_that_it_is_guarded(self, connection: Connection) -> None:
        session = SqlSession(connection, 1)
        try:
            verify_guard(session)
        except SqlFailed as error:
            raise SparkUnavailable(f"Spark responds, but not as a guarded server: {error.message}") from None
        finally:
            session.close()

    def _answers(self) -> bool:
        """Whether it still responds; checked only after a failed call."""
        connection = self._connection
        if connection is None or not connection.doubtful:
            return connection is not None
        try:
            self._see_that_it_is_guarded(connection)
        except SparkUnavailable:
            return False
        connection.doubtful = False
        return True

    def _ended(self, server: LocalServer) -> None:
        """The server died: fail its statements now instead of after a timeout."""
        connection = self._connection
        if server is self._server and connection is not None:
            connection.fail("Spark ended during the statement")

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        server, self._server = self._server, None
        if connection is not None:
            connection.close()
        if server is not None:
            server.stop()


def _without_token(url: str | None) -> str | None:
    return url.partition("/;")[0] if url else None
