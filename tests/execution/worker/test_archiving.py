"""When a worker sees to the archive of Spark's classes."""

import threading
from pathlib import Path
from typing import Any

import pytest

from headgate.execution.spark import archive_training, jars
from headgate.execution.worker import class_archive as archiving
from headgate.settings.settings import Settings
from tests.execution.worker.support import StandIn
from tests.support.spark import within


class Watched(StandIn):
    """A Spark that counts how often it was looked at."""

    looks = 0

    def state(self) -> dict[str, Any]:
        self.looks += 1
        return super().state()


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The jars that an archive was asked for."""
    found: list[Path] = []
    monkeypatch.setattr(archiving, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(archive_training, "ensure", lambda given, _: found.append(given.iceberg))
    return found


def threads() -> list[threading.Thread]:
    return [one for one in threading.enumerate() if one.name == "archiving"]


def test_it_waits_until_spark_is_up_and_asks_once(tmp_path: Path, asked: list[Path]) -> None:
    spark = Watched(is_down=True)
    part = archiving.Archiving(Settings(data_dir=tmp_path), spark)
    part.start()
    within(60, lambda: spark.looks > 3)
    assert asked == []
    spark.is_down = False
    within(60, lambda: asked and not threads())
    assert asked == [jars.ensure().iceberg]


def test_a_worker_that_stops_does_not_wait_for_it(tmp_path: Path, asked: list[Path]) -> None:
    part = archiving.Archiving(Settings(data_dir=tmp_path), Watched(is_down=True))
    part.start()
    part.stop()
    within(60, lambda: not threads())
    assert asked == []


@pytest.mark.parametrize("spark", [{"sandbox": "off"}, {"member_url": "sc://127.0.0.1:64999"}])
def test_without_a_sandbox_of_its_own_it_does_nothing(tmp_path: Path, spark: dict[str, str]) -> None:
    archiving.Archiving(Settings(data_dir=tmp_path, spark=spark), Watched()).start()
    assert threads() == []
