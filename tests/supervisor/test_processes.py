"""Processes that are kept alive: the more often one dies at once, the longer it waits for its next start."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from headgate.settings.settings import Settings
from headgate.supervisor import processes, run
from headgate.supervisor.processes import SupervisedProcess


class Kept:
    """A process that sleeps, and the ticks by which it is kept."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, longest: float = 30) -> None:
        self.now = 1000.0
        monkeypatch.setattr(processes, "time", SimpleNamespace(monotonic=lambda: self.now))
        monkeypatch.setattr(processes, "fork", lambda _: os.posix_spawnp("sleep", ["sleep", "60"], os.environ))
        self.child = SupervisedProcess("short", lambda: None, longest)
        self.child.start()

    def dies(self, after: float) -> float:
        """How long it waits for its next start, when it dies after having lived so long."""
        self.now += after
        assert self.child.check() is None
        self.end()
        assert self.child.check() is None
        waits, self.now = self.child.due - self.now, self.child.due
        assert self.child.check() is None
        return round(waits, 1)

    def end(self) -> None:
        """Kill it, and leave its status to whoever keeps it."""
        assert self.child.pid
        os.kill(self.child.pid, signal.SIGKILL)
        os.waitid(os.P_PID, self.child.pid, os.WEXITED | os.WNOWAIT)


@pytest.mark.processes
def test_one_that_dies_at_once_waits_longer_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Kept(monkeypatch)
    assert [kept.dies(0.1) for _ in range(4)] == [0.4, 0.8, 1.6, 3.2]
    # One that lived well for a while did not fail again and again.
    assert [kept.dies(33) for _ in range(2)] == [0.4, 0.4]
    assert kept.dies(1) == 0.8
    kept.end()
    kept.child.check()


@pytest.mark.processes
def test_it_waits_no_longer_than_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Kept(monkeypatch, longest=1)
    assert [kept.dies(0.1) for _ in range(4)] == [0.4, 0.8, 1, 1]
    kept.end()
    kept.child.check()


@pytest.mark.processes
def test_one_that_dies_for_hours_is_started_still(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Kept(monkeypatch)
    kept.child.failures, kept.child.delay = 100_000, 30
    assert kept.dies(0.1) == 30
    kept.end()
    kept.child.check()


@pytest.mark.processes
def test_a_child_ends_as_one_where_nothing_can_be_written() -> None:
    code = (
        "import os, sys; from headgate.supervisor.processes import fork\n"
        "def work():\n    sys.stdout.write('x'); raise ValueError\n"
        "try:\n    child = fork(work)\nexcept OSError:\n    os.write(9, b'escaped;'); raise\n"
        "os.write(9, b'%d;' % os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    read, write = os.pipe()
    with Path("/dev/full").open("w") as full:
        command = ["bash", "-c", f'exec 9>&{write}; exec "$@"', "bash", sys.executable, "-c", code]
        own = {**os.environ, "PYTHONUNBUFFERED": ""}
        subprocess.run(command, stdout=full, stderr=full, timeout=60, check=False, pass_fds=(write,), env=own)
    os.close(write)
    with os.fdopen(read, "rb") as told:
        assert told.read() == b"1;", "the parent alone goes on"


def test_all_processes_wait_as_the_settings_say(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, server={"restart_seconds": 2.5, "processes": 2})
    with socket.create_server(("127.0.0.1", 0)) as listener:
        assert [child.longest for child in run._children(settings, listener)] == [2.5] * 4
