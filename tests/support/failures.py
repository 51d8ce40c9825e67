"""What a failed test reports beside its traceback: the seeds, the load of the machine, and the ends of its log files."""

import os
import time
from collections import deque
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

LINES = 40
FILES = 6


def pytest_report_header(config: pytest.Config) -> str:
    """The seeds of this run, and the load at its start."""
    return f"{_seeds(config)}; {_load()}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    """Add sections to the report of a failure."""
    report = yield
    if report.failed:
        report.sections.append(("Run", f"{_seeds(item.config)}; {_load()}; {call.duration:.1f} s in {report.when}"))
        # Logs of what fixtures started belong to the failure as well: a Spark server writes while its tests run.
        for path in _logs(item.config, time.time() - call.duration - 1):
            report.sections.append((f"End of {path}", _end(path)))
    return report


def _seeds(config: pytest.Config) -> str:
    hypothesis = config.getoption("--hypothesis-seed", None)
    if hypothesis is None:
        hypothesis = "fixed" if settings.get_current_profile_name() == "ci" else "random"
    order = os.environ.get("PYTEST_XDIST_WORKER") or "one process"
    hashes = os.environ.get("PYTHONHASHSEED", "random")
    return f"PYTHONHASHSEED={hashes}, hypothesis seed {hypothesis}, {order}, tests in the order of collection"


def _load() -> str:
    one, five, fifteen = os.getloadavg()
    return f"load {one:.1f} {five:.1f} {fifteen:.1f} on {os.cpu_count()} CPUs"


def _logs(config: pytest.Config, since: float) -> Iterator[Path]:
    """The log files below the temporary folder of the tests that were written since then, the newest first."""
    factory: pytest.TempPathFactory | None = getattr(config, "_tmp_path_factory", None)
    if factory is None:
        return iter(())
    logs = []
    # os.walk skips what it cannot list. Tests of limits leave folders that are nested deeper than a path may be long.
    for folder, _, names in os.walk(factory.getbasetemp()):
        for path in (Path(folder, name) for name in names if name.endswith(".log")):
            try:
                if path.is_file() and path.stat().st_mtime >= since:
                    logs.append((path.stat().st_mtime, path))
            except OSError:
                continue
    return (path for _, path in sorted(logs, reverse=True)[:FILES])


def _end(path: Path) -> str:
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return "".join(deque(file, LINES))
    except OSError as error:
        return f"cannot be read: {error}"
