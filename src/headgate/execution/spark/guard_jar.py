"""Builds the guard's jar from `spark-guard/`, or uses the one in a wheel."""

import hashlib
import os
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

from headgate.contracts.guard_files import SHIPPED, SOURCES
from headgate.execution.spark import java, versions

_SAME_TIME = (2020, 1, 1, 0, 0, 0)


class BadBuild(RuntimeError):
    """The guard cannot be built; the message says why."""


def ensure(folder: Path, iceberg: Path, *, say: Callable[[str], None] = lambda _: None) -> Path:
    """The guard's jar in the folder: built from the sources if they exist, otherwise the shipped one."""
    if not SOURCES.is_dir():
        return _taken(folder)
    target = folder / f"headgate-guard-{fingerprint()}.jar"
    if not target.exists():
        say("Building the guard")
        build_guard(target, iceberg)
    return target


def fingerprint() -> str:
    """Identifies a build by its sources and versions."""
    digest = hashlib.sha256(repr((versions.PYSPARK, versions.ICEBERG, versions.JDK_TARGET)).encode())
    for file in _files():
        digest.update(f"{file.relative_to(SOURCES)}\0".encode() + file.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def build_guard(target: Path, iceberg: Path) -> Path:
    """Compile the guard into `target`. The build is reproducible."""
    with tempfile.TemporaryDirectory(prefix=".guard-", dir=target.parent) as work:
        classes = Path(work, "classes")
        _compile(classes, iceberg)
        shutil.copytree(SOURCES / "resources", classes, dirs_exist_ok=True)
        _pack(classes, Path(work, "guard.jar"))
        Path(work, "guard.jar").replace(target)
    return target


def ship(built: Path, *, say: Callable[[str], None] = lambda _: None) -> None:
    """Copy a built jar into the package, so that a wheel contains it."""
    if SHIPPED.exists() and SHIPPED.read_bytes() == built.read_bytes():
        return
    shutil.copyfile(built, SHIPPED)
    say(f"The guard was built: {SHIPPED}")


def _files() -> list[Path]:
    return sorted(file for file in SOURCES.rglob("*") if file.is_file())


def _compile(classes: Path, iceberg: Path) -> None:
    sources = [str(file) for file in _files() if file.suffix == ".java"]
    path = os.pathsep.join([f"{java.spark_jars()}{os.sep}*", str(iceberg)])
    release = str(versions.JDK_TARGET)
    # Spark's class files reference annotations and Kotlin classes that no jar contains, so warnings about them are
    # irrelevant.
    flags = ["-encoding", "UTF-8", "-g", "-Xlint:unchecked,deprecation,rawtypes", "-proc:none", "-implicit:none"]
    command = [java.program("javac"), "--release", release, *flags, "-cp", path, "-d", str(classes), *sources]
    environment = {**os.environ, "LC_ALL": "C.UTF-8"}
    answer = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)  # noqa: S603
    if answer.returncode != 0:
        raise BadBuild(f"The guard does not compile; check the versions of Spark and Iceberg:\n{answer.stderr.strip()}")


def _pack(classes: Path, target: Path) -> None:
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as jar:
        jar.writestr(
            _entry("META-INF/MANIFEST.MF"), "Manifest-Version: 1.0\r\nImplementation-Title: headgate-guard\r\n\r\n"
        )
        for file in sorted(file for file in classes.rglob("*") if file.is_file()):
            jar.writestr(_entry(file.relative_to(classes).as_posix()), file.read_bytes())


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, _SAME_TIME)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = 0o644 << 16
    return entry


def _taken(folder: Path) -> Path:
    if not SHIPPED.is_file():
        raise BadBuild(f"{SHIPPED} is missing: the package is incomplete; install it again")
    content = SHIPPED.read_bytes()
    target = folder / f"headgate-guard-{hashlib.sha256(content).hexdigest()[:16]}.jar"
    if not target.exists():
        part = target.with_suffix(f".{os.getpid()}")
        part.write_bytes(content)
        part.replace(target)
    return target
