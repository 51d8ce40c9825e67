"""How fast do runs that do nothing go from the queue to their end? Beside Huey, which keeps its queue in SQLite too."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Connection, func, insert, select
from tests.support.installation import eventually
from tests.support.postgres import server

from benchmarks.harness import Row, Table, row, save
from benchmarks.product import product
from headgate.kit.clock import now
from headgate.kit.database import Database
from headgate.kit.ids import new_id
from headgate.lakehouse.models import table_ref_table
from headgate.pipelines.models import pipeline_definition_table, pipeline_table
from headgate.pipelines.runs import start as starting
from headgate.pipelines.runs.models import run_table
from headgate.platform.authorization.list_index import rebuild
from headgate.platform.authorization.lookup import Lookup
from headgate.platform.authorization.models import resource_table

RUNS = int(os.environ.get("RUNS", "1000"))
PIPELINES = 20
SLOTS = 8
ROUNDS = int(os.environ.get("ROUNDS", "5"))
GOAL = 50
NOTHING = {
    "kind": "source",
    "volume": "raw.invoices",
    "output_layer": "raw",
    "streams": [{"name": "orders.csv", "table": "orders", "enabled": False}],
}
"""What each run does: a source of which no stream is taken."""

_runs = run_table.c


# Ours: all of them begin to be due at one moment, and a worker takes them over HTTP


class Company:
    """An installation with pipelines that do nothing."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._pipelines = database.write(lambda connection: [_pipeline(connection) for _ in range(PIPELINES)])

    def drain(self) -> float:
        """Runs a second, from the first claim to the last end."""
        before = now()
        self._database.write(self._queue)
        eventually(lambda: self._left() == 0, seconds=600)
        with self._database.read() as connection:
            spans = select(func.min(_runs.started_at), func.max(_runs.ended_at), func.count())
            began, ended, count = connection.execute(
                spans.where(_runs.queued_at >= before, _runs.state == "succeeded")
            ).one()
        assert count == RUNS, f"{count} of {RUNS} runs succeeded"
        return float(RUNS / (ended - began).total_seconds())

    def _queue(self, connection: Connection) -> None:
        moment = now()
        for number in range(RUNS):
            what = starting.startable(connection, self._pipelines[number % PIPELINES])
            starting.start(connection, moment, what, starting.Start(by=what.acts_for))

    def _left(self) -> int:
        with self._database.read() as connection:
            return int(
                connection.execute(select(func.count()).where(_runs.state.in_(("queued", "running")))).scalar_one()
            )


def _pipeline(connection: Connection) -> str:
    lookup, moment = Lookup(connection), now()
    layer, member, own = lookup.of("layer", "raw"), lookup.of("member", "Tess"), new_id("pipeline")
    named = {"id": own, "kind": "pipeline", "namespace": "pipeline", "scope_id": "", "name": own, "name_key": own}
    times = {"created_at": moment, "updated_at": moment, "created_by_id": member}
    connection.execute(insert(resource_table).values(**named, **times))
    pipeline = {"id": own, "pipeline_kind": "source", "output_layer_id": layer, "acts_for_id": member}
    connection.execute(insert(pipeline_table).values(pipeline))
    definition = {"pipeline_id": own, "definition": NOTHING, "version": 1, "active": True, "failures": 0}
    connection.execute(insert(pipeline_definition_table).values(**definition, saved_at=moment, place_versions={}))
    ref = {"mode": "read", "ref": "raw.invoices", "item_id": lookup.of("volume", "raw.invoices"), "layer_id": layer}
    connection.execute(insert(table_ref_table).values(resource_id=own, **ref, enabled=True))
    rebuild(connection)
    return own


@contextmanager
def company(url: str | None) -> Iterator[Company]:
    """It runs, with one worker, as `headgate up` starts it."""
    settings = {"HEADGATE_LOG__LEVEL": "warning", "HEADGATE_RUNS__SLOTS": str(SLOTS)}
    with tempfile.TemporaryDirectory() as folder, product(Path(folder), url, spark=False, **settings) as one:
        one.fill()
        one.up()
        database = Database(one.url)
        try:
            yield Company(database)
        finally:
            database.close()


# Huey: as many threads, a task that does nothing

PEER = """
import sys, time
from huey import SqliteHuey
folder, count, slots = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
queue = SqliteHuey(filename=f"{folder}/huey.db", fsync=True)
ended = []
@queue.task()
def nothing():
    ended.append(time.perf_counter())
for _ in range(count):
    nothing()
consumer = queue.create_consumer(workers=slots, periodic=False, initial_delay=0.01)
began = time.perf_counter()
consumer.start()
while len(ended) < count:
    time.sleep(0.01)
print(count / (max(ended) - began), flush=True)
consumer.stop()
"""


def peer() -> float:
    """Tasks a second."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", PEER, folder, str(RUNS), str(SLOTS)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=True)
    return float(done.stdout.split()[-1])


def main() -> None:
    """In turns, on SQLite and on PostgreSQL."""
    found: dict[str, list[float]] = {"Headgate on SQLite": [], "Headgate on PostgreSQL": [], "Huey on SQLite": []}
    with company(None) as small, server(durable=True) as url, company(url) as large:
        for _ in range(ROUNDS):
            found["Headgate on SQLite"].append(small.drain())
            found["Headgate on PostgreSQL"].append(large.drain())
            found["Huey on SQLite"].append(peer())
            time.sleep(1)
    rows: list[Row] = [row(name, values, "runs/s") for name, values in found.items()]
    table = Table(f"{RUNS:,} queued runs that do nothing, {SLOTS} at a time", f"at least {GOAL} runs/s", rows)
    table.notes.append(
        "A run is claimed, judged, logged, finished and audited over HTTP; a task of Huey is taken and called."
    )
    save("draining", [table])


if __name__ == "__main__":
    main()
