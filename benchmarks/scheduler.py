"""How late are fires among ten thousand cron triggers, and what does waiting for them cost? Beside APScheduler."""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, create_engine, insert, select, text
from tests.support.postgres import server

from benchmarks.harness import Row, Table, save
from benchmarks.product import Product
from headgate.kit.clock import now
from headgate.kit.cron import Schedule
from headgate.kit.database import Database
from headgate.kit.ids import new_id
from headgate.lakehouse.models import lake_item_table, table_ref_table
from headgate.pipelines.models import pipeline_definition_table, pipeline_table
from headgate.pipelines.triggers.models import trigger_fire_table, trigger_table
from headgate.platform.authorization.list_index import rebuild
from headgate.platform.authorization.lookup import Lookup
from headgate.platform.authorization.models import resource_table

TRIGGERS = int(os.environ.get("TRIGGERS", "10000"))
EACH = 5
"""Triggers of one pipeline."""
MINUTES = int(os.environ.get("MINUTES", "3"))
IDLE = (10, 50)
"""The seconds of each minute in which nothing is due."""
LATE, CPU = 1.0, 5.0
OURS = "from headgate.settings.settings import load\nfrom headgate.supervisor.work import schedule\nschedule(load())\n"


# A company with many triggers


def fill(database: Database) -> None:
    """Pipelines that each read one table and write another, with triggers at every minute of the hour."""
    database.write(_fill)


