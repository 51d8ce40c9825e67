"""What does a history cost, beside a MERGE that somebody wrote by hand for the same table?"""

import contextlib
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.harness import ROUNDS, Table, compared, row, save
from benchmarks.lake import CORES, MEMORY, Bare, Governed
from benchmarks.product import product

ROWS = int(os.environ.get("BENCH_ROWS", "5000000"))
COLUMNS = "id BIGINT, name STRING, city STRING, amount DOUBLE, status INT"
COMPARED = ("name", "city", "amount", "status")
CHANGED = " OR ".join(f"NOT {{0}}.{name} <=> h.{name}" for name in COMPARED)
BY_HAND = f"""
MERGE INTO own.raw.versions AS h
USING (
  SELECT s.id AS found, s.* FROM own.raw.customers AS s
  UNION ALL
  SELECT NULL AS found, s.* FROM own.raw.customers AS s JOIN own.raw.versions AS h ON s.id = h.id
  WHERE h.is_current AND ({CHANGED.format("s")})
) AS u
ON h.id = u.found AND h.is_current
WHEN MATCHED AND ({CHANGED.format("u")}) THEN UPDATE SET valid_to = current_timestamp(), is_current = FALSE
WHEN NOT MATCHED THEN INSERT (id, name, city, amount, status, valid_from, valid_to, is_current)
  VALUES (u.id, u.name, u.city, u.amount, u.status, current_timestamp(), NULL, TRUE)
WHEN NOT MATCHED BY SOURCE AND h.is_current THEN UPDATE SET valid_to = current_timestamp(), is_current = FALSE
"""


def state(table: str, number: int) -> str:
    """Have the table hold all rows, one in twenty of them other than before."""
    return (
        f"INSERT OVERWRITE {table} SELECT id, concat('name ', id) AS name, concat('city ', id % 1000) AS city, "
        "CAST(id * 7 % 10007 AS DOUBLE) AS amount, "
        f"greatest({number} - pmod({number} - pmod(hash(id), 20), 20), 0) AS status FROM range({ROWS})"
    )


class Pipeline:
    """A pipeline of the product, as a member runs it over HTTP."""

    def __init__(self, governed: Governed, definition: dict[str, Any]) -> None:
        self._client = governed.client
        body = {"name": f"{definition['kind']} {definition['output']}", "definition": definition}
        saved = self._client.post("/api/pipelines", json=body).raise_for_status().json()
        is_saved = saved["state"] == "saved"
        self._id = (
            saved["id"] if is_saved else governed.ended({"id": saved["statement"], "state": "queued"})["saved_query"]
        )

    def run(self) -> float:
        """Seconds from the request to what it published."""
        started = time.perf_counter()
        found = self._client.post(f"/api/pipelines/{self._id}/runs", json={}).raise_for_status().json()
        while found["state"] in {"queued", "running"}:
            found = self._client.get(f"/api/runs/{found['id']}", params={"wait": 25}).raise_for_status().json()
        assert found["state"] == "succeeded", found
        return time.perf_counter() - started


@contextlib.contextmanager
def contenders() -> Iterator[tuple[Governed, Pipeline, Bare]]:
    """Both, on one installation: the product, and plain Spark with tables of its own."""
    settings = {
        "HEADGATE_LOG__LEVEL": "warning",
        "HEADGATE_SPARK__CORES": str(CORES),
        "HEADGATE_SPARK__MEMORY": MEMORY,
        "HEADGATE_SQL__STATEMENT_SECONDS": "3600",
    }
    with tempfile.TemporaryDirectory() as folder, product(Path(folder), **settings) as one:
        one.fill()
        address, token = one.up(), one.token("Adam")
        governed, bare = Governed(address, token), Bare(address, token, Path(folder, "own"))
        governed.run(f"CREATE TABLE raw.customers ({COLUMNS})")
        bare.run(f"CREATE TABLE own.raw.customers ({COLUMNS})")
        bare.run(
            f"CREATE TABLE own.raw.versions ({COLUMNS}, valid_from TIMESTAMP, valid_to TIMESTAMP, is_current BOOLEAN)"
        )
        definition = {"kind": "history", "table": "raw.customers", "output": "raw.versions", "keys": ["id"]}
        try:
            yield governed, Pipeline(governed, definition), bare
        finally:
            bare.close()


def main() -> None:
    """Measure, print and keep."""
    ours: list[float] = []
    theirs: list[float] = []
    with contenders() as (governed, pipeline, bare):
        for number in range(ROUNDS + 2):
            governed.run(state("raw.customers", number))
            bare.run(state("own.raw.customers", number))
            ours.append(pipeline.run())
            theirs.append(bare.run(BY_HAND))
    # The first round fills the histories, the second warms up.
    ours, theirs = ours[2:], theirs[2:]
    table = Table(f"A history of {ROWS:,} rows of which one in twenty changed", "at most ×1.1")
    table.rows = [
        row("a MERGE by hand, on plain Spark Connect", theirs, "s"),
        compared(row("Headgate, from request to publish", ours, "s"), ours, theirs),
    ]
    save("history", [table])
