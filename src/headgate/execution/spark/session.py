"""A member's session: executes statements, streams their rows, reports progress, and cancels them."""

import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from headgate.execution.spark import failures
from headgate.execution.spark.connect import Arguments, Connection, Session
from headgate.execution.spark.errors import SparkUnavailable, SqlFailed, StatementRefused, too_long

if TYPE_CHECKING:
    import pyarrow as pa

STUCK_SECONDS = 10
"""Maximum time for a cancelled statement to stop."""

CANARY = "SET"
"""A statement that every guard refuses."""

ORIGINS = "headgate.origins"
"""The setting that makes the guard add column origins to the metadata of a query's columns."""

CONVERTED = "headgate.type"
"""The metadata key with the SQL type of a column that the guard converted to text: an interval, VARIANT."""


@dataclass(frozen=True)
class StageProgress:
    """The progress of a stage as reported by Spark."""

    id: int
    tasks_done: int
    tasks_total: int
    bytes_read: int
    done: bool


@dataclass(frozen=True)
class StatementProgress:
    """The progress of a statement."""

    stages: list[StageProgress] = field(default_factory=list)
    tasks_done: int = 0
    tasks_total: int = 0
    bytes_read: int = 0


@dataclass(frozen=True)
class StatementResult:
    """The result of a statement. Batches are streamed; a reader that stops early must close them."""

    schema: "pa.Schema"
    batches: Iterator["pa.RecordBatch"]


@dataclass(frozen=True)
class Analysed:
    """The columns of a query, with the tables and columns that each is derived from."""

    schema: "pa.Schema"
    origins: tuple[tuple[tuple[str, str], ...], ...]


class SqlSession:
    """A session of one member, for one statement at a time."""

    def __init__(
        self,
        connection: Connection,
        most: int,
        on_close: Callable[[], None] = lambda: None,
        on_stuck: Callable[[], None] = lambda: None,
    ) -> None:
        self._session, self._connection = Session(connection), connection
        self._on_close, self._on_stuck = on_close, on_stuck
        self._most = most
        self._operation: str | None = None
        self._stopped: SqlFailed | None = None
        self._open = True

    def configure(self, values: dict[str, str]) -> None:
        """Set session configuration."""
        with self._told():
            self._session.configure(values)

    def run(
        self,
        sql: str,
        on_progress: Callable[[StatementProgress], None] | None = None,
        *,
        seconds: float | None = None,
        max_rows: int | None = None,
        args: Arguments | None = None,
    ) -> StatementResult:
        """Execute a statement once. Returns with the first rows, or at the end.

        It is cancelled after `seconds`, if given. It returns at most `max_rows` rows; by default one more than the
        limit in the settings, so that the reader can detect more. `args` are the values of `:name` parameters. A
        session whose statement was cancelled executes no other.
        """
        if self._stopped is not None:
            raise self._stopped
        told = on_progress or (lambda _: None)
        batches = self._batches(sql, told, seconds, max_rows or self._most, args)
        try:
            first = next(batches)
        except StopIteration:
            import pyarrow as pa

            return StatementResult(pa.schema([]), iter(()))
        return StatementResult(first.schema, _after(first, batches))

    def schema(self, sql: str, args: Arguments | None = None) -> "pa.Schema":
        """The columns of a query, without running it."""
        return self._analyse(sql, args)[0]

    def analysed(self, sql: str, args: Arguments | None = None) -> Analysed:
        """The columns of a query and their lineage, without running it."""
        self.configure({ORIGINS: "true"})
        schema, metadata = self._analyse(sql, args)
        return Analysed(schema, tuple(map(_origins, metadata)))

    def _analyse(self, sql: str, args: Arguments | None) -> "tuple[pa.Schema, list[dict[str, Any]]]":
        """The columns and their metadata. A column that results contain only as text is an interval here."""
        import pyarrow as pa
        from pyspark.sql.connect.types import proto_schema_to_pyspark_data_type
        from pyspark.sql.pandas.types import to_arrow_schema

        with self._told():
            result = self._session.analyse(sql, args)
        struct: Any = proto_schema_to_pyspark_data_type(result.schema)
        schema, metadata = to_arrow_schema(struct), [field.metadata or {} for field in struct.fields]
        for number, value in enumerate(metadata):
            if CONVERTED in value:
                schema = schema.set(number, schema.field(number).with_type(pa.month_day_nano_interval()))
        return schema, metadata

    def interrupt(self) -> None:
        """Cancel the statement in Spark; call it from another thread."""
        self._stop(failures.STOPPED)

    def close(self) -> None:
        """Release the session on the server and cancel its statement."""
        if not self._open:
            return
        self._open = False
        try:
            with suppress(SparkUnavailable, SqlFailed, StatementRefused), self._told():
                self._session.release()
        finally:
            self._on_close()

    def _stop(self, reason: SqlFailed) -> None:
        self._stopped = reason
        operation = self._operation
        deadline = time.monotonic() + 5
        with suppress(SparkUnavailable, SqlFailed, StatementRefused), self._told():
            # A statement that was just sent may not have arrived.
            while operation is not None and self._operation == operation and time.monotonic() < deadline:
                if self._session.interrupt(operation):
                    break
                time.sleep(0.05)
        if operation is not None:
            late = threading.Timer(STUCK_SECONDS, self._give_up, [operation])
            late.daemon = True
            late.start()

    def _give_up(self, operation: str) -> None:
        """The statement did not stop: stop waiting, and notify the owner, who can end the server process."""
        if self._operation == operation:
            self._session.abandon()
            self._on_stuck()

    def _batches(
        self,
        sql: str,
        on_progress: Callable[[StatementProgress], None],
        seconds: float | None,
        most: int,
        args: Arguments | None,
    ) -> Iterator["pa.RecordBatch"]:
        self._operation = operation = str(uuid.uuid4())
        limit = threading.Timer(seconds, self._stop, [too_long(seconds)]) if seconds is not None else None
        if limit is not None:
            limit.daemon = True
            limit.start()
        ended = False
        try:
            with self._told():
                yield from _decoded(self._session.execute(sql, operation, most, args), on_progress)
            ended = True
        except (SqlFailed, StatementRefused, SparkUnavailable):
            ended = True
            raise
        finally:
            if limit is not None:
                limit.cancel()
            self._operation = None
            if not ended:
                # The reader needs no more rows, so Spark can stop.
                with suppress(SparkUnavailable, SqlFailed, StatementRefused), self._told():
                    self._session.interrupt(operation)

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Translate gRPC errors."""
        self._check()
        try:
            yield
        except (SqlFailed, StatementRefused):
            raise
        except SparkUnavailable as error:
            raise self._explained(error) from None
        except Exception as error:
            result = failures.translate(error, self._session.error_details)
            if self._stopped is not None and (result is failures.STOPPED or isinstance(result, SparkUnavailable)):
                raise self._stopped from None
            self._check()
            if isinstance(result, SparkUnavailable):
                self._connection.doubtful = True
                result = self._explained(result)
            if result is error:
                raise
            raise result from None

    def _check(self) -> None:
        try:
            self._connection.check()
        except SparkUnavailable as error:
            raise self._explained(error) from None

    def _explained(self, error: SparkUnavailable) -> SparkUnavailable:
        error.out_of_memory = self._connection.ran_out_of_memory()
        return error


def _origins(metadata: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    """The pairs that the guard wrote into a column's metadata."""
    told = metadata.get(ORIGINS) or []
    return tuple(zip(told[::2], told[1::2], strict=False))


