"""Checks whether a remote Spark can run the platform's steps on all its machines.

`headgate doctor` uses it, and reports problems with solutions.
"""

import sys
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from headgate.execution.spark.errors import SparkUnavailable, SqlFailed, StatementRefused
from headgate.execution.spark.session import CANARY
from headgate.execution.spark.step_session import Step
from headgate.execution.steps.context import Context, RunJob, StepFailed
from headgate.settings.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa

    from headgate.execution.spark.platform import PlatformSpark

FUNCTION = "headgate.execution.spark.remote:look"
NEEDED = ("pyspark", "pandas", "pyarrow", "python_calamine")
"""The modules that Python on the executors must provide."""

PARTS = 8
NO_TOKEN = "none"  # noqa: S105 - it is none
"""No table is needed."""

GUARDED = "it has the guard for members' SQL; configure a second server with `headgate spark conf --platform`"


def complaints(settings: Settings, catalog_url: str) -> list[str]:
    """The problems of the Spark at `spark.platform_url`."""
    from headgate.execution.spark.platform import PlatformSpark  # noqa: PLC0415 - loads the client
    from headgate.execution.spark.platform_environment import RUNS  # noqa: PLC0415 - loads the proxy

    runs = settings.data_dir.absolute() / RUNS
    runs.mkdir(parents=True, exist_ok=True, mode=0o700)
    platform = PlatformSpark(settings, catalog_url)
    try:
        if _is_guarded(platform):
            return [GUARDED]
        with TemporaryDirectory(prefix="doctor-", dir=runs) as folder:
            arguments = {"folder": folder, "modules": NEEDED}
            values = platform.call(FUNCTION, arguments, _context(settings, Path(folder), platform))
        return list(values["wrong"])
    except SparkUnavailable as error:
        return [error.detail]
    except (StepFailed, SqlFailed) as error:
        return [error.message]
    finally:
        platform.close()


def _is_guarded(platform: "PlatformSpark") -> bool:
    session = platform.open(NO_TOKEN)
    try:
        session.run(CANARY)
    except StatementRefused:
        return True
    finally:
        session.close()
    return False


def look(arguments: dict[str, Any], step: Step) -> dict[str, Any]:
    """The problems as seen by a step."""
    folder = Path(arguments["folder"])
    looks = (_version(step), _reads(step, folder), _writes(step, folder), _python(step, folder, arguments["modules"]))
    return {"wrong": list(dict.fromkeys(look for look in looks if look is not None))}


def _version(step: Step) -> str | None:
    ours, theirs = metadata.version("pyspark"), step.spark.version
    return None if ours == theirs else f"it runs Spark {theirs}; start it with {ours}, the version of this machine"


def _reads(step: Step, folder: Path) -> str | None:
    (folder / "seen").write_text("seen", encoding="utf-8")
    try:
        step.spark.read.text(f"file://{folder}/seen").collect()
    except SqlFailed:
        return _unshared(folder)
    return None


def _writes(step: Step, folder: Path) -> str | None:
    try:
        step.spark.range(1).selectExpr("'written'").write.text(f"file://{folder}/written")
    except SqlFailed:
        return _unshared(folder)
    return None if any((folder / "written").glob("part-*")) else _unshared(folder)


def _unshared(folder: Path) -> str:
    return (
        f"its machines cannot read and write {folder.parent}, which has the files downloaded for a run; mount the "
        "same folder at the same path on all of them, for the same user"
    )


def _python(step: Step, folder: Path, modules: list[str]) -> str | None:
    file = str(folder / "seen")

    def tried(batches: "Iterable[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        import os  # noqa: PLC0415 - this travels
        from importlib.util import find_spec  # noqa: PLC0415

        import pyarrow as pa

        for _ in batches:
            missing = [module for module in modules if find_spec(module) is None]
            yield pa.RecordBatch.from_pylist([{"missing": missing, "sees": os.access(file, os.R_OK)}])

    rows = step.spark.range(0, PARTS, 1, PARTS).mapInArrow(tried, "missing array<string>, sees boolean")
    wanted = f"Python {sys.version_info.major}.{sys.version_info.minor} with {', '.join(modules)}"
    try:
        result = rows.collect()
    except SqlFailed as error:
        return f"its executors cannot run Python ({error.message}); set PYSPARK_PYTHON to {wanted}"
    missing = sorted({name for row in result for name in row["missing"]})
    if missing:
        return f"Python on its executors lacks {', '.join(missing)}; APIs and workbooks need {wanted}"
    return None if all(row["sees"] for row in result) else _unshared(folder)


def _context(settings: Settings, folder: Path, platform: Any) -> Context:
    job = RunJob(
        id="doctor",
        fence=0,
        token=NO_TOKEN,
        steps=[],
        done=0,
        moment=datetime.now(UTC),
        time_zone="UTC",
        seconds=300,
        full_refresh=False,
        states={},
        endpoints={},
    )

    def no_member() -> Any:
        raise StepFailed("NO_MEMBER", "This Spark server runs no SQL of members")

    return Context(
        job, settings, folder, open_member=no_member, platform=platform, tell=lambda *_: None, note=lambda _: None
    )
