"""A run under which a Spark was lost goes on with servers of its own, for its steps as for its SQL."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from headgate.contracts.jobs import JobOut
from headgate.contracts.runs import RunPayload
from headgate.execution.spark.errors import SparkUnavailable
from headgate.execution.steps.context import Result
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
        server="",
        worker="",
        is_full=False,
        surely=lambda *_, **__: {},
        finish=lambda _, __, state, code, *___: told.append((state, code)),
    )
    nothing: Any = {"full_refresh": False, "states": {}, "endpoints": [], "parameters": {}, "memories": {}}
    text: Any = {"pipeline": "", "token": "token", "reading_token": "", "user": "", "time_zone": "UTC"}
    payload = RunPayload(**text, steps=[], done=0, moment=datetime.now(UTC), **nothing)
    job = JobOut(id="run", fence=2, seconds=60, isolated=isolated, payload=payload.model_dump(mode="json"))
    platform: Any = Platform()
    attempt = execution.RunAttempt(job, link, Settings(data_dir=tmp_path), tmp_path, None, platform)  # type: ignore[arg-type]
    attempt._run.steps.append("land")
    attempt.run()
    assert told == [ended]
    assert [one.called for one in (platform, *platform.own)] == ([0, 1] if isolated else [1])
