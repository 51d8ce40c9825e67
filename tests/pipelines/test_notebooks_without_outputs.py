"""A notebook may write nothing, such as one that only checks: whoever may edit what it reads adds it, else an admin."""

from typing import Any

import pytest

from headgate.kit.ids import new_id
from tests.runs.support import RunHand, show, start
from tests.support.company import Company

READS = {"kind": "notebook", "cells": [{"source": "1"}], "inputs": ["raw.orders"]}


def added(millrace: Company, member: str, definition: dict[str, Any]) -> Any:
    return millrace.as_(member).post("/api/pipelines", {"name": new_id("pipeline"), "definition": definition})


@pytest.mark.parametrize("inputs", [["raw.orders"], []], ids=["that reads", "that reads nothing"])
def test_who_may_edit_its_inputs_adds_it_and_without_any_admins_do(millrace: Company, inputs: list[str]) -> None:
    expected = {"Adam": 200, "Tess": 200 if inputs else 403, "Ana": 403, "Ben": 403}
    found = {who: added(millrace, who, {**READS, "inputs": inputs}) for who in expected}
    assert {who: answer.status_code for who, answer in found.items()} == expected
    told = "name what it reads or writes: a notebook's `inputs`"
    assert (told in found["Ana"].json()["detail"]) == (not inputs)
    pipeline = found["Adam"].json()["id"]
    seen = {who: millrace.as_(who).get(f"/api/pipelines/{pipeline}").status_code for who in expected}
    assert seen == {"Adam": 200, "Tess": 200 if inputs else 404, "Ana": 404, "Ben": 404}


def test_it_runs_to_its_end(millrace: Company) -> None:
    run = start(millrace, added(millrace, "Tess", READS).json()["id"])
    hand = RunHand(millrace)
    (job,) = hand.claim()
    assert [one["kind"] for one in job["steps"]] == ["notebook"]
    hand.do(job)
    assert hand.finish(job).json()["state"] == "succeeded"
    assert show(millrace, run)["state"] == "succeeded"


def test_an_output_in_a_layer_that_is_not_there_is_refused(millrace: Company) -> None:
    definition = {**READS, "outputs": [{"table": "nowhere.rows"}]}
    assert {added(millrace, who, definition).status_code for who in ("Adam", "Tess", "Ben")} <= {403, 404, 422}
