"""The worst that a member can write into a definition: a 4xx that says what to do, never a 5xx."""

import json
from typing import Any

import pytest

from tests.support.company import Company

HISTORY = {"kind": "history", "table": "raw.orders", "output": "trusted.versions", "keys": ["id"]}
NOTEBOOK = {"kind": "notebook", "cells": [{"source": "1"}], "outputs": [{"table": "trusted.made"}]}


def check(**more: Any) -> dict[str, Any]:
    return {**HISTORY, "expectations": [{"table": "trusted.versions", **more}]}


BODIES = {
    "a number without an end, as a parameter": {**NOTEBOOK, "parameters": {"x": float("inf")}},
    "a number without an end, in a check": check(check="range", columns=["id"], least=float("-inf")),
    "no number, in a check": check(check="accepted", columns=["id"], values=[float("nan")]),
    "a number of 4,000 digits": check(check="rows", least=10**4000),
    "half a character": {**NOTEBOOK, "parameters": {"x": "\ud800"}},
    "a NUL character": {**NOTEBOOK, "cells": [{"source": "a\0b"}]},
    "a key that is a quote": {**HISTORY, "keys": ["`; DROP TABLE x; --"], "output": "trusted.`x`"},
    "a name that climbs": {**HISTORY, "output": "trusted...x"},
    "a time without an end": {**HISTORY, "timeout": "99999 weeks"},
    "a length of time in words": {**HISTORY, "timeout": "a while"},
    "a zone that is a path": {**HISTORY, "time_zone": "../../etc/passwd"},
    "a host that is none": {**NOTEBOOK, "hosts": ["169.254.169.254:99999999"]},
    "a wheel that climbs": {**NOTEBOOK, "wheels": [{"volume": "raw.invoices", "path": "../../x.whl"}]},
    "a definition of another kind": {"kind": "trojan"},
    "no definition": [],
}


@pytest.mark.parametrize("what", BODIES)
@pytest.mark.parametrize("path", ["/api/pipelines", "/api/pipelines/plan"])
def test_nothing_that_is_written_breaks_the_server(millrace: Company, path: str, what: str) -> None:
    body = {"definition": BODIES[what]} | ({} if path.endswith("plan") else {"name": "Worst"})
    # As Python writes it: numbers without an end too, which no other client could send by mistake.
    headers = {"Content-Type": "application/json"}
    answer = millrace.as_("Tess").request("POST", path, content=json.dumps(body), headers=headers)
    assert answer.status_code < 500, answer.text
