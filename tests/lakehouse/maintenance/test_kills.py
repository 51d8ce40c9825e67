"""A process that maintains tables is killed at every point, and the next one goes on."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from headgate.kit.clock import now
from headgate.kit.crash_points import VARIABLE
from headgate.lakehouse.maintenance import repository
from tests.lakehouse.catalog.support import MORE, Lake
from tests.lakehouse.maintenance.support import count, make

pytestmark = pytest.mark.processes

POINTS = ("maintenance: metadata written", "maintenance: some files removed", "maintenance: table done")
TEN_DAYS = 10 * 86_400
WORK = """
from headgate.settings.settings import load
from headgate.kit.clock import now
from headgate.lakehouse.maintenance import scheduler as passing
from headgate.pipelines.runs import checkpoints
from headgate.supervisor.scheduler import Scheduler

passing.work(Scheduler(load())._maintainer._services, checkpoints, now())
"""


def process(folder: Path, point: str = "") -> int:
    """How a process ended that did what the scheduler does, and was to be killed at this point."""
    own = {
        "HEADGATE_DATA_DIR": str(folder),
        "HEADGATE_MAINTENANCE__SNAPSHOT_DAYS": "0",
        "HEADGATE_MAINTENANCE__KEEP_SNAPSHOTS": "1",
        VARIABLE: point,
    }
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HEADGATE_")}
    return subprocess.run([sys.executable, "-c", WORK], env={**kept, **own}, cwd=folder, check=False).returncode


def test_nothing_is_left_half_done(served_on_sqlite: Lake) -> None:
    """When the metadata of an expiry is written, when some of the files are gone, and before a table is noted."""
    lake, folder = served_on_sqlite, served_on_sqlite.warehouse.parent
    table = make(lake)
    table.overwrite(MORE)
    root = Path(table.location().removeprefix("file://"))
    kept = set(root.rglob("*.*"))
    strays = [root / "data" / f"{number}.parquet" for number in range(150)]
    for file in strays:
        file.write_bytes(b"x")
    then = time.time() - TEN_DAYS
    for file in (*kept, *strays):
        os.utime(file, (then, then))
    events = lake.company.id("table", "raw.events")
    lake.company.database.write(lambda c: repository.ask(c, now(), table_id=events))
    for point in POINTS:
        assert process(folder, point) == -9, point
        assert count(lake) == 2, point
        assert lake.rows("SELECT state, looked_at FROM maintenance_passes") == [("running", 0)]
    assert process(folder) == 0
    assert lake.rows("SELECT state, looked_at FROM maintenance_passes") == [("succeeded", 1)]
    assert set(root.rglob("*.*")) == kept
    assert len(lake.engine("Tess").load_table("raw.events").metadata.snapshots) == 1
    assert count(lake) == 2
