"""The class data archive (CDS), which Java maps at start instead of loading and verifying each class.

It is stored next to the jars under a name derived from its inputs, and mounted read-only in sandboxes only: a writable
archive could run code in every server.
"""

import hashlib
import os
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from headgate.execution.sandbox import bubblewrap
from headgate.execution.spark import java, jvm

INSIDE = f"{bubblewrap.HOME}/classes.jsa"
SPARK = f"{bubblewrap.HOME}/spark"
"""The path of Spark's own jars in a sandbox. Java accepts an archive only for the paths with which it was created."""

USE = (
    f"-XX:SharedArchiveFile={INSIDE}",
    "-Xshare:auto",
    *(f"-Xlog:{part}=off" for part in ("cds", "cds+dynamic", "class+path")),
)
"""The options to use the archive. Java silently ignores one that does not match."""

KEPT_DAYS = 30
"""Retention of unused archives: each is large, and every Java or Spark update adds another."""


def sandbox_path(jar: Path) -> str:
    """The path of a jar inside a sandbox."""
    return f"{bubblewrap.HOME}/jars/{jar.name}"


def archive_path(iceberg: Path, size: int) -> Path:
    """The path of an archive of this size; its name depends on Java, the jars and the options."""
    return iceberg.parent / f"spark-classes-{_fingerprint(iceberg)}-{size}.jsa"


def usable_archive(iceberg: Path, writable: Iterable[str] = ()) -> Path | None:
    """The archive, if it exists and neither another user nor a sandbox with these writable folders can have written it.

    An archive whose size differs from its name was truncated; Java would crash with it.
    """
    folder = iceberg.parent.resolve()
    if any(folder.is_relative_to(Path(value).resolve()) for value in writable):
        return None
    for path in folder.glob(f"spark-classes-{_fingerprint(iceberg)}-*.jsa"):
        with suppress(OSError):
            about = path.lstat()
            if is_ours(about) and path.name.endswith(f"-{about.st_size}.jsa"):
                with suppress(OSError):
                    os.utime(path)
                return path
    return None


def remove_unused(folder: Path) -> None:
    """Delete archives that have not been used for a long time. A mapped archive stays usable until its process ends."""
    before = time.time() - KEPT_DAYS * 24 * 3600
    for path in folder.glob("spark-classes-*.jsa"):
        with suppress(OSError):
            if path.lstat().st_mtime < before:
                path.unlink()


def is_ours(about: os.stat_result) -> bool:
    """Whether only this process's user or root can write a file."""
    return stat.S_ISREG(about.st_mode) and about.st_uid in (0, os.getuid()) and not about.st_mode & 0o022


def _fingerprint(iceberg: Path) -> str:
    digest = hashlib.sha256(repr((SPARK, sandbox_path(iceberg), jvm.MODULES)).encode())
    for part in _parts(iceberg):
        about = part.stat()
        digest.update(repr((part.name, about.st_size, about.st_mtime_ns)).encode())
    return digest.hexdigest()[:16]


def _parts(iceberg: Path) -> Iterator[Path]:
    """The input files. Spark's jars are in directory order, because Java reads them in that order."""
    home = Path(java.program("java")).resolve().parents[1]
    yield from (path for path in (home / "release", home / "lib" / "server" / "libjvm.so") if path.is_file())
    with os.scandir(java.spark_jars()) as jars:
        yield from (Path(jar.path) for jar in jars if jar.name.endswith(".jar"))
    yield iceberg
