"""The database: SQLite on one host by default, PostgreSQL by URL.

A read is one snapshot. A write holds the only writer's place (SQLite) or is serializable and repeated when it met
another one (PostgreSQL), so that work which decides and then changes never acts on what has gone stale.
"""

import json
import re
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import DBAPIError, DisconnectionError
from sqlalchemy.pool import QueuePool, StaticPool

from headgate.kit.backoff import full_jitter
from headgate.kit.errors import is_disk_full

T = TypeVar("T")

MAX_ATTEMPTS = 25
FIRST_PAUSE, LONGEST_PAUSE = 0.005, 0.2
BUSY_TIMEOUT = 10.0
PING_AFTER = 1.0
_WRITE = "headgate_write"
_IDLE_SINCE = "headgate_idle_since"
_RETRYABLE = frozenset({"40001", "40P01"})
_FULL = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_SHMSIZE})
"""What SQLite says of a full disk; the second if the index of its log finds no room."""
_PARAMETER = re.compile(r"(?<![:\w]):([a-z_][a-z0-9_]*)")


class Busy(Exception):
    """The database could not serve a write in time; retry the request."""


class Database:
    """Connections and transactions on one database."""

    def __init__(self, url: str, *, pool_size: int = 20) -> None:
        parsed = make_url(url)
        self.dialect = parsed.get_backend_name()
        self._turn = threading.Lock()
        if self.dialect == "sqlite":
            self._engine = _sqlite(parsed.database, url, pool_size)
            self._reader = self._engine
            self._writer = self._engine.execution_options(**{_WRITE: True})
            self._peeker = self._engine
        elif self.dialect == "postgresql":
            self._engine = _postgresql(parsed, pool_size)
            self._reader = self._engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
            self._writer = self._engine.execution_options(isolation_level="SERIALIZABLE")
            self._peeker = self._engine.execution_options(isolation_level="AUTOCOMMIT")
        else:
            raise ValueError(f"{self.dialect} is not supported; use an sqlite:// or postgresql:// URL")

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A read-only transaction with one snapshot."""
        with self._reader.connect() as connection:
            connection.begin()
            try:
                yield connection
            finally:
                connection.rollback()

    @contextmanager
    def peek(self) -> Iterator[Connection]:
        """Statements by themselves, each of which sees the newest state. For `fetch` only."""
        with self._peeker.connect() as connection:
            yield connection

    @property
    def is_in_process(self) -> bool:
        """Whether a bounded read takes microseconds: then a thread costs more than it saves."""
        return self.dialect == "sqlite"

    def write(self, work: Callable[[Connection], T], *, in_turn: bool = False) -> T:
        """Do the work in one transaction and commit it; it is repeated whole if it met another write.

        Work that would nearly always meet its like waits for its turn among that of this process. On SQLite all does:
        whoever waits there sleeps, and others come first.
        """
        for attempt in range(MAX_ATTEMPTS):
            try:
                with (
                    self._taking_turns(in_turn=in_turn),
                    self._writer.connect() as connection,
                    connection.begin(),
                ):
                    return work(connection)
            except Exception as error:
                if not _is_conflict(error):
                    raise
                if attempt == MAX_ATTEMPTS - 1:
                    raise Busy from error
                time.sleep(full_jitter(attempt, FIRST_PAUSE, LONGEST_PAUSE))
        raise Busy

    @contextmanager
    def _taking_turns(self, *, in_turn: bool) -> Iterator[None]:
        if not in_turn and self.dialect != "sqlite":
            yield
            return
        if not self._turn.acquire(timeout=BUSY_TIMEOUT * MAX_ATTEMPTS):
            raise Busy
        try:
            yield
        finally:
            self._turn.release()

    def keep_option(self, name: str, value: Any) -> None:
        """Set an execution option of every connection."""
        for engine in (self._engine, self._reader, self._writer, self._peeker):
            engine.update_execution_options(**{name: value})

    @property
    def engine(self) -> Engine:
        """The engine, for migrations."""
        return self._engine

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()


def _sqlite(path: str | None, url: str, pool_size: int) -> Engine:
    in_memory = not path or path == ":memory:"
    if path and not in_memory:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
    arguments = {"check_same_thread": False, "timeout": BUSY_TIMEOUT, "cached_statements": 512}
    engine = (
        create_engine(url, connect_args=arguments, poolclass=StaticPool)
        if in_memory
        else create_engine(
            url, connect_args=arguments, poolclass=QueuePool, pool_size=pool_size, max_overflow=pool_size
        )
    )

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _: Any) -> None:
        connection.isolation_level = None
        for pragma in (
            "journal_mode = WAL",
            "foreign_keys = ON",
            "synchronous = FULL",
            "cache_size = -65536",
        ):
            connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        write = connection.get_execution_options().get(_WRITE)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")

    return engine


def _postgresql(url: URL, pool_size: int) -> Engine:
    engine = create_engine(
        url.set(drivername="postgresql+psycopg"),
        pool_size=pool_size,
        max_overflow=0,
        connect_args={
            "options": "-c plan_cache_mode=force_generic_plan -c jit=off -c random_page_cost=1.1 -c timezone=UTC"
        },
    )

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _: Any) -> None:
        # Rule tables make a bounded number of long statements, whose planning costs more than their execution.
        connection.prepare_threshold, connection.prepared_max = 2, 1000

    @event.listens_for(engine, "checkin")
    def note(_: Any, record: Any) -> None:
        record.info[_IDLE_SINCE] = time.monotonic()

    @event.listens_for(engine, "checkout")
    def check(connection: Any, record: Any, _: Any) -> None:
        """Replace broken connections; idle ones are tested first."""
        moment = time.monotonic()
        if moment - record.info.get(_IDLE_SINCE, moment) > PING_AFTER:
            with suppress(engine.dialect.loaded_dbapi.Error):
                engine.dialect.do_ping(connection)
        if connection.closed:
            raise DisconnectionError

    return engine


def _cause(error: Exception) -> BaseException:
    """The driver's own error: SQLAlchemy wraps those of its statements, `fetch` and `execute` pass theirs on."""
    return error.orig if isinstance(error, DBAPIError) and error.orig is not None else error


