"""How many requests a second: one resource, and a page of 50, with identity, check and audit? Beside bare FastAPI."""

import contextlib
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2 as httpx
from tests.support.installation import Installation
from tests.support.postgres import server

from benchmarks.harness import ROUNDS, Row, Table, compared, row, save
from benchmarks.many import fill, member_id
from benchmarks.product import product
from headgate.kit.clock import now
from headgate.kit.database import Database
from headgate.migrations import upgrade
from headgate.organization.tokens.service import create

MARTS = 10_000
GOAL = 0.4
SECONDS = 2
SERVES, *_, LOADS = sorted(os.sched_getaffinity(0)) * 2
"""The core of the servers, and that of the load and the database."""
MEMBER = "technical, entire"


def load(url: str, token: str | None) -> float:
    """Requests a second, by wrk over eight connections."""
    header = ["-H", f"Authorization: Bearer {token}"] if token else []
    done = subprocess.run(
        ["wrk", "-t1", "-c8", f"-d{SECONDS}s", *header, url], capture_output=True, text=True, check=True
    )
    assert "Non-2xx" not in done.stdout, done.stdout
    found = re.search(r"Requests/sec:\s+([\d.]+)", done.stdout)
    assert found, done.stdout
    return float(found[1])


@contextlib.contextmanager
def kept_to(core: int) -> Iterator[None]:
    """What this process starts meanwhile runs on one core.

    Threads of one Python process that may use two cores wait for one another in ways that vary: without this, the
    bare route answered 1,080 requests a second in one run and 2,680 in the next.
    """
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@contextlib.contextmanager
def bare(url: str) -> Iterator[str]:
    """The bare application, in one process with the same server."""
    port = 18421
    command = [sys.executable, "-m", "uvicorn", "benchmarks.bare:app", "--port", str(port), "--loop", "uvloop"]
    with kept_to(SERVES):
        process = subprocess.Popen(
            [*command, "--http", "httptools", "--no-access-log", "--log-level", "error"],
            env={**os.environ, "BARE_DATABASE": url},
        )
    try:
        address = f"http://127.0.0.1:{port}"
        for _ in range(200):
            with contextlib.suppress(httpx.TransportError):
                httpx.get(f"{address}/page")
                break
            time.sleep(0.05)
        yield address
    finally:
        process.terminate()
        process.wait()


def filled(one: Installation) -> str:
    """Many marts, and a member's token."""
    database = Database(one.url)
    upgrade(database.engine)
    with database.engine.begin() as connection:
        for table in ("organization", "groups", "principals"):
            connection.exec_driver_sql(f"DELETE FROM {table}")
    fill(database, MARTS)
    token = database.write(lambda connection: create(connection, member_id(MEMBER), "bench", now()).secret)
    database.close()
    return token


def measure(kind: str, url: str | None, folder: Path) -> Table:
    """In turns: ours and bare, one and page."""
    settings = {"HEADGATE_LOG__LEVEL": "warning", "HEADGATE_AUDIT__READS": "all"}
    with product(folder, url, spark=False, **settings) as one:
        token = filled(one)
        with kept_to(SERVES):
            address = one.up()
        with bare(one.url) as plain:
            page = f"{address}/api/resources?kind=data_mart&limit=50"
            seen = httpx.get(page, headers={"Authorization": f"Bearer {token}"}).raise_for_status().json()["items"]
            places = {
                "one resource": (f"{address}/api/resources/{seen[7]['id']}", f"{plain}/one/{seen[7]['id']}"),
                "a page of 50": (page, f"{plain}/page"),
            }
            table = Table(
                f"Requests/s on {kind}, {MARTS:,} marts; ours with token, check, actions and audit of each read",
                f"at least {GOAL} of a bare FastAPI route with one raw query",
            )
            for name, (ours, theirs) in places.items():
                table.rows += _in_turns(name, ours, theirs, token)
        one.stop()
    for found in table.rows:
        if found.ratio is not None:
            table.notes.append(f"{found.name}: {found.ratio:.2f}: {'met' if found.ratio >= GOAL else 'NOT MET'}")
    return table


def _in_turns(name: str, ours: str, theirs: str, token: str) -> list[Row]:
    samples: tuple[list[float], list[float]] = ([], [])
    for _ in range(ROUNDS):
        samples[0].append(load(ours, token))
        samples[1].append(load(theirs, None))
    mine = compared(row(f"Headgate, {name}", samples[0], "requests/s"), samples[0], samples[1])
    return [mine, row(f"bare FastAPI, {name}", samples[1], "requests/s")]


def main() -> None:
    """On both databases."""
    with tempfile.TemporaryDirectory() as folder, kept_to(LOADS), server() as url:
        (Path(folder) / "s").mkdir()
        (Path(folder) / "p").mkdir()
        tables = [measure("SQLite", None, Path(folder) / "s"), measure("PostgreSQL", url, Path(folder) / "p")]
    save("requests", tables)


if __name__ == "__main__":
    main()
