"""A place in memory for what a test process throws away: nothing there waits for a disk."""

import os
import shutil
from pathlib import Path

ROOM = 4 * 2**30


def with_room() -> Path | None:
    """The place, if this machine has one with room enough."""
    place = Path("/dev/shm")  # noqa: S108 - whoever uses it makes a folder of their own
    if place.is_dir() and os.access(place, os.W_OK) and shutil.disk_usage(place).free >= ROOM:
        return place
    return None
