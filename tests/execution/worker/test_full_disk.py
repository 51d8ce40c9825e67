"""A worker whose disk is full says so of its runs, and goes on."""

from pathlib import Path
from typing import Any

import pytest

from tests.execution.worker.support import running
from tests.pipelines.runs.support import make, show, start
from tests.support.company import Company
from tests.support.installation import eventually


def test_a_run_is_told_that_the_disk_of_its_worker_is_full(
    millrace_on_sqlite: Company, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    millrace, folder, mkdir = millrace_on_sqlite, tmp_path / "runs", Path.mkdir

    def full(path: Path, *args: Any, **more: Any) -> None:
        if folder in path.parents:
            raise OSError(28, "No space left on device", str(path))
        mkdir(path, *args, **more)

    monkeypatch.setattr(Path, "mkdir", full)
    run = start(millrace, make(millrace))
    with running(millrace, folder):
        eventually(lambda: show(millrace, run)["state"] == "failed")
    found = show(millrace, run)
    assert (found["error_code"], "the operator must free space" in found["error"]) == ("DISK_FULL", True)
    assert str(tmp_path) not in str(found)
