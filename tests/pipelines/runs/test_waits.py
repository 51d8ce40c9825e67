"""What a run that has not begun waits for, as it is told to whoever looks at it."""

import pytest

from tests.pipelines.runs.support import RunHand, make, show, start
from tests.pipelines.runs.test_turns import LATER, come, fail
from tests.support.company import Company

pytestmark = pytest.mark.both_databases


def test_a_run_says_that_it_waits_for_one_that_is_tried_again(millrace: Company) -> None:
    pipeline, hand = make(millrace, retries=LATER), RunHand(millrace)
    older, newer = start(millrace, pipeline), start(millrace, pipeline)
    assert show(millrace, older)["waits_for"] == "a free worker"
    (job,) = hand.claim()
    assert show(millrace, older)["waits_for"] is None
    assert show(millrace, newer)["waits_for"] == f"the run {older} of the same pipeline"
    assert fail(hand, job) == "queued"
    own, behind = (show(millrace, run)["waits_for"] for run in (older, newer))
    assert own.startswith("its next attempt, at 20")
    assert own.endswith(" UTC")
    moment = own.partition(" at ")[2]
    assert behind == f"the run {older} of the same pipeline, which is retried at {moment}"
    come(millrace)
    assert show(millrace, older)["waits_for"] == "a free worker"
    assert show(millrace, newer)["waits_for"].endswith(f"{older} of the same pipeline, which was started earlier")
    (again,) = hand.claim()
    hand.do(again)
    assert hand.finish(again).json()["state"] == "succeeded"
    assert [show(millrace, run)["waits_for"] for run in (older, newer)] == [None, "a free worker"]


def test_a_run_of_another_pipeline_is_not_named(millrace: Company) -> None:
    held = start(millrace, make(millrace))
    waits = start(millrace, make(millrace, name="Others"))
    (job,) = RunHand(millrace).claim()
    assert job["id"] == held
    assert show(millrace, waits)["waits_for"] == "a run that writes to one of the same tables or volumes"
