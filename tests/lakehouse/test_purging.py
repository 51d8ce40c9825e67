"""What was deleted ends when its time is over: its own folders and nothing beside, whatever happens in between."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from headgate.kit.clock import now
from headgate.kit.database import Database
from headgate.kit.errors import NotFound
from headgate.lakehouse.layers.defaults import make_layers
from headgate.lakehouse.trash import deletion
from headgate.lakehouse.trash.purger import Purger, purge
from headgate.settings.settings import Settings
from headgate.supervisor.preflight import check
from headgate.warehouse.folder import FolderStore
from tests.lakehouse.support import acting, traces
from tests.support.company import Company

pytestmark = pytest.mark.both_databases

LATER = timedelta(days=8)


class Crash(Exception):
    """The process ends here."""


class Fragile(FolderStore):
    """A folder whose nth deletion never returns."""

    def __init__(self, root: Path, after: int) -> None:
        super().__init__(root)
        self.left = after

    def delete_folder(self, folder: str) -> None:
        if self.left == 0:
            raise Crash
        self.left -= 1
        super().delete_folder(folder)


def filled(root: Path, *paths: str) -> FolderStore:
    store = FolderStore(root)
    for path in paths:
        store.write(path, [b"x"])
    return store


def paths(store: FolderStore) -> set[str]:
    return {entry.path for folder in ("tables", "metadata", "volumes", "uploads") for entry in store.files(folder)}


def deleted(millrace: Company, kind: str, name: str) -> str:
    item = millrace.id(kind, name)
    acting(millrace, "Tess", lambda call: deletion.delete_item(call, item))
    return item


def test_folders_and_row_of_what_is_due_end_and_nothing_else_does(millrace: Company, tmp_path: Path) -> None:
    kept, volume = millrace.id("table", "raw.payments"), millrace.id("volume", "raw.invoices")
    table = deleted(millrace, "table", "raw.orders")
    deleted(millrace, "volume", "raw.invoices")
    ours = {f"tables/{table}/data/a.parquet", f"metadata/{table}/0.json", f"volumes/{volume}/f"}
    others = {f"tables/{kept}/data/a.parquet", f"metadata/{kept}/0.json", "uploads/upl_other/0"}
    store = filled(tmp_path / "w", *ours, *others)
    assert purge(millrace.database, store, now()) == 0
    assert paths(store) == ours | others
    assert purge(millrace.database, store, now() + LATER) == 2
    assert paths(store) == others
    assert traces(millrace, table) == traces(millrace, volume) == set()
    with pytest.raises(NotFound):
        acting(millrace, "Tess", lambda call: deletion.restore_item(call, table))
    told = millrace.as_("Adam").get("/api/audit", event="access.changed", limit=2).json()["items"]
    assert {one["after"]["change"] for one in told} == {"purge_table", "purge_volume"}


@pytest.mark.parametrize("after", [0, 1])
def test_a_purge_that_was_cut_short_is_taken_up_and_restores_nothing(
    millrace: Company, tmp_path: Path, after: int
) -> None:
    table = deleted(millrace, "table", "raw.orders")
    store = filled(tmp_path / "w", f"tables/{table}/a", f"metadata/{table}/0.json")
    with pytest.raises(Crash):
        purge(millrace.database, Fragile(tmp_path / "w", after), now() + LATER)
    for who in ("Tess", "Adam"):
        with pytest.raises(NotFound):
            acting(millrace, who, lambda call: deletion.restore_item(call, table))
    assert purge(millrace.database, store, now() + LATER) == 1
    assert paths(store) == set()
    assert purge(millrace.database, store, now() + LATER) == 0


def test_what_is_restored_in_time_is_not_purged(millrace: Company, tmp_path: Path) -> None:
    table = deleted(millrace, "table", "raw.orders")
    store = filled(tmp_path / "w", f"tables/{table}/a")
    acting(millrace, "Tess", lambda call: deletion.restore_item(call, table))
    assert purge(millrace.database, store, now() + LATER) == 0
    assert paths(store) == {f"tables/{table}/a"}


def test_tables_of_a_layer_that_is_gone_for_good_go_too(millrace: Company, tmp_path: Path) -> None:
    table, layer = deleted(millrace, "table", "service.revenue"), millrace.id("layer", "service")
    acting(millrace, "Tess", lambda call: deletion.delete_item(call, layer))
    later = (now() + LATER * 2).isoformat(" ") if millrace.database.dialect == "postgresql" else "2999-01-01 00:00:00"
    millrace.database.write(
        lambda c: c.exec_driver_sql(f"UPDATE deleted_items SET purge_at = '{later}' WHERE id = '{table}'")
    )
    store = filled(tmp_path / "w", f"tables/{table}/a")
    moment = now() + LATER
    assert purge(millrace.database, store, moment) == 1
    assert purge(millrace.database, store, moment) == 1
    assert paths(store) == set()


def test_the_purger_works_by_itself_and_outlives_trouble(millrace: Company, tmp_path: Path) -> None:
    table = deleted(millrace, "table", "raw.orders")
    store = filled(tmp_path / "w", f"tables/{table}/a")

    def broken() -> Any:
        raise OSError("the disk is gone")

    for opened in (broken, lambda: store):
        purger = Purger(millrace.database, opened)
        purger.nudge(now() + LATER)
        assert purger._thread
        purger._thread.join(timeout=60)
        purger.close()
    assert paths(store) == set()


# The layers of a new installation


def test_a_new_installation_has_three_layers_once(database: Database) -> None:
    assert database.write(lambda c: make_layers(c, now()))
    assert not database.write(lambda c: make_layers(c, now()))
    with database.read() as connection:
        rows = connection.exec_driver_sql(
            "SELECT rs.name, lt.title, rs.created_by_id FROM resources rs JOIN lake_texts lt ON lt.resource_id = rs.id "
            "WHERE rs.kind = 'layer' AND lt.field_id = 0 ORDER BY rs.name"
        ).all()
    assert [tuple(row) for row in rows] == [
        ("raw", "Raw", None),
        ("service", "Service", None),
        ("trusted", "Trusted", None),
    ]


def test_one_that_is_used_gets_none(millrace: Company) -> None:
    deleted(millrace, "table", "service.revenue")
    acting(millrace, "Tess", lambda call: deletion.delete_item(call, millrace.id("layer", "service")))
    assert not millrace.database.write(lambda c: make_layers(c, now()))


def test_preparing_an_installation_makes_them(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path)
    check(settings)
    check(settings)
    database = Database(settings.database_url)
    with database.read() as connection:
        rows = connection.exec_driver_sql("SELECT name FROM resources ORDER BY name").all()
    database.close()
    assert [row[0] for row in rows] == ["raw", "service", "trusted"]
