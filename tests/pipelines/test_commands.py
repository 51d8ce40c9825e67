"""`headgate pipeline`, as members use it. What needs Spark to be saved is in tests/pipelines/runs."""

import json
from pathlib import Path

import pytest

from headgate.cli.main import app
from tests.organization.profile.support import Commands
from tests.support.company import Company

HISTORY = "kind: history\ntable: raw.orders\noutput: trusted.versions\nkeys: [id]\n"
NOTEBOOK = "kind: notebook\ninputs: [raw.orders]\noutputs: [{table: trusted.sizes}]\n"
CELLS = '# %% [markdown]\n# # Sizes\n\n# %%\nsave(load("raw.orders"), "trusted.sizes")\n'


@pytest.fixture
def run(millrace_on_sqlite: Company, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Commands:
    monkeypatch.chdir(tmp_path)
    Path("history.yaml").write_text(HISTORY)
    Path("notebook.yaml").write_text(NOTEBOOK)
    Path("cells.py").write_text(CELLS)
    return Commands(millrace_on_sqlite, app, monkeypatch)


def test_a_pipeline_goes_through_its_life(run: Commands) -> None:
    plan = run("Tess", "pipeline", "plan", "-f", "history.yaml")
    assert plan.exit_code == 0, plan.output
    rows = [line.split() for line in plan.output.splitlines()]
    assert ["raw.orders", "read", "viewer", "yes"] in rows
    assert ["trusted.versions", "write", "editor", "yes"] in rows
    assert "No pipeline" not in plan.output
    made = run("Tess", "pipeline", "add", "Versions", "-f", "history.yaml", "--deactivate-after", "3")
    assert made.output.startswith("Made 'Versions' (pip_"), made.output
    assert "Versions" in run("Tess", "pipeline", "list").output
    assert "table: raw.orders" in run("Tess", "pipeline", "show", "Versions").output
    assert "Deactivated" in run("Tess", "pipeline", "deactivate", "Versions").output
    idle = run("Tess", "pipeline", "run", "Versions")
    assert (idle.exit_code, "activate it first" in idle.output) == (1, True)
    assert "activate it first" in run("Tess", "pipeline", "plan", "Versions").output
    assert "Activated" in run("Tess", "pipeline", "activate", "Versions").output
    assert "queued" in run("Tess", "pipeline", "run", "Versions").output
    assert "Renamed to 'Old versions'" in run("Tess", "pipeline", "rename", "Versions", "Old versions").output
    busy = run("Tess", "pipeline", "delete", "Old versions")
    assert (busy.exit_code, "cancel it first" in busy.output) == (1, True)
    (waiting,) = json.loads(run("Tess", "run", "list", "Old versions", "--json").output)["items"]
    run("Tess", "run", "cancel", waiting["id"])
    assert run("Tess", "pipeline", "delete", "Old versions").output == "Deleted 'Old versions'.\n"


@pytest.mark.parametrize("suffix", ["ipynb", "py"])
def test_a_notebook_goes_in_and_out(run: Commands, suffix: str) -> None:
    made = run("Tess", "pipeline", "add", "Sizes", "-f", "notebook.yaml", "--notebook", "cells.py")
    assert made.exit_code == 0, made.output
    before = json.loads(run("Tess", "pipeline", "show", "Sizes", "--json").output)["definition"]
    assert [one["kind"] for one in before["cells"]] == ["text", "code"]
    assert run("Tess", "pipeline", "export", "Sizes", "-o", f"out.{suffix}").exit_code == 0
    taken = run("Tess", "pipeline", "export", "Sizes", "-o", f"out.{suffix}")
    assert (taken.exit_code, "--overwrite" in taken.output) == (1, True), taken.output
    saved = run("Tess", "pipeline", "save", "Sizes", "--notebook", f"out.{suffix}")
    assert saved.exit_code == 0, saved.output
    after = json.loads(run("Tess", "pipeline", "show", "Sizes", "--json").output)
    assert (after["definition"], after["version"]) == (before, 2)


def test_a_definition_goes_out_as_yaml_and_in_again(run: Commands) -> None:
    run("Tess", "pipeline", "add", "Versions", "-f", "history.yaml")
    assert run("Tess", "pipeline", "export", "Versions", "-o", "out.yaml").exit_code == 0
    again = run("Tess", "pipeline", "add", "Again", "-f", "out.yaml")
    assert again.exit_code == 0, again.output


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({}, "give the definition with --file"),
        ({"-f": "missing.yaml"}, "missing.yaml: No such file"),
        ({"-f": "bad.yaml"}, "cannot read the definition"),
        ({"-f": "list.yaml"}, "a definition must be a mapping"),
        ({"-f": "binary.yaml"}, "UTF-8"),
        ({"--notebook": "missing.ipynb"}, "missing.ipynb: No such file"),
        ({"-f": "notebook.yaml", "--notebook": "bad.yaml"}, ".ipynb"),
        (
            {"-f": "notebook.yaml", "--notebook": "old.ipynb"},
            "old.ipynb: the file is not a valid notebook of version 3",
        ),
        ({"-f": "kind.yaml"}, "kind"),
        ({"-f": "column.yaml"}, "is not the name of a column"),
    ],
)
def test_slips_are_said_with_what_to_do(run: Commands, files: dict[str, str], told: str) -> None:
    Path("bad.yaml").write_text("kind: [\n")
    Path("list.yaml").write_text("- kind\n")
    Path("old.ipynb").write_text('{"nbformat": 3, "worksheets": 5}')
    Path("binary.yaml").write_bytes(b"\xff\xfe\x00")
    Path("kind.yaml").write_text("kind: dream\n")
    Path("column.yaml").write_text(HISTORY.replace("[id]", '["a\\eb"]'))
    for command in (("add", "Versions"), ("plan",)):
        said = run("Tess", "pipeline", *command, *(one for pair in files.items() for one in pair))
        assert (said.exit_code, told in said.output) == (2, True), said.output
        assert "\x1b" not in said.output


def test_what_is_hidden_is_missing(run: Commands) -> None:
    run("Tess", "pipeline", "add", "Versions", "-f", "history.yaml")
    for command in ("show", "plan", "activate", "delete", "run", "lineage"):
        said = run("Bea", "pipeline", command, "Versions")
        assert (said.exit_code, "There is no pipeline called 'Versions' that you may see" in said.output) == (1, True)