def _is_conflict(error: Exception) -> bool:
    cause = _cause(error)
    code = getattr(cause, "sqlstate", None)
    return code in _RETRYABLE or (isinstance(cause, sqlite3.OperationalError) and "locked" in str(cause))


def is_out_of_reach(error: Exception) -> bool:
    """Whether an error means that the database cannot be reached, rather than that we asked for nonsense."""
    cause = _cause(error)
    if not type(cause).__module__.startswith("psycopg"):
        return False
    code = getattr(cause, "sqlstate", None)
    return type(cause).__name__ in {"OperationalError", "InterfaceError"} or bool(code and code[:2] in {"08", "57"})


def is_full(error: Exception) -> bool:
    """Whether an error means that a disk is full."""
    cause = _cause(error)
    return (
        is_disk_full(cause)
        or getattr(cause, "sqlite_errorcode", None) in _FULL
        or getattr(cause, "sqlstate", None) == "53100"
    )


def passes(error: Exception) -> bool:
    """Whether an error of the database is transient."""
    return isinstance(error, Busy) or is_out_of_reach(error) or is_full(error)


def may_be_kept(error: Exception) -> bool:
    """Whether a transaction may be there in spite of this error of a full disk.

    SQLite writes the log first and its index then: without room for that, all is lost unless every process dies now.
    """
    return getattr(_cause(error), "sqlite_errorcode", None) == sqlite3.SQLITE_IOERR_SHMSIZE


@cache
def _for_psycopg(text: str) -> str:
    return _PARAMETER.sub(r"%(\1)s", text.replace("%", "%%"))


def fetch(connection: Connection, text: str, parameters: Mapping[str, Any]) -> Sequence[Any]:
    """Rows of a statement with `:name` parameters, straight from the driver: for the paths that must be fast."""
    raw: Any = connection.connection.driver_connection
    if connection.dialect.name == "sqlite":
        return raw.execute(text, parameters).fetchall()  # type: ignore[no-any-return]
    return raw.execute(_for_psycopg(text), parameters).fetchall()  # type: ignore[no-any-return]


def execute(connection: Connection, text: str, parameters: Mapping[str, Any]) -> int:
    """Run a statement with `:name` parameters directly on the driver; return the number of changed rows."""
    raw: Any = connection.connection.driver_connection
    statement = text if connection.dialect.name == "sqlite" else _for_psycopg(text)
    return raw.execute(statement, parameters).rowcount  # type: ignore[no-any-return]


def bound(connection: Connection, instant: datetime) -> Any:
    """An instant as a parameter of the driver."""
    return stored(instant) if connection.dialect.name == "sqlite" else instant


def stored(instant: datetime) -> str:
    """An instant in SQLite's text format."""
    return instant.astimezone(UTC).replace(tzinfo=None).isoformat(" ", "microseconds")


def instant(value: Any) -> datetime:
    """An instant from a value of either driver."""
    if isinstance(value, str):
        # Parsed with its zone at once: `replace` costs more than the parsing.
        return datetime.fromisoformat(f"{value}+00:00")
    return value.astimezone(UTC)  # type: ignore[no-any-return]


def among(connection: Connection, column: str, name: str) -> str:
    """An SQL condition: the column is one of the values bound as `:name` (see `many`)."""
    if connection.dialect.name == "sqlite":
        return f"{column} IN (SELECT je.value FROM json_each(:{name}) je)"
    return f"{column} = ANY(:{name})"


def many(connection: Connection, values: Sequence[str]) -> Any:
    """The parameter of `among`."""
    if connection.dialect.name == "sqlite":
        return json.dumps(list(values))
    return list(values)