def _fill(connection: Connection) -> None:
    lookup, moment = Lookup(connection), now()
    layer, table, member = lookup.of("layer", "trusted"), lookup.of("table", "raw.orders"), lookup.of("member", "Tess")
    rows: dict[Any, list[dict[str, Any]]] = {}

    def add(kind: str, scope: str, **values: Any) -> str:
        own = new_id(kind)
        named = {"id": own, "kind": kind, "namespace": kind, "scope_id": scope, "name": own, "name_key": own}
        times = {"created_at": moment, "updated_at": moment, "created_by_id": member}
        rows.setdefault(resource_table, []).append({**named, **times, **values})
        return own

    for number in range(TRIGGERS // EACH):
        pipeline, output = add("pipeline", ""), add("table", layer)
        name = f"t{number}"
        definition = {"kind": "query", "sql": "SELECT 1 AS one", "output": f"trusted.{name}"}
        rows.setdefault(lake_item_table, []).append({"id": output, "kind": "table", "layer_id": layer})
        rows.setdefault(pipeline_table, []).append(
            {"id": pipeline, "pipeline_kind": "query", "output_layer_id": layer, "acts_for_id": member}
        )
        rows.setdefault(pipeline_definition_table, []).append(
            {"pipeline_id": pipeline, "definition": definition, "version": 1, "active": True, "failures": 0}
            | {"saved_at": moment, "place_versions": {}}
        )
        for mode, item, ref in (("read", table, "raw.orders"), ("write", output, f"trusted.{name}")):
            rows.setdefault(table_ref_table, []).append(
                {"resource_id": pipeline, "mode": mode, "ref": ref, "item_id": item, "layer_id": layer, "enabled": True}
            )
        for place in range(EACH):
            cron = f"{(number * EACH + place) % 60} * * * *"
            when = {"kind": "cron", "cron": cron, "time_zone": "Europe/Berlin", "catch_up": "latest"}
            rows.setdefault(trigger_table, []).append(
                {"id": add("pipeline_trigger", pipeline), "kind": "pipeline_trigger", "parent_id": pipeline}
                | {"author_id": member, "sort": "cron", "spec": {"when": when}, "enabled": True, "saved_at": moment}
                | {"next_at": Schedule(cron, "Europe/Berlin").after(moment)}
            )
    for one in (resource_table, *(table for table in rows if table is not resource_table)):
        connection.execute(insert(one), rows[one])
    rebuild(connection)


# APScheduler, with the same jobs in a database

PEER = """
import sys, time
from apscheduler.jobstores.sqlalchemy import SQLAlchemyJobStore
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.cron import CronTrigger
from benchmarks.scheduler import note
url, count = sys.argv[1], int(sys.argv[2])
found = BackgroundScheduler(jobstores={"default": SQLAlchemyJobStore(url)}, timezone="Europe/Berlin")
found.start(paused=True)
if not found.get_jobs():
    for number in range(count):
        trigger = CronTrigger(minute=number % 60, timezone="Europe/Berlin")
        found.add_job(note, trigger, [url], id=str(number), misfire_grace_time=3600)
print("ready", flush=True)
sys.stdin.readline()
found.resume()
time.sleep(3600)
"""


def note(url: str) -> None:
    """What a job of APScheduler does: it writes that it was started, as a scheduler of pipelines would."""
    engine = _ENGINES.setdefault(url, create_engine(url))
    with engine.begin() as connection:
        connection.execute(text("INSERT INTO started VALUES (:at)"), {"at": time.time()})


_ENGINES: dict[str, Any] = {}


# Measuring


def cpu(pid: int) -> float:
    """The seconds of a core that a process has taken."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def watched(pid: int) -> tuple[list[float], datetime]:
    """The share of a core that a process takes while nothing is due, a percentage a minute; and since when."""
    _sleep_until(60)
    began, found = datetime.now(UTC), []
    for _ in range(MINUTES):
        _sleep_until(IDLE[0])
        before, at = cpu(pid), time.monotonic()
        _sleep_until(IDLE[1])
        found.append(100 * (cpu(pid) - before) / (time.monotonic() - at))
        _sleep_until(60)
    time.sleep(5)
    return found, began


def _sleep_until(second: int) -> None:
    """Sleep until this second of the minute; 60 is the begin of the next."""
    time.sleep((second - time.time() % 60) % 60 or 60)


def ours(folder: Path, url: str | None) -> tuple[list[float], list[float]]:
    """How late each fire of ours was, in seconds; and the percentage of a core."""
    one = Product(folder, url, HEADGATE_LOG__LEVEL="warning")
    one.fill()
    database = Database(one.url)
    fill(database)
    process = subprocess.Popen([sys.executable, "-c", OURS], env=one.environment, cwd=folder)
    try:
        time.sleep(20)
        share, began = watched(process.pid)
    finally:
        process.terminate()
        process.wait()
    fires = trigger_fire_table.c
    with database.read() as connection:
        rows = connection.execute(select(fires.due_at, fires.at).where(fires.due_at >= began - timedelta(seconds=1)))
        late = [(row.at - row.due_at).total_seconds() for row in rows]
    database.close()
    return late, share


def peer(folder: Path) -> tuple[list[float], list[float]]:
    """The same of APScheduler, on SQLite."""
    url = f"sqlite:///{folder}/peer.db"
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.execute(text("PRAGMA journal_mode = WAL"))
        connection.execute(text("CREATE TABLE started (at REAL)"))
    command = [sys.executable, "-c", PEER, url, str(TRIGGERS)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        process.stdout.readline()
        process.stdin.write(b"\n")
        process.stdin.flush()
        share, began = watched(process.pid)
    finally:
        process.kill()
        process.wait()
    with engine.begin() as connection:
        started = connection.execute(text("SELECT at FROM started WHERE at >= :began"), {"began": began.timestamp()})
        late = [at % 60 for (at,) in started]
    return late, share


def rows(name: str, late: list[float], share: list[float]) -> list[Row]:
    """A contender's lateness and cost."""
    ordered = sorted(late)
    near = ordered[int(len(ordered) * 0.99)]
    cost = Row(f"{name}: idle", statistics.median(share), "% of a core", min(share), max(share))
    return [
        Row(f"{name}: late, median of {len(late)} fires", statistics.median(ordered), "s", ordered[0], ordered[-1]),
        Row(f"{name}: late, 99th of a hundred", near, "s", near, ordered[-1]),
        cost,
    ]


def main() -> None:
    """On SQLite and PostgreSQL, one after the other."""
    table = Table(
        f"{TRIGGERS:,} cron triggers, some {TRIGGERS // 60} of them due in each minute",
        f"within {LATE:g} s of the due time, idle at less than {CPU:g} % of a core",
    )
    with tempfile.TemporaryDirectory() as folder:
        found = {"Headgate on SQLite": ours(Path(folder), None)}
    with tempfile.TemporaryDirectory() as folder, server(durable=True) as url:
        found["Headgate on PostgreSQL"] = ours(Path(folder), url)
    with tempfile.TemporaryDirectory() as folder:
        found["APScheduler on SQLite"] = peer(Path(folder))
    for name, (late, share) in found.items():
        table.rows += rows(name, late, share)
        met = max(late) <= LATE and max(share) < CPU
        table.notes.append(f"{name}: {'met' if met else 'NOT MET'}")
    save("scheduler", [table])


if __name__ == "__main__":
    main()
