"""How fast does the catalog give a table with 1,000 snapshots, and how fast is a preview? Beside the bare work."""

import contextlib
import copy
import hashlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2 as httpx
from sqlalchemy import update
from tests.support.installation import Installation

from benchmarks.harness import ROUNDS, Table, compared, row, save
from benchmarks.product import product
from benchmarks.requests import load
from headgate.kit.database import Database
from headgate.lakehouse.catalog.models import table_pointer_table

SNAPSHOTS = 1000
PORT = 18422
CALLS = 60


def filled(address: str, token: str) -> Any:
    """A table of 10,000 rows, written by PyIceberg."""
    import pyarrow as pa
    from pyiceberg.catalog.rest import RestCatalog

    catalog = RestCatalog("lake", uri=f"{address}/iceberg", token=token)
    numbers = list(range(10_000))
    rows = pa.table({"id": numbers, "name": [f"name {one}" for one in numbers], "amount": [one / 7 for one in numbers]})
    table = catalog.create_table("raw.many", schema=rows.schema)
    table.append(rows)
    return table


def lengthen(one: Installation, metadata: Path) -> None:
    """Give the table many snapshots, each a copy of its own: what a year of commits leaves."""
    found = json.loads(metadata.read_text())
    snapshot = found["snapshots"][0]
    for number in range(1, SNAPSHOTS):
        other = copy.deepcopy(snapshot)
        other["snapshot-id"], other["timestamp-ms"] = snapshot["snapshot-id"] + number, snapshot["timestamp-ms"]
        found["snapshots"].append(other)
    target = metadata.with_name(f"00002-{metadata.name.partition('-')[2]}")
    target.write_text(json.dumps(found, separators=(",", ":")))
    database = Database(one.url)
    values = {
        "metadata_file": target.name,
        "metadata_sha256": hashlib.sha256(target.read_bytes()).hexdigest(),
        "version": table_pointer_table.c.version + 1,
    }
    same = table_pointer_table.c.metadata_file == metadata.name
    database.write(lambda connection: connection.execute(update(table_pointer_table).where(same).values(values)))
    database.close()


@contextlib.contextmanager
def bare(metadata: Path) -> Iterator[str]:
    """A bare application that sends the same file, with no identity, decision or audit."""
    command = [sys.executable, "-m", "uvicorn", "benchmarks.bare_catalog:app", "--port", str(PORT), "--loop", "uvloop"]
    process = subprocess.Popen(
        [*command, "--http", "httptools", "--no-access-log", "--log-level", "error"],
        env={**os.environ, "BARE_METADATA": str(metadata)},
    )
    try:
        address = f"http://127.0.0.1:{PORT}/table"
        for _ in range(200):
            with contextlib.suppress(httpx.TransportError):
                httpx.get(address)
                break
            time.sleep(0.05)
        yield address
    finally:
        process.terminate()
        process.wait()


def p50(client: Any, path: str) -> float:
    """The median of some calls, in seconds."""
    found = []
    for _ in range(CALLS):
        started = time.perf_counter()
        client.get(path).raise_for_status()
        found.append(time.perf_counter() - started)
    return statistics.median(found)


def loading(address: str, token: str, folder: Path) -> list[Table]:
    """loadTable, ours and bare, in turns."""
    newest = max((folder / "warehouse/metadata").glob("*/00002-*"))
    ours_url = f"{address}/iceberg/v1/namespaces/raw/tables/many"
    client = httpx.Client(headers={"Authorization": f"Bearer {token}"})
    with bare(newest) as bare_url:
        plain = httpx.Client()
        for one, url in ((client, ours_url), (plain, bare_url)):
            p50(one, url)
        times = [(p50(client, ours_url), p50(plain, bare_url)) for _ in range(ROUNDS)]
        rates = [(load(ours_url, token), load(bare_url, None)) for _ in range(ROUNDS)]
    ours, theirs = [one for one, _ in times], [other for _, other in times]
    size = newest.stat().st_size
    one = Table(f"loadTable, {SNAPSHOTS:,} snapshots, {size:,} bytes, p50", "at most 15 ms")
    one.rows = [row("the file, bare", theirs, "ms", 1000), compared(row("Headgate", ours, "ms", 1000), ours, theirs)]
    two = Table("loadTable, calls a second over eight connections", "at least 200/s")
    ours, theirs = [one for one, _ in rates], [other for _, other in rates]
    two.rows = [row("the file, bare", theirs, "/s"), compared(row("Headgate", ours, "/s"), ours, theirs)]
    return [one, two]


def previewing(address: str, token: str, table: Any) -> Table:
    """The first 100 rows, ours over HTTP and PyIceberg's in process, in turns."""
    client = httpx.Client(headers={"Authorization": f"Bearer {token}"}, base_url=address)
    items = client.get("/api/resources", params={"kind": "table", "prefix": "raw.many"}).raise_for_status().json()
    path = f"/api/tables/{items['items'][0]['id']}/preview?limit=100"

    def scan() -> float:
        found = []
        for _ in range(CALLS):
            started = time.perf_counter()
            table.scan(limit=100).to_arrow()
            found.append(time.perf_counter() - started)
        return statistics.median(found)

    p50(client, path), scan()
    times = [(p50(client, path), scan()) for _ in range(ROUNDS)]
    ours, theirs = [one for one, _ in times], [other for _, other in times]
    found = Table("Preview of 100 rows, p50", "at most 30 ms")
    peer = row("PyIceberg's own scan, in process, table loaded before", theirs, "ms", 1000)
    found.rows = [peer, compared(row("Headgate, over HTTP, decided and recorded", ours, "ms", 1000), ours, theirs)]
    return found


def main() -> None:
    """Measure, print and keep."""
    settings = {"HEADGATE_LOG__LEVEL": "warning", "HEADGATE_WAREHOUSE__EXTERNAL_ENGINES": "same-host"}
    with tempfile.TemporaryDirectory() as name, product(Path(name), spark=False, **settings) as one:
        one.fill()
        address, token, folder = one.up(), one.token("Adam"), Path(name)
        table = filled(address, token)
        preview = previewing(address, token, table)
        lengthen(one, Path(table.metadata_location.removeprefix("file://")))
        save("catalog", [*loading(address, token, folder), preview])
