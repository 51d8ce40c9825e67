"""Maintenance of the company's tables, as the scheduler does it, at any time."""

from datetime import datetime, timedelta
from typing import Any

from headgate.kit.clock import now
from headgate.lakehouse.maintenance import repository
from headgate.lakehouse.maintenance import scheduler as passing
from headgate.lakehouse.maintenance.table_maintenance import MaintenanceResult, TableWork
from headgate.pipelines.runs import checkpoints
from headgate.settings.maintenance import MaintenanceSettings
from tests.lakehouse.catalog.support import ROWS, Lake


def services(lake: Lake, **settings: Any) -> Any:
    """What maintenance works with; settings hold from here on."""
    found = lake.company.services
    if settings:
        found.settings.maintenance = MaintenanceSettings(**settings)
    return found


def later(days: float) -> datetime:
    """A moment in so many days."""
    return now() + timedelta(days=days)


def maintain(
    lake: Lake, name: str = "raw.events", *, days: float = 4, dry_run: bool = False, **settings: Any
) -> MaintenanceResult:
    """One table, in so many days from now."""
    table = lake.company.id("table", name)
    return TableWork(services(lake, **settings), checkpoints, table, later(days), dry_run=dry_run).do()


def whole_pass(lake: Lake, *, days: float = 4, is_stopping: Any = lambda: False, **asked: Any) -> str:
    """A pass that was asked for, as far as it comes without a worker; its id."""
    found = services(lake)
    identifier = found.database.write(lambda c: repository.ask(c, later(days), **asked))
    assert identifier
    passing.work(found, checkpoints, later(days), is_stopping)
    return str(identifier)


def files(lake: Lake, name: str = "raw.events") -> set[str]:
    """The files of a table: its data, manifests and metadata."""
    table, store = lake.company.id("table", name), services(lake).store
    return {one.path for folder in ("tables", "metadata") for one in store.files(f"{folder}/{table}")}


def make(lake: Lake, name: str = "raw.events", rows: Any = ROWS) -> Any:
    """A table of Tess with rows, as her engine has it."""
    table = lake.engine("Tess").create_table(name, rows.schema)
    table.append(rows)
    return table


def count(lake: Lake, name: str = "raw.events", snapshot: int | None = None) -> int:
    """How many rows a stock client finds."""
    return int(lake.engine("Tess").load_table(name).scan(snapshot_id=snapshot).to_arrow().num_rows)
