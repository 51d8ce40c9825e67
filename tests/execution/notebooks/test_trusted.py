"""Where the operator trusts every author: the same notebook without a sandbox, with the same limits."""

import shutil

import pytest

from headgate.contracts.external_systems.endpoints import Endpoint
from headgate.contracts.pipelines.definitions import SecretRef
from tests.support.notebooks import Notebooks

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


def test_a_trusted_notebook_runs_outside_and_leaves_nothing(
    notebooks: Notebooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    trusting = Notebooks(notebooks.lake, notebooks.folder, notebooks={"memory": "3g", "mode": "trusted"})
    trusting.fence = notebooks.fence + 100
    real = shutil.which
    monkeypatch.setattr(shutil, "which", lambda name, *more: None if name == "bwrap" else real(name, *more))
    step = trusting.step(
        "save(load('raw.events'), 'trusted.facts')\nimport os\nos.path.exists('/etc/passwd'), load('raw.events').count()",
        "from pathlib import Path\nprint(secret('key')[::-1])\nPath(parameters['mark']).write_text('outside')",
        inputs=(trusting.item("table", "raw.events"),),
        outputs=(trusting.item("table", "trusted.facts"),),
        secrets=(SecretRef(name="key", connection="con_11111111111111111111", field="token"),),
        parameters={"mark": str(notebooks.folder / "mark")},
    )
    told = trusting.go(
        step,
        endpoints={"con_11111111111111111111": Endpoint("con_11111111111111111111", "api", {}, {"token": "sesame-11"})},
    )
    assert told.failed is None, (told.failed, told.lines)
    assert told.cells[0]["outputs"] == [{"kind": "text", "text": "(True, 3)"}]
    assert told.printed(2) == "11-emases\n"
    assert (notebooks.folder / "mark").read_text() == "outside"
    assert told.result is not None
    assert told.result.detail["tables"].keys() == {"trusted.facts"}
