"""How many conflicts do eight writers of one table meet? Beside PyIceberg's own catalog in SQLite."""

import logging
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException

from benchmarks.harness import Row, Table, save
from benchmarks.product import product

WRITERS = 8
SECONDS = 12
ROWS = pa.table({"id": [1]})


class Writers:
    """Threads that change one table, each with a catalog of its own; how often they succeeded and met a conflict."""

    def __init__(self, catalogs: list[Any], change: Callable[[Any, int], None]) -> None:
        self.commits = self.conflicts = 0
        self._lock = threading.Lock()
        self._until = time.monotonic() + SECONDS
        self._change = change
        threads = [threading.Thread(target=self._run, args=(number, one)) for number, one in enumerate(catalogs)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _run(self, number: int, catalog: Any) -> None:
        send = catalog.commit_table

        def counted(*arguments: Any) -> Any:
            try:
                answer = send(*arguments)
            except CommitFailedException:
                with self._lock:
                    self.conflicts += 1
                raise
            with self._lock:
                self.commits += 1
            return answer

        catalog.commit_table = counted
        while time.monotonic() < self._until:
            try:
                self._change(catalog.load_table("raw.hot"), number)
            except CommitFailedException:
                continue


def annotate(table: Any, number: int) -> None:
    """Set a property that no other writer sets."""
    table.transaction().set_properties({f"writer.{number}": str(time.time())}).commit_transaction()


def append(table: Any, number: int) -> None:
    """Append a row; PyIceberg tries again by itself."""
    table.append(ROWS)


def measure(question: str, change: Callable[[Any, int], None], makers: dict[str, Callable[[], Any]]) -> Table:
    """Both catalogs, one after the other."""
    table = Table(f"{question}: {WRITERS} writers of one table for {SECONDS} s", "few conflicts reach the writers")
    for name, make in makers.items():
        catalog = make()
        catalog.create_table("raw.hot", schema=ROWS.schema)
        done = Writers([make() for _ in range(WRITERS)], change)
        catalog.drop_table("raw.hot")
        share = 100 * done.conflicts / max(done.commits + done.conflicts, 1)
        table.rows.append(Row(f"{name}, commits", done.commits, "", done.commits, done.commits))
        table.rows.append(
            Row(f"{name}, conflicts that a writer saw", done.conflicts, "", done.conflicts, done.conflicts)
        )
        table.notes.append(f"{name}: {share:.0f} % of the answers were conflicts")
    return table


def main() -> None:
    """Measure, print and keep."""
    logging.getLogger("pyiceberg").setLevel(logging.ERROR)
    settings = {"HEADGATE_LOG__LEVEL": "warning", "HEADGATE_WAREHOUSE__EXTERNAL_ENGINES": "same-host"}
    with tempfile.TemporaryDirectory() as name, product(Path(name), spark=False, **settings) as installation:
        installation.fill()
        address, token = installation.up(), installation.token("Adam")
        peer = {"uri": f"sqlite:///{name}/peer.db?timeout=60", "warehouse": f"file://{name}/peer"}
        SqlCatalog("peer", **peer).create_namespace("raw")
        makers: dict[str, Callable[[], Any]] = {
            "PyIceberg's SqlCatalog, in process": lambda: SqlCatalog("peer", **peer),
            "Headgate": lambda: RestCatalog("lake", uri=f"{address}/iceberg", token=token),
        }
        save("writers", [measure("Properties", annotate, makers), measure("Appends", append, makers)])


if __name__ == "__main__":
    main()
