"""Which workers of this data folder live: each has a file that it keeps locked for as long as its process lives.

The lock is the kernel's, so that it ends with the process, however that ends, and never before. Whoever gets the lock
of another's file knows that its process is gone.
"""

import fcntl
import os
import re
from contextlib import suppress
from pathlib import Path

from headgate.kit.ids import PREFIXES

_NAME = re.compile(f"{PREFIXES['worker']}_[0-9a-z]{{20}}")
MOST = 100
"""How many dead workers are replaced at once."""


class WorkerRecords:
    """The file of one worker, and those of the dead ones that it replaces."""

    def __init__(self, folder: Path, worker: str) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._folder, self._path = folder, folder / worker
        fresh = folder / f".{worker}"
        self._own = os.open(fresh, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._own, fcntl.LOCK_EX)
        # Others see the file once it is locked.
        fresh.rename(self._path)
        self._dead: dict[str, int] = {}

    def dead(self) -> list[str]:
        """Workers whose processes are gone. Their files stay locked by this process until they are forgotten."""
        for path in sorted(self._folder.iterdir()):
            if len(self._dead) == MOST:
                break
            if path != self._path and _NAME.fullmatch(path.name) and path.name not in self._dead:
                handle = _locked(path)
                if handle is not None:
                    self._dead[path.name] = handle
        return list(self._dead)

    def forget(self) -> None:
        """Remove the files of the dead ones: nothing of theirs is left to release."""
        for name, handle in self._dead.items():
            with suppress(FileNotFoundError):
                (self._folder / name).unlink()
            os.close(handle)
        self._dead.clear()

    def close(self) -> None:
        """Remove the own file: this worker ends in order, and gives back what it has."""
        for handle in self._dead.values():
            os.close(handle)
        self._dead.clear()
        with suppress(FileNotFoundError):
            self._path.unlink()
        os.close(self._own)


def _locked(path: Path) -> int | None:
    """A handle with the lock of a file; None if its process lives, or somebody else replaces it just now."""
    try:
        handle = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        return None
    return handle
