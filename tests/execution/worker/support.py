"""A server on a port, and an engine that stands in for Spark where only the life of a statement is tried."""

import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from starlette.testclient import TestClient

from headgate.execution.spark.errors import CANCELED, TIME_LIMIT, SparkUnavailable, SqlFailed, StatementRefused
from headgate.execution.spark.member import StageProgress, StatementProgress
from headgate.execution.worker.job_loop import JobLoop
from headgate.execution.worker.run_execution import RunHandler
from headgate.execution.worker.server_link import Link
from headgate.execution.worker.worker import Worker
from headgate.kit.database import Database
from headgate.kit.ids import new_id
from tests.lakehouse.sql.support import STATEMENTS
from tests.support import serving
from tests.support.apps import app_for
from tests.support.company import Company


@contextmanager
def served(millrace: Company) -> Iterator[str]:
    """The company's server on a port of its own; its address."""
    url = millrace.database.engine.url.render_as_string(hide_password=False)
    app = app_for(millrace.settings, Database(url.replace("+psycopg", "")))
    # FastAPI puts its routes together at the first request, and silences warnings for all threads meanwhile.
    for one in (millrace.client, TestClient(app)):
        assert one.get("/nowhere").status_code == 404
    with serving.served(app) as port:
        yield f"http://127.0.0.1:{port}"
        app.state.services.watch.close()


def port_of(address: str) -> int:
    """The port of an address."""
    return int(address.rpartition(":")[2])


class StandIn:
    """Knows `rows N`, `sleep SECONDS`, `fail CODE`, `refuse`, `die`, `hang ROWS` and `meet N`. Counts what is open.

    What hangs ends when `over` is set; who meets waits until as many have come as `meeting` is for.
    """

    def __init__(
        self, *, is_down: bool = False, is_quick: bool = False, meeting: threading.Barrier | None = None
    ) -> None:
        self.is_down, self.is_quick, self.lock = is_down, is_quick, threading.Lock()
        self.over, self.meeting = threading.Event(), meeting or threading.Barrier(1)
        self.open_now = self.open_most = self.closed = 0
        self.ran: list[str] = []
        self.isolated: Any = self

    @contextmanager
    def alone(self) -> Iterator["StandIn"]:
        yield self

    def ensure(self) -> None:
        if self.is_down:
            raise SparkUnavailable("no Java here, said the operator's log")

    def state(self) -> dict[str, Any]:
        return {"up": not self.is_down}

    def close(self) -> None:
        self.closed += 1

    def open(self, token: str, **_: Any) -> "Session":
        assert token.startswith("hgw_")
        with self.lock:
            self.open_now += 1
            self.open_most = max(self.open_most, self.open_now)
        return Session(self)


@dataclass
class Answer:
    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]


class Session:
    def __init__(self, spark: StandIn) -> None:
        self.spark, self.stopped = spark, threading.Event()

    def run(
        self, sql: str, on_progress: Callable[[StatementProgress], None], *, seconds: float, max_rows: int
    ) -> Answer:
        self.spark.ran.append(sql)
        word, _, value = sql.partition(" ")
        if word == "die":
            raise SparkUnavailable("it died")
        if word == "refuse":
            raise StatementRefused("not here")
        if word == "fail":
            raise SqlFailed(value, "because")
        if word == "hang":
            assert self.spark.over.wait(120)
        if word == "meet":
            self.spark.meeting.wait(60)
        if word == "sleep":
            on_progress(StatementProgress([StageProgress(1, 1, 2, 5, done=False)], 1, 2, 5))
            wanted = 0.0 if self.spark.is_quick else float(value)
            if self.stopped.wait(min(wanted, seconds)):
                raise SqlFailed(CANCELED, "stopped")
            if seconds < wanted:
                raise SqlFailed(TIME_LIMIT, "too long")
            return self._rows(1)
        return self._rows(min(int(re.sub(r"\D", "", value) or 0), max_rows))

    @staticmethod
    def _rows(count: int) -> Answer:
        schema = pa.schema([("n", pa.int64())])
        step = 700
        batches = (
            pa.record_batch([pa.array(range(begin, min(begin + step, count)))], schema=schema)
            for begin in range(0, count, step)
        )
        return Answer(schema, batches)

    def interrupt(self) -> None:
        self.stopped.set()

    def close(self) -> None:
        with self.spark.lock:
            self.spark.open_now -= 1


@contextmanager
def working(millrace: Company, address: str, spark: Any, *, slots: int = 4) -> Iterator[Worker]:
    """A worker in a thread, stopped at the end."""
    secret = millrace.client.app.state.services.worker_secret  # type: ignore[attr-defined]
    worker = Worker(address, secret, spark, slots=slots, prewarm=False)
    thread = threading.Thread(target=worker.run, daemon=True)
    thread.start()
    try:
        yield worker
    finally:
        worker.stop()
        thread.join(timeout=60)
        assert not thread.is_alive()


@contextmanager
def running(millrace: Company, folder: Path) -> Iterator[None]:
    """The company's server, and a worker that has runs, whose steps need no Spark."""
    secret = millrace.client.app.state.services.worker_secret  # type: ignore[attr-defined]
    with served(millrace) as address:
        link = Link(address, secret, new_id("worker"), "here")
        runs = JobLoop(link, [RunHandler(link, millrace.settings, folder, StandIn(), StandIn())])
        runs.start()
        try:
            yield
        finally:
            runs.stop()
            link.close()


def done(millrace: Company, member: str, statement: str, seconds: float = 60) -> Any:
    """A statement when it is over."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = millrace.as_(member).get(f"{STATEMENTS}/{statement}", wait=5).json()
        if found["state"] in {"succeeded", "failed", "cancelled"}:
            return found
    raise AssertionError(found)
