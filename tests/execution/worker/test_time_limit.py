"""A run ends when its pipeline's time is over."""

from pathlib import Path

import pytest

from headgate.contracts.pipelines.steps import AnyStep
from headgate.execution.steps.context import Context, Result
from tests.execution.worker.support import running
from tests.pipelines.runs.support import make, show, start
from tests.support.company import Company
from tests.support.installation import eventually


def test_it_is_stopped_and_told_what_to_do(
    millrace_on_sqlite: Company, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def execute(_: AnyStep, context: Context) -> Result:
        assert context.stopping.wait(60)
        context.check_stopped()
        return Result()

    monkeypatch.setattr("headgate.execution.worker.run_execution.execute", execute)
    run = start(millrace_on_sqlite, make(millrace_on_sqlite, timeout="1 second"))
    with running(millrace_on_sqlite, tmp_path / "runs"):
        eventually(lambda: show(millrace_on_sqlite, run)["state"] == "failed")
    found = show(millrace_on_sqlite, run)
    assert found["error_code"] == "STOPPED"
    assert "longer than its 1 seconds; give the pipeline a longer `timeout`" in found["error"]
