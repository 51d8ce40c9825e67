"""A client of the Spark Connect protocol: sessions, statements, interruption. The only module that uses its messages.

pyspark's own client is unsuitable: it keeps every session until the process ends, stops the releases of all sessions
when one is closed, queries the server again after each error, and retries for minutes when the server is gone.
"""

import logging
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from headgate.execution.spark.errors import SparkUnavailable

if TYPE_CHECKING:
    from headgate.execution.spark.server import Address

USER = "headgate"
QUICK_SECONDS = 60
"""Timeout of calls that execute no statement."""

_OPTIONS = (
    ("grpc.max_send_message_length", 128 << 20),
    ("grpc.max_receive_message_length", 128 << 20),
    ("grpc.enable_retries", 0),
    # Servers close a connection with keepalives more often than every five minutes.
    ("grpc.keepalive_time_ms", 310_000),
    ("grpc.keepalive_timeout_ms", 20_000),
)
_CHUNK_BYTES = 4 << 20
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Arguments = Mapping[str, datetime | str | int]
"""Parameter values by name, used as `:name` in a statement. Times are time-zone aware."""


def messages() -> Any:
    """The protobuf messages of the protocol."""
    # It logs whole stack traces of members' errors.
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL + 1)
    from pyspark.sql.connect import proto

    return proto


class Connection:
    """A channel to a server, shared by all its sessions."""

    def __init__(self, channel: Any) -> None:
        self.proto = messages()
        self.stub = self.proto.SparkConnectServiceStub(channel)
        self._channel = channel
        self._calls: set[Any] = set()
        self._lock = threading.Lock()
        self._down: str | None = None
        self.doubtful = False
        """Whether the server failed to respond to a call; the owner of the connection checks the server."""
        self.ran_out_of_memory: Callable[[], bool] = lambda: False
        """Called after the server is gone, to find out whether it ran out of memory."""

    @classmethod
    def to(cls, address: "Address") -> "Connection":
        """A connection to a server on this machine."""
        import grpc  # noqa: PLC0415 - heavy

        if address.socket is not None:
            return cls(grpc.insecure_channel(f"unix:{address.socket}", options=_OPTIONS))
        # Without TLS, a token is sent only to this host name.
        return cls.by_url(f"sc://localhost:{address.port}/;token={address.token}")

    @classmethod
    def by_url(cls, url: str) -> "Connection":
        """A connection to a remote server (`sc://HOST:PORT/;token=…;use_ssl=true`)."""
        from pyspark.sql.connect.client import DefaultChannelBuilder

        return cls(DefaultChannelBuilder(url, list(_OPTIONS)).toChannel())

    def fail(self, detail: str) -> None:
        """Fail every call at once, because the server is gone."""
        with self._lock:
            self._down = self._down or detail
            calls = list(self._calls)
        for call in calls:
            call.cancel()

    def check(self) -> None:
        """Raise SparkUnavailable if the server is gone."""
        if self._down is not None:
            raise SparkUnavailable(self._down)

    def close(self) -> None:
        """Close the channel."""
        self.fail("The connection to Spark was closed")
        self._channel.close()

    def quick(self, method: str, request: Any) -> Any:
        """A call that executes no statement."""
        return self.call(getattr(self.stub, method).future(request, timeout=QUICK_SECONDS)).result()

    def call(self, call: Any) -> Any:
        """A call that `fail` aborts."""
        with self._lock:
            self._calls.add(call)
            self._calls -= {call for call in self._calls if call.done()}
        if self._down is not None:
            call.cancel()
            self.check()
        return call


