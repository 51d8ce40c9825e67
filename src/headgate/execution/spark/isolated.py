"""Isolated Spark servers for work that may have crashed the shared one: each serves a single session or run."""

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from headgate.execution.spark.errors import SparkUnavailable
from headgate.kit.log import get_logger

if TYPE_CHECKING:
    from headgate.execution.spark.member import MemberSpark
    from headgate.execution.spark.platform import PlatformSpark
    from headgate.execution.spark.session import SqlSession
    from headgate.execution.steps.context import Context

PAUSE = 0.2
_log = get_logger("headgate.engine")


class IsolatedSpark:
    """Starts a server for each session and ends it with the session. Only one runs at a time, to limit memory."""

    def __init__(self, make: "Callable[[], MemberSpark]") -> None:
        self._make = make
        self._turn, self._closing = threading.Lock(), threading.Event()
        self._current: MemberSpark | None = None

    def ensure(self) -> None:
        """Nothing to do: `open` starts the server."""

    def open(self, token: str, *, user: str = "", time_zone: str = "UTC", layer: str | None = None) -> "SqlSession":
        """A session on a new server, once no other is running; SparkUnavailable if it does not start."""
        while not self._turn.acquire(timeout=PAUSE):
            self._check()
        self._current = spark = self._make()
        try:
            self._check()
            _log.info("starting a Spark server for one session")
            spark.ensure()
            return spark.open(token, user=user, time_zone=time_zone, layer=layer, on_close=self._end)
        except BaseException:
            self._end()
            raise

    def close(self) -> None:
        """Stop the running server and start no other."""
        self._closing.set()
        spark = self._current
        if spark is not None:
            spark.close()

    def _check(self) -> None:
        if self._closing.is_set():
            raise SparkUnavailable("The worker is shutting down")

    def _end(self) -> None:
        spark, self._current = self._current, None
        if spark is not None:
            spark.close()
            self._turn.release()


class IsolatedPlatform:
    """A platform Spark for one run, started at its first call. Only one runs at a time, to limit memory."""

    def __init__(self, make: "Callable[[], PlatformSpark]", turn: threading.Lock) -> None:
        self._make, self._turn = make, turn
        self._spark: PlatformSpark | None = None

    def call(
        self, function: str, arguments: dict[str, Any], context: "Context", *, hosts: Sequence[tuple[str, int]] = ()
    ) -> dict[str, Any]:
        """A call on an isolated server, once no other is running; see PlatformSpark."""
        if self._spark is None:
            while not self._turn.acquire(timeout=PAUSE):
                context.check_stopped()
            self._spark = self._make()
            _log.info("starting a Spark server for one run", run=context.job.id)
        return self._spark.call(function, arguments, context, hosts=hosts)

    def close(self) -> None:
        """Stop the server."""
        spark, self._spark = self._spark, None
        if spark is not None:
            spark.close()
            self._turn.release()
