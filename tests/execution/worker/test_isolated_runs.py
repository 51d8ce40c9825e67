"""A run under which a Spark was lost goes on with servers of its own, for its steps as for its SQL."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from headgate.execution.spark.errors import SparkUnavailable
from headgate.execution.steps.context import Result, RunJob
from headgate.execution.worker import run_execution as execution
from headgate.settings.settings import Settings


class Platform:
    """A platform's Spark that is always out of memory."""

    def __init__(self) -> None:
        self.called = 0
        self.own: list[Platform] = []

    def call(self, *_: Any) -> dict[str, Any]:
        self.called += 1
        error = SparkUnavailable("its memory was full")
        error.out_of_memory = True
        raise error

    @contextmanager
    def alone(self) -> Iterator["Platform"]:
        self.own.append(Platform())
        yield self.own[-1]


def _step(_: Any, context: Any) -> Result:
    return Result(**context.platform.call())


@pytest.mark.parametrize(("isolated", "ended"), [(False, ("lost", "ENGINE_DOWN")), (True, ("failed", "OUT_OF_MEMORY"))])
def test_steps_of_an_isolated_run_call_a_spark_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, isolated: bool, ended: tuple[str, str]
) -> None:
    monkeypatch.setattr(execution, "execute", _step)
    monkeypatch.setattr(execution, "title", str)
    told: list[tuple[str, str]] = []
    link = SimpleNamespace(
        catalog_url="",
        is_full=False,
        step=lambda *_: None,
        lines=lambda *_: None,
        finish=lambda _, state, code, __: told.append((state, code)),
    )
    nothing: Any = {"full_refresh": False, "states": {}, "endpoints": {}}
    job = RunJob("run", 2, "token", ["land"], 0, datetime.now(UTC), "UTC", 60, **nothing, isolated=isolated)
    platform: Any = Platform()
    execution.Execution(job, link, Settings(data_dir=tmp_path), tmp_path, None, platform).run()  # type: ignore[arg-type]
    assert told == [ended]
    assert [one.called for one in (platform, *platform.own)] == ([0, 1] if isolated else [1])
