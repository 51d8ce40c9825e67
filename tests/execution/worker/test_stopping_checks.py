"""A check that stops its run: however the run is gone on with, nothing is published until the check holds."""

from pathlib import Path
from typing import Any

import pytest

from headgate.contracts.pipelines.steps import AnyStep
from headgate.execution.steps.context import CheckResult, Result
from tests.execution.worker.support import running
from tests.pipelines.runs.support import RunHand, lose, make, show, start
from tests.support.company import Company
from tests.support.installation import eventually

CHECK = {"table": "trusted.versions", "check": "rows", "least": 1}


@pytest.fixture
def findings(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether the check holds, each time that it is made; steps of other kinds do nothing."""
    found: list[bool] = []

    def execute(step: AnyStep, _: Any) -> Result:
        if step.kind != "check":
            return Result()
        return Result(check=CheckResult(found.pop(0), 1, 1, "it has no rows", []))

    monkeypatch.setattr("headgate.execution.worker.run_execution.execute", execute)
    return found


def test_a_run_that_is_resumed_makes_it_again(
    millrace_on_sqlite: Company, tmp_path: Path, findings: list[bool]
) -> None:
    millrace = millrace_on_sqlite
    findings += [False, False, True]
    run, tess = start(millrace, make(millrace, expectations=[CHECK])), millrace.as_("Tess")
    with running(millrace, tmp_path / "runs"):
        for left in (2, 1):
            eventually(lambda: show(millrace, run)["state"] == "failed")
            found = show(millrace, run)
            assert (found["error_code"], len(findings)) == ("EXPECTATION_FAILED", left)
            assert [one["state"] for one in found["steps"]] == ["succeeded", "failed"]
            assert found["steps"][1]["check"]["message"] == "it has no rows"
            assert tess.post(f"/api/runs/{run}/resume", None).status_code == 200
        eventually(lambda: show(millrace, run)["state"] == "succeeded")
    assert findings == []


def test_a_worker_that_dies_before_it_tells_the_end_leaves_it_to_be_made_again(
    millrace_on_sqlite: Company, tmp_path: Path, findings: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    millrace = millrace_on_sqlite
    findings.append(False)
    run = start(millrace, make(millrace, expectations=[CHECK]))
    monkeypatch.setattr("headgate.execution.worker.run_execution.RunAttempt.finish", lambda *_: None)
    with running(millrace, tmp_path / "runs"):
        eventually(lambda: not findings and len(show(millrace, run)["steps"]) == 2)
        eventually(lambda: show(millrace, run)["steps"][1]["check"] is not None)
    lose(millrace)
    (job,) = RunHand(millrace).claim()
    assert (job["id"], job["done"]) == (run, 1)
