"""Places for Spark servers in the data folder, and what a killed predecessor left in them.

A place is held by a lock of the kernel's, which ends with the process that took it. So whoever gets the lock knows that
the processes that the place names have lost their owner, and ends them. A process is known by its number and its start.
"""

import fcntl
import json
import os
import shutil
import signal
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from headgate.execution.sandbox.processes import descendants, started
from headgate.kit.log import get_logger

RECORD = "processes.json"
_SOCKETS = "headgate-spark-"
_log = get_logger("headgate.engine")


@dataclass(frozen=True)
class ServerFolder:
    """A folder for one server, ours while the lock is held."""

    folder: Path
    lock: int

    def leave(self) -> None:
        """Give it back."""
        os.close(self.lock)


def take(root: Path, kind: str) -> ServerFolder:
    """The first free place for a server of this kind. What is left in free places is ended."""
    root.mkdir(parents=True, exist_ok=True, mode=0o700)
    end_left(root, kind)
    number = 0
    while True:
        folder = root / f"{kind}-{number}"
        lock = _held(folder)
        if lock is not None:
            _end(folder)
            return ServerFolder(folder, lock)
        number += 1


def sockets_folder() -> Path:
    """A new folder for sockets: their paths may have a hundred characters, and a data folder's own may be long."""
    own = tempfile.gettempdir()
    short = own if len(own) < 60 else "/tmp"  # noqa: S108 - the folder made in it is private
    return Path(tempfile.mkdtemp(prefix=_SOCKETS, dir=short))


def end_left(root: Path, kind: str = "*") -> None:
    """End the servers whose owner is gone, and remove what they left."""
    for folder in root.glob(f"{kind}-*"):
        lock = _held(folder)
        if lock is not None:
            try:
                _end(folder)
            finally:
                os.close(lock)


def _held(folder: Path) -> int | None:
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    lock = os.open(folder / "lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    return lock


def _end(folder: Path) -> None:
    record = folder / RECORD
    try:
        told = json.loads(record.read_text(encoding="utf-8"))
        processes = [(int(pid), int(began)) for pid, began in told["processes"]]
        sockets = Path(told["sockets"])
    except (OSError, ValueError, KeyError, TypeError):
        return
    for pid, began in processes:
        if began and started(pid) == began:
            _log.warning("ended a Spark server that was left", pid=pid)
            _kill(pid, began)
    if sockets.name.startswith(_SOCKETS):
        shutil.rmtree(sockets, ignore_errors=True)
    record.unlink(missing_ok=True)


def _kill(pid: int, began: int) -> None:
    below = [(descendant, started(descendant)) for descendant in descendants(pid)]
    for value, since in ((pid, began), *below):
        with suppress(ProcessLookupError):
            if since and started(value) == since:
                os.kill(value, signal.SIGKILL)
    deadline = time.monotonic() + 10
    while started(pid) == began and time.monotonic() < deadline:
        time.sleep(0.02)
