"""What the servers of tests keep in memory does not stay there."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.support.memory import folder_in

pytestmark = pytest.mark.processes


def test_what_killed_processes_left_goes_and_what_living_ones_have_stays(tmp_path: Path) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    left, kept, foreign = (tmp_path / name for name in (f"db-1.of-{ended.pid}", f"db-2.of-{os.getppid()}", "other"))
    for one in (left, kept, foreign):
        one.mkdir()
        (one / "file").touch()
    with folder_in(tmp_path, "db-") as made:
        assert made.is_dir()
        assert [one.exists() for one in (left, kept, foreign)] == [False, True, True]
    assert not made.exists()
