"""The Spark of the platform's own steps: started when first needed, ended when idle. No member's SQL reaches it."""

import threading
import time
from typing import Any

from headgate.config import Settings
from headgate.engine import conf
from headgate.engine.connect import Connection
from headgate.engine.errors import EngineDown
from headgate.engine.local import local_server
from headgate.engine.server import LocalServer
from headgate.engine.session import SqlSession
from headgate.kit.log import get_logger

IDLE_SECONDS = 600
_log = get_logger("headgate.engine")


class PlatformSpark:
    """The Connect server for the platform's steps, on loopback behind a key of its own, or `spark.platform_url`."""

    def __init__(self, settings: Settings, catalog_url: str, *, idle_seconds: float = IDLE_SECONDS) -> None:
        self._settings, self._catalog_url, self._idle_seconds = settings, catalog_url, idle_seconds
        self._lock = threading.RLock()
        self._server: LocalServer | None = None
        self._connection: Connection | None = None
        self._sessions = 0
        self._idle: threading.Timer | None = None

    def state(self) -> dict[str, Any]:
        """How it is, for an operator."""
        server = self._server
        return {"up": self._up(), "pid": server.pid if server else None, "sessions": self._sessions}

    def open(self, token: str, *, time_zone: str = "UTC", max_rows: int = 1 << 30) -> SqlSession:
        """A session that acts with this token. Starts the server if it is not up; EngineDown says why it cannot."""
        with self._lock:
            if not self._up():
                self._begin()
            if self._idle is not None:
                self._idle.cancel()
            if self._connection is None:
                raise EngineDown("Spark is not up")
            session = SqlSession(self._connection, max_rows, self._closed)
            self._sessions += 1
        try:
            session.configure({conf.AUTHORIZATION: f"Bearer {token}", conf.TIME_ZONE: time_zone})
        except BaseException:
            session.close()
            raise
        return session

    def close(self) -> None:
        """End it, and every session on it."""
        with self._lock:
            if self._idle is not None:
                self._idle.cancel()
            self._drop()

    def _up(self) -> bool:
        if self._connection is None:
            return False
        return self._server is None or not self._server.ended.is_set()

    def _begin(self) -> None:
        self._drop()
        if self._settings.spark.platform_url is not None:
            self._connection = Connection.by_url(self._settings.spark.platform_url)
            return
        began = time.monotonic()
        confs = conf.for_platform(self._catalog_url)
        server = local_server("platform", self._settings, confs, may_sandbox=False)
        address = server.start(self._ended)
        self._server, self._connection = server, Connection.to(address)
        _log.info("the platform's Spark is up", seconds=round(time.monotonic() - began, 1))

    def _ended(self) -> None:
        connection = self._connection
        if connection is not None and not self._up():
            connection.fail("Spark ended under the step")

    def _closed(self) -> None:
        with self._lock:
            self._sessions -= 1
            if self._sessions == 0 and self._server is not None:
                self._idle = threading.Timer(self._idle_seconds, self._end_if_idle)
                self._idle.daemon = True
                self._idle.start()

    def _end_if_idle(self) -> None:
        with self._lock:
            if self._sessions == 0:
                self._drop()

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        server, self._server = self._server, None
        if connection is not None:
            connection.close()
        if server is not None:
            server.stop()
