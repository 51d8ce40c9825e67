"""The context of a platform function in its own process: a session of PySpark's own client, and progress reports.

Only `headgate.execution.spark.step_process` creates it.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headgate.execution.spark import conf, failures
from headgate.execution.spark.connect import USER, messages
from headgate.execution.spark.failures import Cause

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUICK_SECONDS = 60
Tell = Callable[[dict[str, Any]], None]
Teller = Callable[[Cause], Exception | None]


@dataclass(frozen=True)
class SparkEndpoint:
    """The endpoint of the platform's Spark (a Unix socket or a URL), and the session to open there."""

    session: str
    token: str
    time_zone: str
    socket: str | None = None
    url: str | None = None


class Step:
    """A call: `spark` has only the rights of the run's token."""

    def __init__(self, where: SparkEndpoint, tell: Tell, *, proxy: str | None = None) -> None:
        self._tell = tell
        self.proxy = proxy
        """The only network access of Python inside Spark: `http://USER:PASSWORD@HOST:PORT`; None if unrestricted."""

        self._tellers: list[Teller] = []
        self.spark: SparkSession = _session(where, self._explain)
        self.spark.registerProgressHandler(self._progress)

    def log(self, text: str, level: str = "info") -> None:
        """Append a line to the run's log. Never log a secret."""
        self._tell({"log": [level, text]})

    def explains(self, teller: Teller) -> None:
        """Register a function that provides messages for errors inside Spark; it is called for each cause."""
        self._tellers.append(teller)

    def _explain(self, cause: Cause) -> Exception | None:
        return next((error for teller in self._tellers if (error := teller(cause)) is not None), None)

    def _progress(self, stages: Any, inflight_tasks: int, operation_id: Any, done: bool) -> None:
        told = [
            [value.stage_id, value.num_completed_tasks, value.num_tasks, value.num_bytes_read, value.done]
            for value in stages or ()
        ]
        if told:
            self._tell({"progress": told})


def _session(where: SparkEndpoint, own: Teller) -> "SparkSession":
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL + 1)
    from pyspark.sql.connect.session import SparkSession as ConnectSession

    spark: Any = ConnectSession.builder.channelBuilder(_channel(where)).create()
    client = spark.client
    proto = messages()

    def details(error_id: str) -> Any:
        context = proto.UserContext(user_id=USER)
        asked = proto.FetchErrorDetailsRequest(session_id=where.session, user_context=context, error_id=error_id)
        return client._stub.FetchErrorDetails(asked, timeout=QUICK_SECONDS)  # noqa: SLF001

    def handle(error: Exception) -> None:
        # PySpark's own exception shows only the outermost cause, with Spark's internals.
        raise failures.translate(error, details, own) from None

    client._handle_rpc_error = handle  # noqa: SLF001
    # Files of runs are local, even if Spark has another default file system.
    configs = {**conf.acting(where.token, where.time_zone), "fs.defaultFS": "file:///"}
    spark.conf._set_all(configs=configs, silent=False)  # noqa: SLF001
    return spark  # type: ignore[no-any-return]


def _channel(where: SparkEndpoint) -> Any:
    from pyspark.sql.connect.client import ChannelBuilder, DefaultChannelBuilder

    class Unix(ChannelBuilder):
        """Connects to a Unix socket."""

        def toChannel(self) -> Any:  # noqa: N802 - PySpark's name
            return self._insecure_channel(f"unix:{where.socket}")

        @property
        def host(self) -> str:
            return "localhost"

    result = Unix() if where.socket is not None else DefaultChannelBuilder(where.url or "")
    result.set(ChannelBuilder.PARAM_SESSION_ID, where.session)
    result.set(ChannelBuilder.PARAM_USER_ID, USER)
    return result
