"""What do the guard, the catalog and the way over HTTP cost, beside plain Spark on the same tables?"""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2 as httpx

from benchmarks.harness import ROUNDS, Table, compared, row, save
from benchmarks.product import product

ROWS = int(os.environ.get("BENCH_ROWS", "10000000"))
CORES, MEMORY = 2, "2g"
BIG = f"SELECT id, id % 1000 AS shop, CAST(id * 7 % 10007 AS DOUBLE) AS amount FROM range({ROWS})"
QUERY = (
    "SELECT shop, COUNT(*), SUM(amount), STDDEV(amount), COUNT(DISTINCT id % 997) "
    "FROM raw.big GROUP BY shop ORDER BY shop LIMIT 100"
)
SMALL = "SELECT COUNT(*) FROM raw.small"


class Governed:
    """The product, as a member uses it over HTTP."""

    def __init__(self, address: str, token: str) -> None:
        headers = {"Authorization": f"Bearer {token}"}
        self.client = httpx.Client(base_url=address, headers=headers, timeout=900)

    def run(self, sql: str) -> float:
        """Seconds from the request to the first page."""
        started = time.perf_counter()
        found = self.client.post("/api/sql/statements", json={"sql": sql}).raise_for_status().json()
        self.ended(found)
        return time.perf_counter() - started

    def ended(self, found: dict[str, Any]) -> dict[str, Any]:
        """A statement when it has succeeded."""
        while found["state"] in {"queued", "running"}:
            found = self.client.get(f"/api/sql/statements/{found['id']}", params={"wait": 25}).raise_for_status().json()
        assert found["state"] == "succeeded", found
        return found


class Bare:
    """Plain Spark in another process."""

    def __init__(self, address: str, token: str, folder: Path) -> None:
        environment = {
            **os.environ,
            "BARE_FOLDER": str(folder),
            "BARE_URI": f"{address}/iceberg",
            "BARE_TOKEN": token,
            "BARE_CORES": str(CORES),
            "BARE_MEMORY": MEMORY,
        }
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.bare_spark"],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._answer("ready")

    def _answer(self, wanted: str | None = None) -> str:
        assert self._process.stdout
        line = self._process.stdout.readline().strip()
        assert line, "plain Spark has ended"
        assert wanted in (None, line), line
        return line

    def run(self, sql: str) -> float:
        """Seconds for a statement, to its rows."""
        assert self._process.stdin
        self._process.stdin.write(json.dumps(sql) + "\n")
        self._process.stdin.flush()
        return float(self._answer())

    def close(self) -> None:
        """End it."""
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait(60)


@contextlib.contextmanager
def contenders() -> Iterator[tuple[Governed, Bare]]:
    """Both, on one installation; the tables are there."""
    settings = {
        "HEADGATE_LOG__LEVEL": "warning",
        "HEADGATE_SPARK__CORES": str(CORES),
        "HEADGATE_SPARK__MEMORY": MEMORY,
        "HEADGATE_WAREHOUSE__EXTERNAL_ENGINES": "same-host",
        "HEADGATE_SQL__STATEMENT_SECONDS": "3600",
    }
    with tempfile.TemporaryDirectory() as folder, product(Path(folder), **settings) as one:
        one.fill()
        address = one.up()
        governed = Governed(address, one.token("Adam"))
        governed.run("CREATE TABLE raw.small AS SELECT id FROM range(100)")
        governed.run(f"CREATE TABLE raw.big AS {BIG}")
        bare = Bare(address, one.token("Adam"), Path(folder, "own"))
        try:
            yield governed, bare
        finally:
            bare.close()


def pairs(
    ours: Callable[[], float], theirs: Callable[[], float], rounds: int = ROUNDS
) -> tuple[list[float], list[float]]:
    """What both took, in turns, after two rounds that warm up."""
    found: list[tuple[float, float]] = [(ours(), theirs()) for _ in range(rounds + 2)][2:]
    return [one for one, _ in found], [other for _, other in found]


def told(question: str, goal: str, ours: list[float], theirs: list[float], peer: str, **more: Any) -> Table:
    """The answer to one of the questions."""
    table = Table(question, goal, **more)
    table.rows = [
        row(peer, theirs, "s"),
        compared(row("Headgate, from request to first page", ours, "s"), ours, theirs),
    ]
    return table


def main() -> None:
    """Measure, print and keep."""
    with contenders() as (governed, bare):
        tables = []
        ours, theirs = pairs(lambda: governed.run(QUERY), lambda: bare.run(QUERY))
        tables.append(told(f"A query over {ROWS:,} rows", "at most ×1.05", ours, theirs, "plain Spark Connect"))
        ours, theirs = pairs(lambda: governed.run(SMALL), lambda: bare.run(SMALL), 21)
        over = sorted(one - other for one, other in zip(ours, theirs, strict=True))[len(ours) // 2]
        note = f"constant cost: {over * 1000:.0f} ms at the median"
        tables.append(
            told("A query over 100 rows", "at most 150 ms more", ours, theirs, "one warm Connect session", notes=[note])
        )
        ours, theirs = pairs(
            lambda: governed.run(f"CREATE OR REPLACE TABLE raw.written AS {BIG}"),
            lambda: bare.run(f"CREATE OR REPLACE TABLE own.raw.written AS {BIG}"),
        )
        peer = "plain Spark with a catalog in a folder"
        tables.append(told(f"Writing {ROWS:,} rows", "at most ×1.05", ours, theirs, peer))
    save("lake", tables)
