"""A server whose own disk is full: what its worker has under way says so, and ends as soon as there is room again."""

import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, event

from headgate.execution.steps.context import Context, Result
from headgate.execution.worker import run_execution as execution
from headgate.execution.worker import server_link as link
from headgate.execution.worker.server_link import Link, ServerFull
from headgate.kit.errors import DiskFull
from tests.execution.worker.support import StandIn, running, served, working
from tests.lakehouse.sql.support import STATEMENTS
from tests.pipelines.runs.support import make, show, start
from tests.support.company import Company
from tests.support.installation import eventually


class Disk:
    """That of every database of this process; when it is full, nothing is committed."""

    def __init__(self) -> None:
        self.is_full, self.refused = False, 0

    def check(self, *_: Any) -> None:
        if self.is_full:
            self.refused += 1
            error = sqlite3.OperationalError("database or disk is full")
            error.sqlite_errorcode = sqlite3.SQLITE_FULL
            raise error


@pytest.fixture
def disk() -> Iterator[Disk]:
    found = Disk()
    event.listen(Engine, "commit", found.check)
    yield found
    found.is_full = False
    event.remove(Engine, "commit", found.check)


def test_a_run_says_that_the_servers_disk_is_full_and_ends_when_there_is_room(
    millrace_on_sqlite: Company, tmp_path: Path, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    millrace, ends, flush = millrace_on_sqlite, threading.Event(), execution.RunAttempt._flush

    def flushes(*args: Any) -> None:
        ends.set()
        flush(*args)

    def fills(_: Any, context: Context) -> Result:
        context.log("It is written")
        disk.is_full = True
        return Result(rows_out=1)

    monkeypatch.setattr(execution, "execute", fills)
    monkeypatch.setattr(link, "PATIENCE", 0.5)
    monkeypatch.setattr(execution.RunAttempt, "_flush", flushes)
    run = start(millrace, make(millrace))
    with running(millrace, tmp_path / "runs"):
        assert ends.wait(60)
        assert show(millrace, run)["state"] == "running", "there is no room to say more"
        refused = millrace.as_("Tess").post(f"/api/runs/{run}/cancel", None)
        assert (refused.status_code, refused.json()["code"]) == (507, "disk_full")
        assert refused.json()["detail"] == DiskFull.title
        disk.is_full = False
        eventually(lambda: show(millrace, run)["state"] == "failed")
    found = show(millrace, run)
    assert (found["error_code"], found["error"]) == ("DISK_FULL", f"{DiskFull.title}. Nothing was published")
    lines = [one["text"] for one in millrace.as_("Tess").get(f"/api/runs/{run}/log").json()["items"]]
    assert lines[-2:] == ["It is written", found["error"]]


def test_a_run_goes_on_if_there_is_room_soon(
    millrace_on_sqlite: Company, tmp_path: Path, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fills(*_: Any) -> Result:
        disk.is_full = True
        return Result(rows_out=1)

    monkeypatch.setattr(execution, "execute", fills)
    run = start(millrace_on_sqlite, make(millrace_on_sqlite))
    with running(millrace_on_sqlite, tmp_path / "runs"):
        eventually(lambda: disk.refused > 2)
        disk.is_full = False
        eventually(lambda: show(millrace_on_sqlite, run)["state"] == "succeeded")


def test_a_statement_says_so_too(millrace_on_sqlite: Company, monkeypatch: pytest.MonkeyPatch) -> None:
    millrace, tess = millrace_on_sqlite, millrace_on_sqlite.as_("Tess")

    def full(*_: Any) -> None:
        raise ServerFull

    monkeypatch.setattr(Link, "upload", full)
    with served(millrace) as address, working(millrace, address, StandIn()):
        made = tess.post(STATEMENTS, {"sql": "rows 90000"}).json()["id"]
        eventually(lambda: tess.get(f"{STATEMENTS}/{made}").json()["state"] == "failed")
    error = tess.get(f"{STATEMENTS}/{made}").json()["error"]
    assert (error["code"], error["message"]) == ("DISK_FULL", DiskFull.title)
