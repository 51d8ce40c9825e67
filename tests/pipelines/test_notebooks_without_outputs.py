"""A notebook that writes nothing has no output layer, by which creating it would be judged: the refusal says what to add."""

import pytest

from tests.support.company import Company

NOTEBOOK = {"kind": "notebook", "cells": [{"source": "1"}], "inputs": ["raw.orders"]}


@pytest.mark.parametrize("member", ["Adam", "Tess", "Ana"])
@pytest.mark.parametrize("inputs", [["raw.orders"], []], ids=["that reads", "that reads nothing"])
def test_it_is_added_by_nobody_who_is_told_what_to_add(millrace: Company, member: str, inputs: list[str]) -> None:
    wanted = {"name": "Only looks", "definition": {**NOTEBOOK, "inputs": inputs}}
    answer = millrace.as_(member).post("/api/pipelines", wanted)
    hidden = inputs and not millrace.as_(member).may("see", "table:raw.orders")
    assert answer.status_code in ({403, 404, 422} if hidden else {403})
    assert hidden or "name a table in `outputs`" in answer.json()["detail"]


def test_with_an_output_it_is_added(millrace: Company) -> None:
    definition = {**NOTEBOOK, "outputs": [{"table": "trusted.found"}]}
    answer = millrace.as_("Adam").post("/api/pipelines", {"name": "Looks, and notes", "definition": definition})
    assert answer.status_code == 200, answer.text
