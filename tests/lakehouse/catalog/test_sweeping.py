"""What is over is swept: staged tables that nobody committed, with their files, and tokens of work long over."""

import threading
from datetime import timedelta
from typing import Any

import pytest
from structlog.testing import capture_logs

from headgate.kit.clock import now
from headgate.lakehouse.catalog.sweeper import STAGED_FOR, WORK_KEPT, CatalogSweeper, sweep
from headgate.warehouse.store import StoreUnavailable
from tests.lakehouse.catalog.support import ROWS, Lake
from tests.lakehouse.catalog.test_work import Worker

pytestmark = pytest.mark.both_databases


def test_a_staged_table_that_nobody_committed_goes_with_its_files(served: Lake) -> None:
    tess, store = served.engine("Tess"), served.company.services.store
    change = tess.create_table_transaction("raw.left", ROWS.schema)
    change.append(ROWS)
    [(left,)] = served.rows("SELECT id FROM staged_tables")
    kept = tess.create_table("service.revenue", ROWS.schema)
    kept.append(ROWS)
    assert (served.warehouse / "tables" / left).exists()
    assert sweep(served.company.database, store, now()) == 0
    assert sweep(served.company.database, store, now() + STAGED_FOR + timedelta(minutes=1)) == 1
    assert not (served.warehouse / "tables" / left).exists()
    assert not served.rows("SELECT 1 FROM staged_tables")
    assert tess.load_table("service.revenue").scan().to_arrow().num_rows == 3


def test_a_table_that_came_to_be_by_another_way_keeps_its_files(served: Lake) -> None:
    """A declared table was staged, and then created at once, under the same id."""
    tess, store = served.engine("Tess"), served.company.services.store
    tess.create_table_transaction("service.revenue", ROWS.schema)
    tess.create_table("service.revenue", ROWS.schema).append(ROWS)
    assert served.rows("SELECT COUNT(*) FROM staged_tables") == [(1,)]
    assert sweep(served.company.database, store, now() + STAGED_FOR + timedelta(minutes=1)) == 0
    assert not served.rows("SELECT 1 FROM staged_tables")
    assert tess.load_table("service.revenue").scan().to_arrow().num_rows == 3


def test_tokens_of_work_long_over_are_forgotten(served: Lake) -> None:
    store = served.company.services.store
    Worker(served, "Tess", expires=now())
    sweep(served.company.database, store, now())
    assert served.rows("SELECT COUNT(*) FROM work_tokens") == [(1,)]
    sweep(served.company.database, store, now() + WORK_KEPT + timedelta(minutes=1))
    assert not served.rows("SELECT 1 FROM work_tokens")


def test_a_warehouse_that_is_away_ends_no_thread_and_keeps_nothing_for_ever(
    served_on_sqlite: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake, failed = served_on_sqlite, list[str]()
    monkeypatch.setattr(threading, "excepthook", failed.append)
    lake.engine("Tess").create_table_transaction("raw.left", ROWS.schema).append(ROWS)
    [(left,)] = lake.rows("SELECT id FROM staged_tables")
    store = lake.company.services.store
    sweeper = CatalogSweeper(lake.company.database, lambda: store)

    def away(*_: Any) -> None:
        raise StoreUnavailable("the bucket does not answer")

    def swept() -> None:
        sweeper.nudge(now() + STAGED_FOR + timedelta(minutes=1))
        sweeper.close()

    with monkeypatch.context() as patch:
        patch.setattr(type(store), "delete_folder", away)
        with capture_logs() as told:
            swept()
    assert not failed
    assert [(one["log_level"], "cannot clean up the catalog" in one["event"]) for one in told] == [("warning", True)]
    assert (lake.warehouse / "tables" / left).exists()
    swept()
    assert not (lake.warehouse / "tables" / left).exists()


def test_files_that_cannot_be_removed_hold_up_no_others(
    served_on_sqlite: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake, tess = served_on_sqlite, served_on_sqlite.engine("Tess")
    for name in ("first", "second"):
        tess.create_table_transaction(f"raw.{name}", ROWS.schema).append(ROWS)
    first, second = (one for (one,) in lake.rows("SELECT id FROM staged_tables ORDER BY created_at"))
    store, left = lake.company.services.store, list[str]()
    usual = store.delete_folder

    def refused(path: str) -> None:
        if first in path:
            raise PermissionError(13, "Permission denied")
        usual(path)

    monkeypatch.setattr(store, "delete_folder", refused)
    with pytest.raises(PermissionError):
        sweep(lake.company.database, store, now() + STAGED_FOR + timedelta(minutes=1), left)
    assert left == [first]
    assert not (lake.warehouse / "tables" / second).exists()
