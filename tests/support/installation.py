"""An installation of its own, run as a user runs it: `headgate up` in a process."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any, ClassVar
from unittest.mock import patch

import httpx2 as httpx

from headgate.access.worlds import read_world
from headgate.kit.clock import now
from headgate.kit.database import Database
from headgate.migrations import upgrade
from headgate.settings.settings import load as load_settings
from headgate.supervisor.preflight import check, opened
from headgate.worlds.loader import load
from tests.support import command, java
from tests.support.apps import app_for
from tests.support.databases import WORLD
from tests.support.serving import served


class Installation:
    """A data folder, settings, and the processes on it."""

    # A JVM for each of many short lives would cost more than all else, and such a life ends before Java has compiled.
    DEFAULTS: ClassVar[Mapping[str, str]] = {"HEADGATE_SPARK__PREWARM": "false", java.VARIABLE: java.QUICK}

    def __init__(self, folder: Path, url: str | None = None, **settings: str) -> None:
        self.folder, self.log = folder, folder / "up.log"
        self.process: subprocess.Popen[bytes] | None = None
        own = {"HEADGATE_DATA_DIR": str(folder), "HEADGATE_SERVER__PORT": "0", **self.DEFAULTS, **settings}
        if url:
            own["HEADGATE_DATABASE__URL"] = url
        kept = {name: value for name, value in os.environ.items() if not name.startswith("HEADGATE_")}
        self.environment: dict[str, str] = {**kept, **own}
        self.url = url or f"sqlite:///{folder}/headgate.db"

    def headgate(self, *arguments: str | bytes, given: str = "", **environment: str) -> "CompletedProcess[str]":
        """Run a command to its end, in this process."""
        return command.run(arguments, {**self.environment, **environment}, self.folder, given)

    def run_process(self, *arguments: str, seconds: float = 120, **environment: str) -> "CompletedProcess[str]":
        """Run a command to its end, in a process of its own."""
        return subprocess.run(
            [sys.executable, "-m", "headgate.cli.main", *arguments],
            env={**self.environment, **environment},
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )

    def fill(self) -> None:
        """Put the demo's company into the database."""
        database = Database(self.url)
        upgrade(database.engine)
        world = read_world(WORLD.read_text(encoding="utf-8"), "company.yaml")
        database.write(lambda connection: load(connection, world, now()))
        database.close()

    def token(self, member: str) -> str:
        """A token, made as an operator makes one."""
        done = self.headgate("token", "create", "--member", member)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def up(self) -> str:
        """Start it, and wait until it is ready; its address."""
        mark = self.log.stat().st_size if self.log.exists() else 0
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "headgate.cli.main", "up"],
                env=self.environment,
                cwd=self.folder,
                stdout=log,
                stderr=log,
            )
        return self._wait(mark)

    @contextmanager
    def serving(self) -> Iterator[str]:
        """Serve it from a thread of this process, without a worker or a scheduler; its address."""
        with patch.dict(os.environ, self.environment, clear=True):
            settings = load_settings()
        check(settings)
        database = opened(settings)
        with served(app_for(settings, database)) as port:
            yield f"http://127.0.0.1:{port}"
        database.close()

    def _wait(self, mark: int) -> str:
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            assert self.process
            assert self.process.poll() is None, self.log.read_text()
            found = re.search(r"http://127\.0\.0\.1:\d+", self.log.read_text()[mark:])
            if found:
                try:
                    if httpx.get(found[0] + "/readyz").is_success:
                        return found[0]
                except httpx.TransportError:
                    pass
            time.sleep(0.02)
        raise AssertionError(self.log.read_text())

    def children(self) -> list[int]:
        """The processes that the supervisor started."""
        assert self.process
        found = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        return [int(one) for one in found.split()]

    def stop(self) -> int:
        """Stop it as a service manager does."""
        assert self.process
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=120)

    def kill(self) -> None:
        """Kill the supervisor alone, at once."""
        assert self.process
        self.process.kill()
        self.process.wait()


@contextmanager
def installed(
    folder: Path, url: str | None = None, *, of: type[Installation] = Installation, **settings: str
) -> Iterator[Installation]:
    """An installation that leaves no process behind."""
    found = of(folder, url, **settings)
    try:
        yield found
    finally:
        if found.process and found.process.poll() is None:
            found.kill()


def gone(pid: int) -> bool:
    """Whether a process has ended."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return True
    return state == "Z"


def eventually(check: Any, seconds: float = 60) -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < deadline, "it never came to be"
        time.sleep(0.05)
