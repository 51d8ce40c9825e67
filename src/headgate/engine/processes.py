"""Processes of this machine, known by their number and the time of their start. Only the standard library."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path


def started(pid: int) -> int:
    """The clock ticks at which a process started; 0 if there is none, or only its exit status."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return 0 if fields[0] in "ZX" else int(fields[19])


def identity(pid: int) -> list[int]:
    """A process by its number and the time of its start."""
    return [pid, started(pid)]


def descendants(pid: int) -> Iterator[int]:
    """The processes below a process."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return
    for child in children:
        yield int(child)
        yield from descendants(int(child))


def below(pid: int) -> dict[int, int]:
    """All processes below a process, whichever of its threads started them, and how many threads each has."""
    children: dict[int, list[tuple[int, int]]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError, IndexError):
                fields = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()
                children.setdefault(int(fields[1]), []).append((int(entry.name), int(fields[17])))
    found: dict[int, int] = {}
    pending = [pid]
    while pending:
        for child, threads in children.get(pending.pop(), []):
            found[child] = threads
            pending.append(child)
    return found


def java_below(pid: int) -> int | None:
    """The Java process below a launcher."""
    for found in descendants(pid):
        with suppress(OSError):
            if Path(f"/proc/{found}/comm").read_text().strip() == "java" and started(found):
                return found
    return None


def resident_bytes(pid: int) -> int:
    """The memory that a process holds; 0 if there is none."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith("VmRSS:")), 0)
