"""The sweeper removes what no row names, and nothing else."""

import os
from datetime import timedelta

import pytest

from headgate.kit.clock import now
from headgate.lakehouse.files import service as files_service
from headgate.lakehouse.trash.deletion import delete_item, restore_item
from headgate.lakehouse.uploads import service as uploads_service
from headgate.lakehouse.uploads.sweeper import Sweeper, expire, sweep
from headgate.supervisor.scheduler import Scheduler
from headgate.warehouse.store import Store
from tests.lakehouse.files_support import Volume, aged
from tests.lakehouse.support import acting
from tests.lakehouse.test_uploads import SUM, Upload, dying, sent
from tests.support.company import Company
from tests.support.installation import eventually

pytestmark = pytest.mark.both_databases

TWO_DAYS = 2 * 86400


@pytest.fixture
def volume(millrace: Company) -> Volume:
    return Volume(millrace)


def swept(volume: Volume) -> int:
    return sweep(volume.millrace.database, volume.store, now(), lambda: False)


def age(volume: Volume) -> None:
    aged(volume.millrace.settings.data_dir / "warehouse", TWO_DAYS)


def orphan(volume: Volume, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes of a file whose row was never written."""
    with monkeypatch.context() as patched:
        patched.setattr(files_service, "place", dying)
        assert volume.put("Tom", "lost").status_code == 500


def test_old_bytes_without_a_row_are_removed(volume: Volume, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(3):
        volume.put("Tom", f"kept {number}")
        orphan(volume, monkeypatch)
    assert swept(volume) == 0
    age(volume)
    assert swept(volume) == 3
    assert volume.is_whole()
    assert len(volume.paths()) == 3


def test_what_a_killed_write_left_is_removed(volume: Volume) -> None:
    volume.put("Tom", "kept")
    half = volume.millrace.settings.data_dir / "warehouse/volumes" / volume.id / "new-abc123"
    half.write_bytes(b"half")
    age(volume)
    assert swept(volume) == 1
    assert not half.exists()
    assert volume.is_whole()


def test_a_volume_that_can_be_restored_keeps_its_files(volume: Volume) -> None:
    volume.put("Tom", "a", b"one")
    age(volume)
    acting(volume.millrace, "Tess", lambda call: delete_item(call, volume.id))
    assert swept(volume) == 0
    acting(volume.millrace, "Tess", lambda call: restore_item(call, volume.id))
    assert swept(volume) == 0
    assert volume.get("Tom", "a").content == b"one"


def test_a_finish_that_died_can_be_repeated_however_late(volume: Volume, monkeypatch: pytest.MonkeyPatch) -> None:
    upload = sent(volume)
    with monkeypatch.context() as patched:
        patched.setattr(uploads_service, "_conclude", dying)
        assert upload.finish().status_code == 500
    age(volume)
    assert swept(volume) == 0
    assert upload.finish(SUM).status_code == 200
    assert volume.is_whole()


def test_uploads_whose_time_is_over_go_with_their_parts(volume: Volume, monkeypatch: pytest.MonkeyPatch) -> None:
    over, under_way = sent(volume, path="a"), sent(volume, path="b")
    with monkeypatch.context() as patched:
        patched.setattr(uploads_service, "_conclude", dying)
        assert over.finish().status_code == 500
    later = now() + timedelta(hours=25)
    with volume.millrace.database.engine.begin() as connection:
        upload = under_way.at.rpartition("/")[2]
        connection.exec_driver_sql(
            f"UPDATE uploads SET expires_at = '2999-01-01 00:00:00.000000' WHERE id = '{upload}'"
        )
    assert expire(volume.millrace.database, volume.store, later, lambda: False) == 1
    assert {path.split("/")[1] for path in volume.parts()} == {upload}
    assert over.finish().status_code == 404
    age(volume)
    assert swept(volume) == 1
    assert under_way.finish(SUM).status_code == 200
    assert volume.is_whole()


def test_parts_without_an_upload_are_removed(volume: Volume) -> None:
    upload = Upload(volume, "Tom")
    upload.send(b"x", 0)
    volume.store.write("uploads/upl_00000000000000000000/00000000000000000000", [b"late"])
    assert swept(volume) == 0
    age(volume)
    assert swept(volume) == 1
    assert upload.offset() == 1


def test_more_than_a_batch_is_swept(volume: Volume) -> None:
    root = volume.millrace.settings.data_dir / "warehouse/volumes" / volume.id
    root.mkdir(parents=True)
    for number in range(1201):
        (root / f"fil_{number:020}").write_bytes(b"")
    age(volume)
    assert swept(volume) == 1201


def test_the_scheduler_sweeps(millrace_on_sqlite: Company, monkeypatch: pytest.MonkeyPatch) -> None:
    volume = Volume(millrace_on_sqlite)
    volume.put("Tom", "kept")
    orphan(volume, monkeypatch)
    age(volume)
    scheduler = Scheduler(millrace_on_sqlite.settings)
    try:
        assert scheduler.tick()
        eventually(volume.is_whole)
    finally:
        scheduler.close()
    assert volume.paths() == ["kept"]


def test_a_store_in_trouble_ends_no_scheduler(millrace_on_sqlite: Company) -> None:
    def broken() -> Store:
        raise OSError(os.strerror(5))

    sweeper = Sweeper(millrace_on_sqlite.database, broken)
    sweeper.nudge(now())
    sweeper.close()
