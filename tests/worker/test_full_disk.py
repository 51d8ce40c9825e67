"""A worker whose disk is full says so of its runs, and goes on."""

from pathlib import Path
from typing import Any

import pytest

from headgate.kit.ids import new_id
from headgate.worker.link import Link
from headgate.worker.runs import Runs
from tests.runs.support import make, show, start
from tests.support.company import Company
from tests.support.installation import eventually
from tests.worker.support import StandIn, served


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
    secret = millrace.client.app.state.services.worker_secret  # type: ignore[attr-defined]
    with served(millrace) as address:
        link = Link(address, secret, new_id("worker"), "here")
        runs = Runs(link, millrace.settings, folder, StandIn(), StandIn())
        runs.start()
        try:
            eventually(lambda: show(millrace, run)["state"] == "failed")
        finally:
            runs.stop()
            link.close()
    found = show(millrace, run)
    assert (found["error_code"], "an operator makes room" in found["error"]) == ("DISK_FULL", True)
    assert str(tmp_path) not in str(found)
