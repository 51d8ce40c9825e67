"""Sessions are freed: hundreds of them leave nothing in the server."""

import os
import re
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from headgate.execution.spark import java
from tests.execution.spark.conftest import Lakehouse
from tests.support.spark import rows_of

SESSIONS = int(os.environ.get("SESSIONS", "60"))
"""`SESSIONS=300 pytest tests/execution/spark/test_sessions.py` tries as many as the design asks for."""

FREED = (
    "org.apache.spark.sql.connect.service.SessionHolder",
    "org.apache.spark.sql.connect.service.ExecuteHolder",
    "org.apache.spark.sql.classic.SparkSession",
    "org.apache.iceberg.spark.SparkCatalog",
    "org.apache.iceberg.rest.RESTSessionCatalog",
    "org.apache.iceberg.rest.HTTPClient",
)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.xdist_group("spark")
def test_closed_sessions_are_freed(lakehouse: Lakehouse) -> None:
    lakehouse.rows("Tess", "CREATE TABLE IF NOT EXISTS raw.freed AS SELECT 1 AS n")
    for _ in range(3):
        _use(lakehouse)
    pid = lakehouse.spark.member.state()["pid"]
    heap, sockets = _after_a_minute(pid, lambda: True), _sockets(pid)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: _use(lakehouse), range(SESSIONS)))
    assert lakehouse.spark.member.state()["sessions"] == 0
    assert lakehouse.spark.member.state()["pid"] == pid
    last: dict[str, tuple[int, int]] = {}

    def freed() -> bool:
        last.clear()
        last.update(_histogram(pid))
        return all(last.get(name, (0, 0))[0] <= heap.get(name, (0, 0))[0] + 6 for name in FREED)

    found = _after_a_minute(pid, freed)
    assert freed(), {name: (heap.get(name), found.get(name)) for name in FREED}
    assert _sockets(pid) <= sockets + 6
    grown = sum(size for _, size in found.values()) - sum(size for _, size in heap.values())
    assert grown < 40 << 20, f"{SESSIONS} sessions left {grown >> 20} MiB"


def _use(lakehouse: Lakehouse) -> None:
    session = lakehouse.spark.member.open(lakehouse.work("Tess"))
    try:
        assert rows_of(session, "SELECT n FROM raw.freed") == [{"n": 1}]
    finally:
        session.close()


def _after_a_minute(pid: int, check: object) -> dict[str, tuple[int, int]]:
    """What is alive in the server, at the latest a minute from now; sooner if a check holds."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not check():  # type: ignore[operator]
        time.sleep(5)
    return _histogram(pid)


def _histogram(pid: int) -> dict[str, tuple[int, int]]:
    """How many objects of each class are alive, and their bytes; asked of the Java process itself."""
    done = subprocess.run(
        [java.program("jcmd"), str(pid), "GC.class_histogram"], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return dict(_lines(done.stdout))


def _lines(text: str) -> Iterator[tuple[str, tuple[int, int]]]:
    for line in text.splitlines():
        found = re.match(r"\s*\d+:\s+(\d+)\s+(\d+)\s+(\S+)", line)
        if found:
            yield found[3], (int(found[1]), int(found[2]))


def _sockets(pid: int) -> int:
    count = 0
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        try:
            count += str(entry.readlink()).startswith("socket:")
        except FileNotFoundError:
            continue
    return count
