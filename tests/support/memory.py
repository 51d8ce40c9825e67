"""What a test process makes, it throws away: none of it need reach a disk, for no test cuts the power.

In processes of its own, the product waits for the disk as ever.
"""

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from sqlalchemy import event
from sqlalchemy.pool import Pool

ROOM = 4 * 2**30
_HURRIES = "headgate_hurries"


def with_room() -> Path | None:
    """A folder in memory, if this machine has one with room enough."""
    place = Path("/dev/shm")  # noqa: S108 - whoever uses it makes a folder of their own
    if place.is_dir() and os.access(place, os.W_OK) and shutil.disk_usage(place).free >= ROOM:
        return place
    return None


@contextmanager
def folder_in(place: Path | None, prefix: str) -> Iterator[Path]:
    """A folder in this place, for a while. What processes that were killed have left there goes too."""
    if place:
        for other in place.glob(f"{prefix}*.of-*"):
            if not Path("/proc", other.name.rpartition("-")[2]).exists():
                shutil.rmtree(other, ignore_errors=True)
    found = Path(tempfile.mkdtemp(prefix=prefix, suffix=f".of-{os.getpid()}", dir=place))
    try:
        yield found
    finally:
        shutil.rmtree(found, ignore_errors=True)


@contextmanager
def waiting_for_no_disk() -> Iterator[None]:
    """Let this process go on without waiting until what it wrote is on the disk."""
    event.listen(Pool, "checkout", _hurry)
    try:
        with patch("os.fsync", _is_open):
            yield
    finally:
        event.remove(Pool, "checkout", _hurry)


def _is_open(file: Any) -> None:
    """As fsync does it, refuse what is no open file."""
    os.fstat(file)


def _hurry(connection: Any, record: Any, _: Any) -> None:
    if isinstance(connection, sqlite3.Connection) and not record.info.get(_HURRIES):
        connection.execute("PRAGMA synchronous = OFF")
        record.info[_HURRIES] = True
