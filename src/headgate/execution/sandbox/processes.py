"""Processes of this machine, identified by pid and start time. Only the standard library."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path


def started(pid: int) -> int:
    """The start time of a process in clock ticks; 0 if it does not exist or is a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return 0 if fields[0] in "ZX" else int(fields[19])


def identity(pid: int) -> list[int]:
    """A process identified by pid and start time."""
    return [pid, started(pid)]


def descendants(pid: int) -> Iterator[int]:
    """The descendants of a process."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return
    for child in children:
        yield int(child)
        yield from descendants(int(child))


def below(pid: int, most: int | None = None) -> dict[int, int]:
    """All processes below a process, whichever thread started them, with their number of threads.

    Newest first, and at most `most` if given.
    """
    is_below = {pid: True, 0: False}
    values: dict[int, int] = {}
    listed = os.listdir("/proc")  # noqa: PTH208 - quicker, where there is little time
    for newest in sorted((int(name) for name in listed if name.isdigit()), reverse=True):
        way: dict[int, int] = {}
        place = newest
        while place not in is_below:
            is_below[place] = False
            parent, way[place] = _parent_and_threads(place)
            place = parent
        if is_below[place]:
            is_below |= dict.fromkeys(way, True)
            values |= {value: threads for value, threads in way.items() if threads}
        if most is not None and len(values) >= most:
            break
    return values


def _parent_and_threads(pid: int) -> tuple[int, int]:
    """The parent pid and number of threads of a process; zeros if it does not exist."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
        return int(fields[1]), int(fields[17])
    except (OSError, IndexError):
        return 0, 0


def java_below(pid: int) -> int | None:
    """The Java process below a launcher."""
    for descendant in descendants(pid):
        with suppress(OSError):
            if Path(f"/proc/{descendant}/comm").read_text().strip() == "java" and started(descendant):
                return descendant
    return None


def resident_bytes(pid: int) -> int:
    """The resident memory of a process; 0 if it does not exist."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith("VmRSS:")), 0)
