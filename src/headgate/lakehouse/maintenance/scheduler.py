"""Runs passes over the tables in a thread of the scheduler, when they are due.

The scheduler's lease ensures a single pass at a time. After a crash, the next scheduler continues after the last
recorded table; processing a table is idempotent.
"""

import threading
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from sqlalchemy import Connection
from sqlalchemy.engine import RowMapping

from headgate.kit.clock import now as clock
from headgate.kit.crash_points import crash_point
from headgate.kit.cron import Schedule
from headgate.kit.log import get_logger
from headgate.lakehouse.maintenance import repository, rewrite_job
from headgate.lakehouse.maintenance.retained_metadata import RunCheckpoints, oldest_needed
from headgate.lakehouse.maintenance.table_maintenance import TableWork
from headgate.platform.audit.events import Event, record
from headgate.platform.unit_of_work.call import SYSTEM
from headgate.platform.unit_of_work.services import Services
from headgate.warehouse.store import StoreUnavailable

ENDED = "maintenance.ended"
PAUSE, LONG_PAUSE = 1.0, 5.0
AWAY = "Cannot reach the warehouse; the next pass tries again"
_log = get_logger("headgate.maintenance")


def work(
    services: Services, runs: RunCheckpoints, now: datetime, is_stopping: Callable[[], bool] = lambda: False
) -> bool:
    """Finish passes whose compactions are done, then process the pass in progress or the oldest queued one; returns
    whether there was one.
    """
    database = services.database
    with database.read() as connection:
        row, rewriting = repository.first_open(connection), repository.compacting(connection)
    for value in rewriting:
        database.write(lambda connection, entry=value: _settle(connection, entry, now))  # type: ignore[misc]
    if row is None:
        return False
    try:
        if _look_at_all(services, runs, _begun(services, runs, row, now), now, is_stopping):
            database.write(lambda connection: _settle(connection, row["id"], now))
    except StoreUnavailable as trouble:
        _log.warning("maintenance stops", reason=trouble.reason)
        database.write(lambda connection: _end(connection, row["id"], now, "failed", AWAY))
    return True


def _begun(services: Services, runs: RunCheckpoints, row: RowMapping, now: datetime) -> RowMapping:
    def begin(connection: Connection) -> RowMapping:
        if row["state"] == "queued":
            count = len(repository.tables(connection, row["table_id"], None))
            repository.change(connection, row["id"], state="running", started_at=now, tables=count)
            if not row["dry_run"]:
                age = timedelta(days=services.settings.maintenance.orphan_days)
                runs.forget_before(connection, oldest_needed(connection, runs, now, age))
        result = repository.one(connection, row["id"])
        assert result is not None  # noqa: S101 - it was there in this transaction
        return result

    return services.database.write(begin)


def _look_at_all(
    services: Services, runs: RunCheckpoints, row: RowMapping, now: datetime, is_stopping: Callable[[], bool]
) -> bool:
    """Process every table; returns whether the pass was completed."""
    database = services.database
    with database.read() as connection:
        tables = repository.tables(connection, row["table_id"], row["after_id"])
    began = time.monotonic()
    for table in tables:
        if is_stopping():
            return False
        moment = now + timedelta(seconds=time.monotonic() - began)
        result = TableWork(services, runs, table, moment, dry_run=row["dry_run"], is_stopping=is_stopping).do()
        if result.is_worth_telling:
            told = {
                "outcome": result.outcome,
                "note": result.note,
                "snapshots": result.snapshots,
                "files": result.files,
            }
            _log.info("a table was maintained", table=table, dry_run=row["dry_run"], **told, bytes=result.bytes)
        crash_point("maintenance: table done")
        database.write(partial(repository.note, row=row, table_id=table, result=result, now=moment))
    database.write(lambda connection: repository.change(connection, row["id"], state="compacting"))
    return True


def _settle(connection: Connection, pass_id: str, now: datetime) -> None:
    """Finish a pass when no compaction of its tables is running or queued."""
    if not repository.summary(connection, pass_id)["compactions_open"]:
        _end(connection, pass_id, now, "succeeded", None)


def _end(connection: Connection, pass_id: str, now: datetime, state: str, error: str | None) -> None:
    rewrite_job.give_up(connection, now, pass_id)
    repository.change(connection, pass_id, state=state, ended_at=now, error=error)
    after: dict[str, Any] = {"pass": pass_id, "state": state, **repository.summary(connection, pass_id)}
    record(connection, [Event(now, ENDED, allowed=True, actor_id=SYSTEM.member, via=["maintenance"], after=after)])
    _log.info("maintenance has ended", **after)


class Maintainer:
    """Queues due passes and runs open ones in a separate thread."""

    def __init__(self, services: Services, runs: RunCheckpoints) -> None:
        self._runs = runs
        self._services, self._settings = services, services.settings.maintenance
        self._schedule = Schedule(self._settings.schedule, self._settings.time_zone)
        self._due = self._schedule.after(clock())
        self._stopping, self._resting = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None

    def rest(self) -> None:
        """Start no further table, because another process holds the lease."""
        self._resting.set()

    def _is_stopping(self) -> bool:
        return self._stopping.is_set() or self._resting.is_set()

    def nudge(self, now: datetime) -> None:
        """Start the due or requested pass, unless one is in progress. A check costs one statement."""
        self._resting.clear()
        if self._thread is not None and self._thread.is_alive():
            return
        self._fire(now)
        with self._services.database.read() as connection:
            if not repository.is_open(connection):
                return
        self._thread = threading.Thread(target=self._round, name="maintenance", daemon=True)
        self._thread.start()

    def _fire(self, now: datetime) -> None:
        """Queue the due pass, if no other scheduler has."""
        due = self._due
        if due is None or now < due:
            return
        self._due = self._schedule.after(now)
        if self._settings.enabled:
            self._services.database.write(lambda connection: repository.ask(connection, now, due=due))

    def forget(self, now: datetime) -> None:
        """Delete old passes."""
        before = now - timedelta(days=self._settings.history_days)
        self._services.database.write(lambda connection: repository.forget(connection, before))

    def _round(self) -> None:
        try:
            while not self._is_stopping() and work(self._services, self._runs, clock(), self._is_stopping):
                pass
            # While Spark compacts, only periodic checks are needed.
            self._stopping.wait(PAUSE)
        except Exception as error:  # noqa: BLE001 - the next round goes on from here
            _log.warning("cannot maintain right now; trying again", error=(str(error).splitlines() or [""])[0])
            self._stopping.wait(LONG_PAUSE)

    def close(self) -> None:
        """Start no further table; the next process completes an interrupted pass."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(timeout=5)
