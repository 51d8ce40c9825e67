"""The Spark of the platform's own steps: started on first use, stopped when idle. It never runs members' SQL.

A step that needs PySpark's DataFrames is a function that runs in a separate process:

    # execution/sources/land.py
    def land(arguments: dict[str, Any], step: Step) -> dict[str, Any]:
        rows = step.spark.read.format("jdbc")…      # a session by PySpark's own client, with the run's token
        step.log("what a member may read in the run's log")
        raise StepFailed("CODE", "why, and what to do", passing=True)    # or return what json.dumps takes

    # execution/steps/land.py
    found = context.platform.call("headgate.execution.sources.land:land", arguments, context, hosts=[("db", 5432)])

`arguments` must be JSON-serializable and may contain secrets, which are passed only through standard input. `hosts` are
the only outside addresses that the call can reach, validated like all outgoing calls. Spark's progress goes to
`context.progress`, log lines to `context.log`. When the run is to end, the process is killed, Spark stops, and `call`
raises RunStopped. StepFailed, SqlFailed, StatementRefused and SparkUnavailable are passed on. If the process dies,
`call` raises a StepFailed that may be retried.

Errors inside Spark reach the function as SqlFailed, StatementRefused or SparkUnavailable, never as PySpark's own
exceptions. `step.explains` adds messages for errors of a driver or a reader.
"""

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import httpcore2

from headgate.execution.spark import conf, platform_environment, step_processes
from headgate.execution.spark.connect import Connection, Session
from headgate.execution.spark.error_codes import SOURCE_DOWN
from headgate.execution.spark.errors import SparkUnavailable, SqlFailed
from headgate.execution.spark.failures import UNKNOWN
from headgate.execution.spark.isolated import IsolatedPlatform
from headgate.execution.spark.local import local_server
from headgate.execution.spark.server import LocalServer
from headgate.execution.spark.session import SqlSession
from headgate.execution.spark.step_processes import StepProcess
from headgate.execution.steps.context import Context, StepFailed
from headgate.kit.call_errors import CallRefused, OutgoingError
from headgate.kit.file_ownership import give
from headgate.kit.log import get_logger
from headgate.outgoing.proxy import Egress, ProxyTicket
from headgate.settings.settings import Settings

IDLE_SECONDS = 600
_log = get_logger("headgate.engine")


