"""Default memory and cores of Spark servers."""

import os
from pathlib import Path

from headgate.settings.notebooks import NotebookSettings
from headgate.settings.spark import SparkSettings

GIB = 1 << 30

BY_RAM = ((8, "1g"), (16, "2g"), (32, "4g"), (64, "8g"), (128, "16g"))
"""Memory of each server by the memory of the machine in GiB: the first row that is large enough applies."""

ABOVE = "24g"
MINIMUM_GIB = 8
"""Minimum memory of an installation. A server needs about half a gigabyte more than its heap."""

_UNITS = {"m": 1 << 20, "g": GIB}


def machine_bytes() -> int:
    """The memory limit of this machine or control group."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = Path("/sys/fs/cgroup/memory.max")
    text = limit.read_text().strip() if limit.is_file() else "max"
    return min(total, int(text)) if text.isdigit() else total


def machine_cores() -> int:
    """The number of cores of this process."""
    return len(os.sched_getaffinity(0))


def memory(settings: SparkSettings, machine: int | None = None) -> str:
    """The heap size of a server, in Java's notation."""
    if settings.memory is not None:
        return settings.memory
    gib = (machine or machine_bytes()) / GIB
    # A machine with 16 GiB reports slightly less, because of firmware and kernel; it still counts as 16.
    return next((heap for most, heap in BY_RAM if gib <= most), ABOVE)


def memory_bytes(text: str) -> int:
    """A heap size in bytes."""
    return int(text[:-1]) * _UNITS[text[-1]]


def notebook_bytes(notebooks: NotebookSettings, spark: SparkSettings) -> int:
    """The memory limit of all processes of a notebook."""
    if notebooks.memory is not None:
        return memory_bytes(notebooks.memory)
    return 2 * memory_bytes(memory(spark)) + GIB


def notebook_heap(total: int) -> str:
    """The heap size of a notebook's Spark, from the memory limit of its processes."""
    return f"{max((total - GIB) // 2, GIB // 2) >> 20}m"


def cores(settings: SparkSettings) -> int:
    """The cores of a server."""
    return settings.cores or machine_cores()
