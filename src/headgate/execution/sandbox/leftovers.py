"""Work folders of Spark servers in the data folder, and cleanup after killed workers.

A file lock protects each folder and is released when its process ends. A process that gets the lock knows that the
folder's processes are orphans, and kills them. A process is identified by its pid and start time.
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
    """A folder for one server, locked while in use."""

    folder: Path
    lock: int

    def leave(self) -> None:
        """Release the lock."""
        os.close(self.lock)


def acquire_folder(root: Path, kind: str) -> ServerFolder:
    """The first unlocked folder for a server of this kind. Orphans in unlocked folders are killed."""
    root.mkdir(parents=True, exist_ok=True, mode=0o700)
    end_orphans(root, kind)
    number = 0
    while True:
        folder = root / f"{kind}-{number}"
        lock = _held(folder)
        if lock is not None:
            _end(folder)
            return ServerFolder(folder, lock)
        number += 1


def sockets_folder() -> Path:
    """A new folder with a short path for sockets, whose paths are limited to about 100 characters."""
    own = tempfile.gettempdir()
    short = own if len(own) < 60 else "/tmp"  # noqa: S108 - the folder made in it is private
    return Path(tempfile.mkdtemp(prefix=_SOCKETS, dir=short))


def end_orphans(root: Path, kind: str = "*") -> None:
    """Kill orphaned servers, and delete their files."""
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
            _log.warning("killed an orphaned Spark server", pid=pid)
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
