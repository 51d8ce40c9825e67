"""Monitors a process tree: the number of processes, memory, disk usage and run time.

It works where the kernel enforces no limits: in user namespaces of root, and without control groups. Only the standard
library.
"""

import os
import shutil
import stat
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from headgate.execution.sandbox.processes import below

PAUSE = 0.25
DISK_PAUSE = 1.0
MOST_FILES = 200_000
MOST_LEVELS = 40
LONGEST_PATH = 3500
FREE_MEMORY = 256 << 20
FREE_DISK = 512 << 20
"""Free disk space to keep: below it, the process tree is killed before the machine stops working."""

_DELETED = " (deleted)"
_MEMORY_FILE = "/memfd:"


@dataclass(frozen=True)
class Limits:
    """The limits of a process tree. `folders` are its writable folders, and `inside` their paths in the sandbox."""

    memory: int
    processes: int
    disk: int
    seconds: float
    folders: list[str]
    inside: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class LimitExceeded:
    """The exceeded limit: memory, processes, threads, disk, files, depth or time; or the machine ran out of
    resources.
    """

    kind: str
    held: float = 0
    most: float = 0


class ProcessTreeWatchdog:
    """The tree below a process, monitored by two threads until it ends; each returns the exceeded limit."""

    def __init__(self, pid: int, limits: Limits, exact: Callable[[], int | None] = lambda: None) -> None:
        self._pid, self._limits, self._exact = pid, limits, exact
        self._tree: dict[int, int] = {}
        self.over = threading.Event()

    def processes_and_time(self) -> LimitExceeded | None:
        """Check the number of processes and the run time. Nothing in the tree can block this check."""
        until = time.monotonic() + self._limits.seconds
        while not self.over.wait(PAUSE):
            if time.monotonic() > until:
                return LimitExceeded("time", self._limits.seconds, self._limits.seconds)
            # Stop counting there, because counting very many processes takes too long.
            self._tree = below(self._pid, self._limits.processes + 1)
            limit_exceeded = _many(self._tree, self._limits)
            if limit_exceeded is not None:
                return limit_exceeded
        return None

    def memory_and_disk(self) -> LimitExceeded | None:
        """Check the memory and disk usage."""
        look_at_disk = time.monotonic()
        while not self.over.wait(PAUSE):
            began = time.monotonic()
            limit_exceeded = _memory(self._tree, self._limits, self._exact)
            if limit_exceeded is None and began >= look_at_disk:
                limit_exceeded = _disk(self._tree, self._limits)
                # Counting very many files must not keep a core busy.
                look_at_disk = time.monotonic() + max(DISK_PAUSE, 5 * (time.monotonic() - began))
            if limit_exceeded is not None:
                return limit_exceeded
        return None


def _many(processes: Mapping[int, int], limits: Limits) -> LimitExceeded | None:
    if len(processes) > limits.processes:
        return LimitExceeded("processes", len(processes), limits.processes)
    threads = sum(processes.values())
    if threads > (most := most_threads(limits.processes)):
        return LimitExceeded("threads", threads, most)
    return None


def most_threads(processes: int) -> int:
    """The thread limit for this many processes: Java alone has a hundred threads."""
    return 500 + 5 * processes


def _memory(processes: Mapping[int, int], limits: Limits, exact: Callable[[], int | None]) -> LimitExceeded | None:
    in_files = sum(held for held, is_memory in _open_files(processes, limits) if is_memory)
    held = in_files + sum(_resident(pid) for pid in processes)
    if held > limits.memory:
        # The quick sum counts memory shared by forked processes several times; the exact sum is slower.
        known = exact()
        held = known if known is not None else in_files + sum(_own_share(pid) for pid in processes)
    if held > limits.memory:
        return LimitExceeded("memory", held, limits.memory)
    free = _field("/proc/meminfo", ("MemAvailable:",))
    return LimitExceeded("machine_memory", free, FREE_MEMORY) if 0 < free < FREE_MEMORY else None


def _disk(processes: Iterable[int], limits: Limits) -> LimitExceeded | None:
    held = sum(held for held, is_memory in _open_files(processes, limits) if not is_memory)
    count = 0
    for size in _sizes(limits.folders):
        if isinstance(size, LimitExceeded):
            return size
        held, count = held + size, count + 1
        if held > limits.disk or count > MOST_FILES:
            break
    if held > limits.disk:
        return LimitExceeded("disk", held, limits.disk)
    if count > MOST_FILES:
        return LimitExceeded("files", count, MOST_FILES)
    free = min(shutil.disk_usage(folder).free for folder in limits.folders)
    return LimitExceeded("machine_disk", free, FREE_DISK) if free < FREE_DISK else None


def _sizes(folders: Sequence[str]) -> Iterator[int | LimitExceeded]:
    """The disk usage of these folders. An unreadable folder counts as a violation."""
    pending = [(folder, 0) for folder in folders]
    while pending:
        folder, level = pending.pop()
        if level > MOST_LEVELS or len(folder) > LONGEST_PATH:
            yield LimitExceeded("depth", level, MOST_LEVELS)
            return
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    with suppress(FileNotFoundError):
                        yield entry.stat(follow_symlinks=False).st_blocks * 512
                        if entry.is_dir(follow_symlinks=False):
                            pending.append((entry.path, level + 1))
        except FileNotFoundError:
            continue
        except OSError:
            yield LimitExceeded("depth", level, MOST_LEVELS)
            return


def _open_files(processes: Iterable[int], limits: Limits) -> Iterator[tuple[int, bool]]:
    """Deleted files that are still open: their sizes, and whether they are in memory."""
    seen: set[tuple[int, int]] = set()
    for pid in processes:
        with suppress(OSError):
            for entry in os.scandir(f"/proc/{pid}/fd"):
                with suppress(OSError):
                    name = os.readlink(entry.path)  # noqa: PTH115 - quicker, and there are many
                    is_memory = name.startswith(_MEMORY_FILE)
                    if not is_memory and not (name.endswith(_DELETED) and name.startswith(tuple(limits.inside))):
                        continue
                    status = os.stat(entry.path)  # noqa: PTH116 - a handle, not a path
                    if stat.S_ISREG(status.st_mode) and (status.st_dev, status.st_ino) not in seen:
                        seen.add((status.st_dev, status.st_ino))
                        yield status.st_blocks * 512, is_memory


def _resident(pid: int) -> int:
    return _field(f"/proc/{pid}/status", ("RssAnon:", "RssShmem:"))


def _own_share(pid: int) -> int:
    return _field(f"/proc/{pid}/smaps_rollup", ("Pss_Anon:", "Pss_Shmem:")) or _resident(pid)


def _field(file: str, names: tuple[str, ...]) -> int:
    """The sum of lines in kilobytes, in bytes; 0 if the file no longer exists."""
    try:
        lines = Path(file).read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) << 10 for line in lines if line.startswith(names))
