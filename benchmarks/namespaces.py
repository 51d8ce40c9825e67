"""How long does a list of 5,000 tables take, and a load meanwhile? Beside PyIceberg's own catalog in SQLite."""

import contextlib
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pyarrow as pa
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.catalog.sql import SqlCatalog

from benchmarks.harness import ROUNDS, Table, compared, row, save
from benchmarks.product import product

TABLES = 5000
SCHEMA = pa.schema([("id", pa.int64())])
LISTERS = 16
"""Requests for the whole list at once."""


def fill(catalog: Any) -> None:
    """Create the tables, several at once where the catalog takes that."""
    workers = 1 if isinstance(catalog, SqlCatalog) else 8
    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(lambda number: catalog.create_table(f"raw.t{number:05d}", schema=SCHEMA), range(TABLES)))


def timed(work: Callable[[], Any]) -> float:
    """The seconds that it takes."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


@contextlib.contextmanager
def listing(address: str, token: str) -> Iterator[None]:
    """Meanwhile, clients ask for the whole list again and again."""
    done = threading.Event()

    def ask() -> None:
        with httpx.Client(headers={"Authorization": f"Bearer {token}"}, timeout=300) as client:
            while not done.is_set():
                client.get(f"{address}/iceberg/v1/namespaces/raw/tables").raise_for_status()

    threads = [threading.Thread(target=ask) for _ in range(LISTERS)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        done.set()
        for thread in threads:
            thread.join()


def main() -> None:
    """Measure, print and keep."""
    settings = {"HEADGATE_LOG__LEVEL": "warning", "HEADGATE_WAREHOUSE__EXTERNAL_ENGINES": "same-host"}
    with tempfile.TemporaryDirectory() as name, product(Path(name), spark=False, **settings) as installation:
        installation.fill()
        address, token = installation.up(), installation.token("Adam")
        ours = RestCatalog("lake", uri=f"{address}/iceberg", token=token)
        theirs = SqlCatalog("peer", uri=f"sqlite:///{name}/peer.db", warehouse=f"file://{name}/peer")
        theirs.create_namespace("raw")
        for catalog in (ours, theirs):
            fill(catalog)
            assert len(catalog.list_tables("raw")) == TABLES
        lists = [
            (timed(lambda: ours.list_tables("raw")), timed(lambda: theirs.list_tables("raw"))) for _ in range(ROUNDS)
        ]
        path = f"{address}/iceberg/v1/namespaces/raw/tables/t00007"
        with httpx.Client(headers={"Authorization": f"Bearer {token}"}, timeout=300) as client:
            alone = [timed(lambda: client.get(path).raise_for_status()) for _ in range(ROUNDS)]
            with listing(address, token):
                time.sleep(1)
                beside = [timed(lambda: client.get(path).raise_for_status()) for _ in range(ROUNDS)]
    whole = Table(f"A list of {TABLES:,} tables by PyIceberg", "at most 0.3 s")
    mine, peer = [first for first, _ in lists], [second for _, second in lists]
    whole.rows = [
        row("PyIceberg's SqlCatalog, in process, no access decision", peer, "ms", 1000),
        compared(row("Headgate, over HTTP", mine, "ms", 1000), mine, peer),
    ]
    load = Table(f"loadTable while {LISTERS} clients list {TABLES:,} tables", "never waits for the lists")
    load.rows = [
        row("loadTable, nothing else running", alone, "ms", 1000),
        compared(row("loadTable, beside the lists", beside, "ms", 1000), beside, alone),
    ]
    save("namespaces", [whole, load])


if __name__ == "__main__":
    main()
