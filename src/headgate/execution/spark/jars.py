"""The additional jars of Spark: fetched once by Maven coordinates, verified by checksum, and cached."""

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from headgate.execution.spark import guard_jar, java
from headgate.execution.spark.versions import ICEBERG_AWS, ICEBERG_RUNTIME, PLATFORM, Artifact

Say = Callable[[str], None]
OFFLINE_VARIABLE = "HEADGATE_SPARK__JARS_DIR"
FETCH_SECONDS = 900


class BadJar(RuntimeError):
    """A jar is unavailable or differs from the pinned one; the message says what to do."""


@dataclass(frozen=True)
class Jars:
    """The jars for Spark's `--jars`: all in one folder, so that a sandbox mounts only that folder."""

    iceberg: Path
    guard: Path | None = None
    aws: Path | None = None
    platform: tuple[Path, ...] = ()

    @property
    def paths(self) -> tuple[Path, ...]:
        """Every jar."""
        return tuple(jar for jar in (self.iceberg, self.aws, self.guard, *self.platform) if jar is not None)

    def __str__(self) -> str:
        return ",".join(str(path) for path in self.paths)


def default_folder() -> Path:
    """The default folder of the jars."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "headgate", "jars")


def ensure(
    folder: Path | None = None,
    *,
    s3: bool = False,
    platform: bool = False,
    offline: Path | None = None,
    say: Say = lambda _: None,
) -> Jars:
    """All jars, verified. Missing ones are fetched and the guard is built, so the first call takes a while.

    `s3` adds jars for object stores, `platform` those for the platform's own steps. `offline`, or the variable
    HEADGATE_SPARK__JARS_DIR, names a folder that contains the files under their usual names; then nothing is fetched
    from the network.
    """
    folder = (folder or default_folder()).absolute()
    wanted = [ICEBERG_RUNTIME, *([ICEBERG_AWS] if s3 else []), *(PLATFORM if platform else ())]
    iceberg, *more = fetch(wanted, folder, offline=offline, say=say)
    aws = more.pop(0) if s3 else None
    return Jars(iceberg, guard_jar.ensure(folder, iceberg, say=say), aws, tuple(more))


def fetch(
    artifacts: Sequence[Artifact], folder: Path, *, offline: Path | None = None, say: Say = lambda _: None
) -> list[Path]:
    """Fetch these jars into the folder, from `offline` if given, otherwise with Spark's own resolver; verify each."""
    folder.mkdir(parents=True, exist_ok=True)
    named = os.environ.get(OFFLINE_VARIABLE)
    offline = offline or (Path(named) if named else None)
    missing = [artifact for artifact in artifacts if not (folder / artifact.file).exists()]
    if missing and offline is not None:
        _copy(missing, offline, folder)
    elif missing:
        say(f"Downloading {', '.join(artifact.coordinates for artifact in missing)}, once")
        _resolve(missing, folder)
    for artifact in artifacts:
        check(folder / artifact.file, artifact)
    return [folder / artifact.file for artifact in artifacts]


def check(file: Path, artifact: Artifact) -> None:
    """Reject a file that differs from the pinned one."""
    with file.open("rb") as stream:
        result = hashlib.file_digest(stream, "sha256").hexdigest()
    if result != artifact.sha256:
        raise BadJar(
            f"{file} has the SHA-256 checksum {result}, but {artifact.coordinates} should have {artifact.sha256}. "
            "Delete the file and try again; if the checksum is wrong again, do not trust the repository"
        )


def _copy(artifacts: Sequence[Artifact], source: Path, folder: Path) -> None:
    for artifact in artifacts:
        if not (source / artifact.file).is_file():
            raise BadJar(
                f"{source} has no {artifact.file}; put {artifact.coordinates} from a Maven repository there, "
                f"or unset {OFFLINE_VARIABLE} to fetch it"
            )
        check(source / artifact.file, artifact)
        _place(source / artifact.file, folder / artifact.file)


def _resolve(artifacts: Sequence[Artifact], folder: Path) -> None:
    """Fetch them with Spark's own resolver; DEFAULT_ARTIFACT_REPOSITORY sets a mirror, as with spark-submit."""
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=folder) as work:
        command = _command(artifacts, Path(work))
        answer = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
        for artifact in artifacts:
            got = Path(work, "jars", f"{artifact.group}_{artifact.file}")
            if answer.returncode != 0 or not got.is_file():
                raise BadJar(_unfetched(artifact, answer.stdout + answer.stderr))
            check(got, artifact)
            _place(got, folder / artifact.file)


def _command(artifacts: Sequence[Artifact], work: Path) -> list[str]:
    """Run spark-submit's resolver with a main class from pyspark's jars that only prints a version."""
    packages = ",".join(artifact.coordinates for artifact in artifacts)
    submit = ["org.apache.spark.deploy.SparkSubmit", "--master", "local[1]", "--packages", packages]
    settings = ["--conf", f"spark.jars.ivy={work}", "--class", "org.apache.ivy.Main", "spark-internal", "-version"]
    classes = f"{java.spark_jars()}{os.sep}*"
    return ["timeout", str(FETCH_SECONDS), java.java(), "-Xmx512m", "-cp", classes, *submit, *settings]


def _unfetched(artifact: Artifact, log: str) -> str:
    reasons = [
        line.strip() for line in log.splitlines() if "not found" in line or "Exception" in line or "rror" in line
    ]
    return "\n".join(
        [
            f"could not download {artifact.coordinates}.",
            *reasons[:5],
            "Check the network. DEFAULT_ARTIFACT_REPOSITORY=https://… sets a mirror of Maven Central; "
            f"{OFFLINE_VARIABLE}=FOLDER sets a folder that contains {artifact.file}.",
        ]
    )


def _place(source: Path, target: Path) -> None:
    """Move a file to its path atomically."""
    with tempfile.NamedTemporaryFile(prefix=".part-", dir=target.parent, delete=False) as part:
        shutil.copyfile(source, part.name)
    Path(part.name).chmod(0o644)
    Path(part.name).replace(target)


def main(arguments: Sequence[str] | None = None) -> int:
    """Fetch the jars that Spark needs, build the guard and archive Spark's classes: `make jars`, `make guard`."""
    parser = argparse.ArgumentParser(prog="python -m headgate.execution.spark.jars", description=main.__doc__)
    parser.add_argument("--folder", type=Path, default=default_folder(), help="the target folder (%(default)s)")
    parser.add_argument("--offline", type=Path, help="copy them from this folder instead of downloading them")
    parser.add_argument("--s3", action="store_true", help="include the jars for object stores")
    parser.add_argument("--ship", action="store_true", help="put the guard's jar into the package, for a wheel")
    given = parser.parse_args(arguments)
    try:
        jars = ensure(given.folder, s3=given.s3, platform=True, offline=given.offline, say=_say)
        if given.ship and jars.guard is not None:
            guard_jar.ship(jars.guard, say=_say)
    except (BadJar, guard_jar.BadBuild, java.NoJava) as problem:
        sys.stderr.write(f"{problem}\n")
        return 1
    from headgate.execution.spark import archive_training  # noqa: PLC0415 - it needs this module, and much else

    classes = archive_training.ensure(jars, _say)
    for path in (*jars.paths, *([classes] if classes else [])):
        _say(f"ready: {path}")
    return 0


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
