"""Maintenance of one table in a pass: snapshots, orphan files, and whether to compact it.

Every step is atomic or idempotent: commits are atomic, and only unreferenced files are removed. After a crash, the next
pass repeats the table.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, select

from headgate.kit.errors import Problem
from headgate.kit.log import get_logger
from headgate.lakehouse.catalog import metadata_files
from headgate.lakehouse.catalog.errors import NotValid
from headgate.lakehouse.catalog.files import Root
from headgate.lakehouse.catalog.models import table_pointer_table
from headgate.lakehouse.catalog.pointers import Pointer
from headgate.lakehouse.maintenance.compaction_candidates import small_files
from headgate.lakehouse.maintenance.orphan_files import Orphans
from headgate.lakehouse.maintenance.retained_metadata import RunCheckpoints, oldest_needed, skip_reason
from headgate.lakehouse.maintenance.snapshot_expiry import expire, surplus
from headgate.platform.audit.events import Event, record
from headgate.platform.unit_of_work.call import SYSTEM
from headgate.platform.unit_of_work.services import Services
from headgate.warehouse.store import StoreUnavailable

REMOVES = "maintenance.removes"
OPTED_OUT, KEEPS_FILES = "custom.maintenance", "gc.enabled"
_pointers = table_pointer_table.c
_log = get_logger("headgate.maintenance")


@dataclass(slots=True)
class MaintenanceResult:
    """Results of a table, actual or projected."""

    outcome: str = "done"
    note: str | None = None
    snapshots: int = 0
    files: int = 0
    bytes: int = 0
    small_files: int = 0

    @property
    def is_worth_telling(self) -> bool:
        """Whether anything happened."""
        return self.outcome != "done" or bool(self.snapshots or self.files or self.small_files)


class TableWork:
    """Maintenance of one table. With `dry_run`, it only determines the work."""

    def __init__(
        self,
        services: Services,
        runs: RunCheckpoints,
        table_id: str,
        now: datetime,
        *,
        dry_run: bool = False,
        is_stopping: Callable[[], bool] = lambda: False,
    ) -> None:
        self._services, self._runs, self._table, self._now = services, runs, table_id, now
        self._dry_run, self._is_stopping = dry_run, is_stopping
        self._settings = services.settings.maintenance
        self._found = MaintenanceResult()

    def do(self) -> MaintenanceResult:
        """Run all steps. Errors of the table are reported in the result; only warehouse errors are raised."""
        try:
            self._do()
        except StoreUnavailable:
            raise
        except (Problem, OSError) as error:
            _log.warning("a table cannot be maintained", table=self._table, error=str(error).partition("\n")[0])
            self._found.outcome = "failed"
            self._found.note = error.detail if isinstance(error, Problem) else "its files are unreadable"
        return self._found

    def _do(self) -> None:
        with self._services.database.read() as connection:
            reason = skip_reason(connection, self._table)
            pointer = pointer_of(connection, self._table)
        table = self._parsed(pointer) if pointer else None
        properties = table.properties if table else {}
        if reason is None and properties.get(OPTED_OUT, "").lower() == "off":
            reason = f"its property {OPTED_OUT} is off"
        if reason is not None:
            self._found.outcome, self._found.note = "skipped", reason
            return
        if properties.get(KEEPS_FILES, "").lower() != "false":
            if pointer is not None:
                self._expire(pointer, table)
            self._remove_orphans()
        if table is not None and self._settings.compact:
            self._found.small_files = small_files(Root(self._services.store, self._table), table, self._settings)

    def _parsed(self, pointer: Pointer) -> Any:
        store = self._services.store
        content = metadata_files.read_metadata(store, self._table, pointer.metadata_file, pointer.metadata_sha256)
        try:
            return metadata_files.parse(content)
        except (ValueError, TypeError, KeyError) as error:
            raise NotValid(f"Cannot read the table's metadata: {type(error).__name__}") from error

    def _expire(self, pointer: Pointer, table: Any) -> None:
        gone = surplus(table, self._settings, self._now)
        if gone and (self._dry_run or expire(self._services, self._table, pointer, table, gone, self._now)):
            self._found.snapshots = len(gone)

    def _remove_orphans(self) -> None:
        services, age = self._services, timedelta(days=self._settings.orphan_days)
        with services.database.read() as connection:
            before = oldest_needed(connection, self._runs, self._now, age)
        orphans = Orphans(services.database, services.store, self._runs, self._table, before)
        files = orphans.of(orphans.listed())
        if files and not self._dry_run:
            self._tell(len(files), sum(file.size for file in files))
            files = orphans.remove(files, self._is_stopping)
        self._found.files, self._found.bytes = len(files), sum(file.size for file in files)

    def _tell(self, files: int, size: int) -> None:
        """Write the audit event before the first file is removed."""
        event = Event(
            self._now,
            REMOVES,
            allowed=True,
            actor_id=SYSTEM.member,
            action="delete",
            kind="table",
            resource_id=self._table,
            via=["maintenance"],
            after={"files": files, "bytes": size},
        )
        self._services.database.write(lambda connection: record(connection, [event]))


def pointer_of(connection: Connection, table_id: str) -> Pointer | None:
    """A table's public pointer."""
    row = connection.execute(select(table_pointer_table).where(_pointers.table_id == table_id)).mappings().one_or_none()
    names = ("uuid", "version", "metadata_file", "metadata_sha256", "snapshot_id")
    return Pointer(*(row[name] for name in names)) if row else None