class PlatformSpark:
    """The Connect server for the platform's steps, on loopback with its own key, or at `spark.platform_url`."""

    def __init__(self, settings: Settings, catalog_url: str, *, idle_seconds: float = IDLE_SECONDS) -> None:
        self._settings, self._catalog_url, self._idle_seconds = settings, catalog_url, idle_seconds
        self._lock = threading.RLock()
        self._server: LocalServer | None = None
        self._egress: Egress | None = None
        self._connection: Connection | None = None
        self._sessions = 0
        self._idle: threading.Timer | None = None
        self._spare = step_processes.SpareProcess()
        self._children: set[StepProcess] = set()
        self._turn = threading.Lock()

    def state(self) -> dict[str, Any]:
        """The state of the server, for operators."""
        server = self._server
        return {"up": self._up(), "pid": server.pid if server else None, "sessions": self._sessions}

    def open(self, token: str, *, time_zone: str = "UTC", max_rows: int = 1 << 30) -> SqlSession:
        """A session with the rights of this token. Starts the server if it is not running; raises SparkUnavailable."""
        session = SqlSession(self._opened(), max_rows, self._closed)
        try:
            session.configure(conf.acting(token, time_zone))
        except BaseException:
            session.close()
            raise
        return session

    def call(
        self, function: str, arguments: dict[str, Any], context: Context, *, hosts: Sequence[tuple[str, int]] = ()
    ) -> dict[str, Any]:
        """Call a function in a separate process with the run's token; see the module."""
        context.check_stopped()
        if self._settings.spark.platform_url is not None:
            # PySpark's own client retries for minutes if there is no server.
            self.open(context.job.token).close()
        connection = self._opened()
        if self._server is not None and self._server.sandboxed:
            give(self._settings.spark.sandbox_uid, context.folder)
        try:
            with self._admitted(hosts) as ticket:
                request = {"function": function, "arguments": arguments, "proxy": self._proxy(ticket)}
                return self._called(request, connection, context)
        finally:
            self._closed()

    @contextmanager
    def alone(self) -> "Iterator[PlatformSpark | IsolatedPlatform]":
        """A server for a run that may have crashed this one; a remote server has no alternative."""
        if self._settings.spark.platform_url is not None:
            yield self
            return
        own = IsolatedPlatform(lambda: PlatformSpark(self._settings, self._catalog_url), self._turn)
        try:
            yield own
        finally:
            own.close()

    def close(self) -> None:
        """Stop the server with all its sessions."""
        with self._lock:
            if self._idle is not None:
                self._idle.cancel()
            self._drop()

    @contextmanager
    def _admitted(self, hosts: Sequence[tuple[str, int]]) -> Iterator[ProxyTicket]:
        """Admit a call to its hosts; a refused connection becomes the reason of its failure."""
        egress = self._egress or platform_environment.egress(self._settings, self._catalog_url)
        ticket: ProxyTicket | None = None
        try:
            with egress.admit(hosts) as ticket:
                yield ticket
        except CallRefused as error:
            raise StepFailed("ADDRESS_REFUSED", str(error)) from None
        except (OutgoingError, httpcore2.TimeoutException) as error:
            raise StepFailed(
                "UNREACHABLE", str(error) or "A host name could not be resolved in time", passing=True
            ) from None
        except (StepFailed, SqlFailed) as error:
            if ticket is not None and ticket.refused:
                raise StepFailed("ADDRESS_REFUSED", ticket.refused[0]) from None
            if ticket is not None and ticket.failed and error.code in (SOURCE_DOWN, UNKNOWN.code):
                raise StepFailed("UNREACHABLE", ticket.failed[-1], passing=True) from None
            raise

    def _proxy(self, ticket: ProxyTicket) -> str | None:
        port = self._server.way_out if self._server is not None else None
        return f"http://{ticket.user}:{ticket.password}@127.0.0.1:{port}" if port else None

    def _called(self, request: dict[str, Any], connection: Connection, context: Context) -> dict[str, Any]:
        session = Session(connection)
        child = self._spare.take()
        try:
            self._children.add(child)
            self._spare.ready()
            return self._asked(child, request | {"where": self._where(session, context)}, connection, context)
        finally:
            self._children.discard(child)
            child.end()
            _free(session)

    def _asked(
        self, child: StepProcess, request: dict[str, Any], connection: Connection, context: Context
    ) -> dict[str, Any]:
        def told(line: dict[str, Any]) -> None:
            if "log" in line:
                level, text = line["log"]
                context.log(text, level)
            elif "progress" in line:
                context.progress(step_processes.progress(line["progress"]))

        try:
            with context.on_stop(child.kill):
                answer = child.ask(request, told)
            return step_processes.outcome(answer, context.job.id)
        except SparkUnavailable as error:
            context.check_stopped()
            error.out_of_memory = connection.ran_out_of_memory()
            raise
        except step_processes.ProcessLost:
            context.check_stopped()
            _check(connection)
            raise StepFailed("STEP_LOST", step_processes.LOST, passing=True) from None
        except Exception:
            # Whatever the error inside looks like, the cause is that the run was stopped or Spark is gone.
            context.check_stopped()
            _check(connection)
            raise

    def _where(self, session: Session, context: Context) -> dict[str, Any]:
        values: dict[str, Any] = {"session": session.id, "token": context.job.token, "time_zone": context.job.time_zone}
        if self._server is None:
            return values | {"url": self._settings.spark.platform_url}
        address = self._server.address
        if address.socket is not None:
            return values | {"socket": address.socket}
        return values | {"url": f"sc://localhost:{address.port}/;token={address.token}"}

    def _opened(self) -> Connection:
        """The connection to the server, which is started if necessary; reference-counted until `_closed`."""
        with self._lock:
            if not self._up():
                self._begin()
            if self._idle is not None:
                self._idle.cancel()
            if self._connection is None:
                raise SparkUnavailable("Spark is not running")
            self._sessions += 1
            return self._connection

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
        beside = platform_environment.for_platform(self._settings, self._catalog_url)
        self._egress = beside.egress
        server = local_server("platform", self._settings, confs, beside)
        address = server.start(self._ended)
        self._server, self._connection = server, Connection.to(address)
        self._connection.ran_out_of_memory = server.ran_out_of_memory
        _log.info("the platform's Spark has started", seconds=round(time.monotonic() - began, 1))

    def _ended(self) -> None:
        connection = self._connection
        if connection is not None and not self._up():
            connection.fail("Spark ended during the step")
            for child in list(self._children):
                child.kill()

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
        egress, self._egress = self._egress, None
        self._spare.end()
        if connection is not None:
            connection.close()
        if server is not None:
            server.stop()
        if egress is not None:
            egress.close()


def _check(connection: Connection) -> None:
    """Raise SparkUnavailable if the server is gone, with whether it ran out of memory."""
    try:
        connection.check()
    except SparkUnavailable as error:
        error.out_of_memory = connection.ran_out_of_memory()
        raise


def _free(session: Session) -> None:
    """Free a session on the server and cancel its statements; the client's end does not cancel them."""
    from grpc import RpcError  # noqa: PLC0415 - heavy

    with suppress(RpcError, SparkUnavailable):
        session.release()