class Session:
    """A session on the server. It raises gRPC errors; see `failures`."""

    def __init__(self, connection: Connection) -> None:
        self._connection, self._proto = connection, connection.proto
        self._stream: Any = None
        self.id = str(uuid.uuid4())

    def configure(self, values: dict[str, str]) -> None:
        """Set configuration values of the session, which also creates it."""
        proto = self._proto
        pairs = [proto.KeyValue(key=key, value=value) for key, value in values.items()]
        operation = proto.ConfigRequest.Operation(set=proto.ConfigRequest.Set(pairs=pairs))
        self._connection.quick("Config", self._request(proto.ConfigRequest, operation=operation))

    def execute(self, sql: str, operation: str, most: int | None, args: Arguments | None = None) -> Iterator[Any]:
        """The responses to a statement, executed once, with a row limit. Closing the iterator releases the
        statement.
        """
        proto = self._proto
        options = [
            proto.ExecutePlanRequest.RequestOption(reattach_options=proto.ReattachOptions(reattachable=True)),
            proto.ExecutePlanRequest.RequestOption(
                result_chunking_options=proto.ResultChunkingOptions(
                    allow_arrow_batch_chunking=True, preferred_arrow_chunk_size=_CHUNK_BYTES
                )
            ),
        ]
        # Sent as a relation instead of a command, so that a query is analysed once and a command is still executed
        # once.
        request = self._request(
            proto.ExecutePlanRequest, operation_id=operation, plan=self._plan(sql, most, args), request_options=options
        )
        self._stream = stream = self._connection.call(self._connection.stub.ExecutePlan(request))
        last = None
        try:
            while True:
                for answer in stream:
                    last = answer.response_id
                    if answer.HasField("result_complete"):
                        return
                    yield answer
                # The server ends a stream after two minutes and expects a request for the rest.
                self._stream = stream = self._connection.call(self._again(operation, last))
        finally:
            stream.cancel()
            self._let_go(operation)

    def analyse(self, sql: str, args: Arguments | None = None) -> Any:
        """The schema of a query, without executing it."""
        proto = self._proto
        schema = proto.AnalyzePlanRequest.Schema(plan=self._plan(sql, None, args))
        return self._connection.quick("AnalyzePlan", self._request(proto.AnalyzePlanRequest, schema=schema)).schema

    def interrupt(self, operation: str) -> bool:
        """Cancel a statement; returns whether the server knew it."""
        proto = self._proto
        kind = proto.InterruptRequest.InterruptType.INTERRUPT_TYPE_OPERATION_ID
        request = self._request(proto.InterruptRequest, interrupt_type=kind, operation_id=operation)
        return bool(self._connection.quick("Interrupt", request).interrupted_ids)

    def abandon(self) -> None:
        """Stop waiting for the statement, whatever the server does with it."""
        if self._stream is not None:
            self._stream.cancel()

    def error_details(self, error_id: str) -> Any:
        """The server's details of an error."""
        request = self._request(self._proto.FetchErrorDetailsRequest, error_id=error_id)
        return self._connection.quick("FetchErrorDetails", request)

    def release(self) -> None:
        """Free the session and cancel its statements."""
        self._connection.quick("ReleaseSession", self._request(self._proto.ReleaseSessionRequest))

    def _plan(self, sql: str, most: int | None, args: Arguments | None) -> Any:
        proto = self._proto
        named = {name: self._argument(value) for name, value in (args or {}).items()}
        result = proto.Relation(sql=proto.SQL(query=sql, named_arguments=named))
        if most is not None:
            # A partition of a result is held in memory: without a limit, one statement could crash the server.
            result = proto.Relation(limit=proto.Limit(input=result, limit=most))
        return proto.Plan(root=result)

    def _argument(self, value: datetime | str | int) -> Any:
        """A parameter value of a statement; it is never inserted into the SQL text."""
        literal = self._proto.Expression.Literal
        if isinstance(value, datetime):
            result = literal(timestamp=(value - _EPOCH) // timedelta(microseconds=1))
        else:
            result = literal(string=value) if isinstance(value, str) else literal(long=value)
        return self._proto.Expression(literal=result)

    def _again(self, operation: str, last: str | None) -> Any:
        request = self._request(self._proto.ReattachExecuteRequest, operation_id=operation, last_response_id=last)
        return self._connection.stub.ReattachExecute(request)

    def _let_go(self, operation: str) -> None:
        release_all = self._proto.ReleaseExecuteRequest.ReleaseAll()
        request = self._request(self._proto.ReleaseExecuteRequest, operation_id=operation, release_all=release_all)
        with suppress(ValueError):  # the connection is closed, so there is nothing to release
            self._connection.stub.ReleaseExecute.future(request, timeout=QUICK_SECONDS)

    def _request(self, kind: Callable[..., Any], **fields: Any) -> Any:
        context = self._proto.UserContext(user_id=USER)
        return kind(session_id=self.id, user_context=context, client_type="headgate", **fields)