def verify_guard(session: SqlSession) -> None:
    """Send a canary statement. A server that executes it has no guard and gets no other statement."""
    try:
        session.run(CANARY)
    except StatementRefused:
        return
    raise SparkUnavailable(
        "This Spark server has no guard: it ran a statement that the guard rejects. Configure it with the output "
        "of `headgate spark conf`"
    )


def _decoded(answers: Iterator[Any], on_progress: Callable[[StatementProgress], None]) -> Iterator["pa.RecordBatch"]:
    """The rows of the responses; a large batch arrives in parts."""
    import pyarrow as pa

    parts: list[bytes] = []
    try:
        for answer in answers:
            if answer.HasField("execution_progress") and answer.execution_progress.stages:
                on_progress(_progress(answer.execution_progress))
            if answer.HasField("arrow_batch"):
                parts.append(answer.arrow_batch.data)
                if len(parts) >= answer.arrow_batch.num_chunks_in_batch:
                    with pa.ipc.open_stream(b"".join(parts)) as reader:
                        parts.clear()
                        yield from reader
    finally:
        answers.close()  # type: ignore[attr-defined]


def _progress(told: Any) -> StatementProgress:
    stages = [
        StageProgress(stage.stage_id, stage.num_completed_tasks, stage.num_tasks, stage.input_bytes_read, stage.done)
        for stage in told.stages
    ]
    done, total = sum(stage.tasks_done for stage in stages), sum(stage.tasks_total for stage in stages)
    return StatementProgress(stages, done, total, sum(stage.bytes_read for stage in stages))


def _after(first: Any, rest: Iterator[Any]) -> Iterator[Any]:
    try:
        yield first
        yield from rest
    finally:
        rest.close()  # type: ignore[attr-defined]
