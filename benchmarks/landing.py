"""How long do rows take from PostgreSQL into a table, beside bare Spark with the same parts, and dlt into Parquet?"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
from tests.support import postgres
from tests.support.steps import Workshop, workshop

from benchmarks.harness import ROUNDS, Table, compared, row, save
from headgate.contracts.external_systems.endpoints import Endpoint
from headgate.contracts.pipelines.steps import Land
from headgate.contracts.pipelines.streams import Stream
from headgate.execution.spark import jars
from headgate.execution.steps import land

ROWS = int(os.environ.get("BENCH_ROWS", "10000000"))
CORES, MEMORY, PARTS = 2, "2g", 4
TABLE = "public.orders"
FILL = (
    "CREATE TABLE orders AS SELECT n AS id, n % 1000 AS shop, (n * 7 % 10007)::numeric(12, 2) AS amount, "
    "'order ' || n AS name, timestamptz '2026-01-01' + n * interval '1 second' AS at, n % 2 = 0 AS paid "
    "FROM generate_series(1::bigint, {rows}) n"
)


class Ours:
    """The executor of a `Land` step, with the catalog, the sandbox and the proxy."""

    def __init__(self, shop: Workshop, url: str) -> None:
        parts = urlsplit(url)
        config = {"host": parts.hostname, "port": parts.port, "database": parts.path[1:], "user": parts.username}
        self._shop = shop
        self._endpoint = Endpoint("con_1", "postgresql", {**config, "tls": "off", "tls_ca": None, "properties": {}})
        wanted = {"name": TABLE, "table": "orders", "in_parts": {"column": "id", "parts": PARTS}}
        self._stream = Stream.model_validate(wanted)

    def run(self) -> float:
        """Seconds for the step, unpublished."""
        shop = self._shop
        running = shop.run("raw.orders", "raw.orders_rejected", endpoints={self._endpoint.id: self._endpoint})
        step = Land(self._stream, shop.item("raw.orders"), shop.item("raw.orders_rejected"), "evolve")
        started = time.perf_counter()
        found = land.run(step, running.context)
        spent = time.perf_counter() - started
        assert found.rows_out == ROWS, found
        return spent


class Peer:
    """Another way, in a process of its own: a line in, seconds out."""

    def __init__(self, module: str, **environment: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", f"benchmarks.{module}"],
            env={**os.environ, **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._line()

    def run(self) -> float:
        """Seconds for all rows."""
        assert self._process.stdin
        self._process.stdin.write("go\n")
        self._process.stdin.flush()
        told: dict[str, Any] = json.loads(self._line())
        assert told["rows"] == ROWS, told
        return float(told["seconds"])

    def close(self) -> None:
        """End it."""
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait(60)

    def _line(self) -> str:
        assert self._process.stdout
        line = self._process.stdout.readline()
        assert line, "it has ended"
        return line


@contextmanager
def contenders() -> Iterator[dict[str, Callable[[], float]]]:
    """All of them, on one database that holds the rows."""
    with tempfile.TemporaryDirectory() as place, postgres.server() as url:
        folder = Path(place)
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(FILL.format(rows=ROWS))
            connection.execute("ALTER TABLE orders ADD PRIMARY KEY (id)")
            connection.execute("ANALYZE orders")
        (folder / "ours").mkdir()
        settings = {"outgoing": {"allow": ["127.0.0.1"]}, "spark": {"memory": MEMORY, "cores": CORES}}
        found = jars.ensure(platform=True)
        told = {"PEER_URL": url, "PEER_ROWS": str(ROWS), "PEER_PARTS": str(PARTS), "PEER_JARS": str(found)}
        told |= {"PEER_CORES": str(CORES), "PEER_MEMORY": MEMORY}
        with workshop(folder / "ours", **settings) as shop:
            peers = [Peer(name, PEER_FOLDER=str(folder / name), **told) for name in ("bare_landing", "dlt_landing")]
            try:
                yield {"Headgate": Ours(shop, url).run, "bare Spark": peers[0].run, "dlt": peers[1].run}
            finally:
                for peer in peers:
                    peer.close()


def main() -> None:
    """Measure in turns, print and keep."""
    with contenders() as ways:
        found: dict[str, list[float]] = {name: [] for name in ways}
        for number in range(ROUNDS + 1):
            for name, run in ways.items():
                spent = run()
                if number:
                    found[name].append(spent)
    ours, bare, dlt = found["Headgate"], found["bare Spark"], found["dlt"]
    beside_spark = Table(f"{ROWS:,} rows from PostgreSQL into a table, {PARTS} parts", "at most ×1.25 of bare Spark")
    beside_spark.rows = [
        row("bare Spark, JDBC into Iceberg", bare, "s"),
        compared(row("Headgate", ours, "s"), ours, bare),
    ]
    beside_dlt = Table(f"{ROWS:,} rows from PostgreSQL, beside dlt", "at most ×0.33 of dlt")
    beside_dlt.rows = [row("dlt, into Parquet", dlt, "s"), compared(row("Headgate", ours, "s"), ours, dlt)]
    save("landing", [beside_spark, beside_dlt])


if __name__ == "__main__":
    main()
