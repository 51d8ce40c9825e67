"""Control groups for process trees, if the kernel lets this user create them. Only the standard library.

The watchdog polls a few times a second. The kernel enforces the limits for faster growth, and for memory that no
process accounts for. Supports version 2, and version 1 as in some containers.
"""

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from headgate.execution.sandbox.watchdog import most_threads

_LIMITS = {"memory": ("memory.max", "memory.limit_in_bytes"), "pids": ("pids.max", "pids.max")}
_KILLS = ("memory.events", "memory.oom_control")
_HELD = ("anon", "rss", "shmem")
"""The keys in version 2 and version 1."""

_SLACK = 1.1
"""Factor above the watchdog's limit, so that the watchdog reacts first and reports the cause."""


@dataclass(frozen=True)
class Group:
    """The folders of a control group, one per hierarchy."""

    folders: tuple[Path, ...]

    def join(self) -> None:
        """Move this process and its later children into the group."""
        for folder in self.folders:
            (folder / "cgroup.procs").write_text("0")

    def ran_out_of_memory(self) -> bool:
        """Whether the kernel killed a process of the group because of its memory limit."""
        for folder in self.folders:
            for name in _KILLS:
                with suppress(OSError):
                    lines = (folder / name).read_text().splitlines()
                    if any(line.startswith("oom_kill ") and line.split()[1] != "0" for line in lines):
                        return True
        return False

    def held(self) -> int | None:
        """The memory in use, without reclaimable caches; None if unknown."""
        for folder in self.folders:
            with suppress(OSError):
                told = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
                return sum(int(told.get(name, 0)) for name in _HELD)
        return None

    def remove(self) -> None:
        """Delete the group after its processes have ended."""
        for folder in self.folders:
            for _ in range(50):
                try:
                    folder.rmdir()
                    break
                except FileNotFoundError:
                    break
                except OSError:
                    time.sleep(0.02)


def make(name: str, memory: int, processes: int) -> Group | None:
    """A group with these limits; None if this user may not create one."""
    limits = {"memory": int(memory * _SLACK), "pids": most_threads(processes)}
    own = Path("/proc/self/cgroup").read_text(encoding="utf-8")
    mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8")
    made: dict[Path, None] = {}
    for controller, most in limits.items():
        result = next(
            (
                path
                for parent in parents(own, mounts, controller)
                if (path := _limited(parent / name, controller, most))
            ),
            None,
        )
        if result is not None:
            made[result] = None
    return Group(tuple(made)) if made else None


def parents(own: str, mounts: str, controller: str) -> Iterator[Path]:
    """Where a group with this controller could be created: below this process's own group, or next to it."""
    for line in own.splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and controller not in controllers.split(","):
            continue
        kind = "cgroup" if controllers else "cgroup2"
        for place, root in _mounted(mounts, kind, controller if controllers else None):
            with suppress(ValueError):
                inside = place / Path(path).relative_to(root)
                yield inside
                if inside != place:
                    yield inside.parent


def _mounted(mounts: str, kind: str, controller: str | None) -> Iterator[tuple[Path, str]]:
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        fields, (result, _, options) = before.split(), after.split(" ", 2)
        if result == kind and (controller is None or controller in options.split(",")):
            yield Path(fields[4]), fields[3]


def _limited(folder: Path, controller: str, most: int) -> Path | None:
    """The group with this limit, created if missing; None if the kernel refuses."""
    was_there = folder.is_dir()
    try:
        folder.mkdir(exist_ok=True)
        file = next((file for name in _LIMITS[controller] if (file := folder / name).exists()), None)
        if file is None:
            (folder.parent / "cgroup.subtree_control").write_text(f"+{controller}")
            file = folder / _LIMITS[controller][0]
        file.write_text(str(most))
        if not os.access(folder / "cgroup.procs", os.W_OK):
            raise PermissionError
    except OSError:
        if not was_there:
            with suppress(OSError):
                folder.rmdir()
        return None
    return folder
