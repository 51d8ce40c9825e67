"""Notebooks as files, in and out; hostile ones are refused with a sentence, and nothing of them is executed."""

import json
from pathlib import Path
from typing import Any

import nbformat
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.contracts.pipelines.definitions import Cell
from headgate.pipelines.notebook_files import MAX_BYTES, BadNotebook, from_ipynb, from_py, read, to_ipynb, to_py

_LINES = st.one_of(
    st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), max_size=20),
    st.sampled_from(["", "# %%", "#%%", "# # %%", "# %% [markdown]", "%%", "#", "# ---", " ", "x = 1", "'''"]),
)
_CELLS = st.lists(
    st.builds(
        lambda kind, lines: Cell(kind=kind, source="\n".join(lines)),
        st.sampled_from(["code", "text"]),
        st.lists(_LINES, max_size=6),
    ),
    min_size=1,
    max_size=6,
)


@given(_CELLS)
def test_what_is_written_is_read_again(cells: list[Cell]) -> None:
    assert from_ipynb(to_ipynb(cells)) == tuple(cells)
    assert from_py(to_py(cells)) == tuple(cells)


def test_a_file_as_editors_write_it() -> None:
    content = b"""# ---
# jupyter:
#   jupytext: {formats: py:percent}
# ---
import pandas

# %% [markdown]
# # Revenue
# by month

# %% Load
orders = load("raw.orders")
#%%
# # %% is no cell
print(orders)
"""
    assert [(one.kind, one.source) for one in read("revenue.py", content)] == [
        ("code", "import pandas"),
        ("text", "# Revenue\nby month"),
        ("code", '# Load\norders = load("raw.orders")'),
        ("code", "# %% is no cell\nprint(orders)"),
    ]
    assert read("x.PY", content.replace(b"\n", b"\r\n")) == read("x.py", content)
    assert read("plain.py", b"x = 1\n") == (Cell(source="x = 1"),)


def test_a_notebook_as_jupyter_writes_it() -> None:
    content = {
        "cells": [
            {"cell_type": "markdown", "metadata": {}, "source": ["# Title\n", "text"]},
            {
                "cell_type": "code",
                "execution_count": 3,
                "metadata": {"collapsed": True},
                "outputs": [{"output_type": "display_data", "data": {"text/html": "<script>alert(1)</script>"}}],
                "source": "x = 1\r\nx",
            },
            {"cell_type": "raw", "metadata": {}, "source": []},
        ],
        "metadata": {"kernelspec": {"language": "python"}},
        "nbformat": 4,
        "nbformat_minor": 2,
    }
    found = read("a.ipynb", json.dumps(content).encode())
    assert [(one.kind, one.source) for one in found] == [("text", "# Title\ntext"), ("code", "x = 1\nx"), ("text", "")]
    again = json.loads(to_ipynb(found))
    assert "script" not in json.dumps(again)
    assert [one["cell_type"] for one in again["cells"]] == ["markdown", "code", "markdown"]
    assert again["cells"][1]["source"] == ["x = 1\n", "x"]


def test_a_notebook_of_an_older_version_is_converted() -> None:
    worksheet = {
        "cells": [
            {"cell_type": "heading", "level": 2, "metadata": {}, "source": ["Title"]},
            {"cell_type": "code", "language": "python", "input": ["x = 1\n", "x"], "outputs": [], "metadata": {}},
        ]
    }
    content = {"nbformat": 3, "nbformat_minor": 0, "metadata": {"name": "old"}, "worksheets": [worksheet]}
    cells = read("old.ipynb", json.dumps(content).encode())
    assert [(cell.kind, cell.source) for cell in cells] == [("text", "## Title"), ("code", "x = 1\nx")]


@given(_CELLS)
def test_what_is_written_is_valid_for_jupyter(cells: list[Cell]) -> None:
    nbformat.validate(nbformat.reads(to_ipynb(cells).decode(), as_version=4))


def notebook(**more: Any) -> bytes:
    return json.dumps({"cells": [], "nbformat": 4, "nbformat_minor": 5, "metadata": {}, **more}).encode()


def cell(**more: Any) -> bytes:
    return notebook(cells=[{"cell_type": "code", "source": "1", **more}])


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.ipynb", b"x" * (MAX_BYTES + 1), "larger than 20 MiB"),
        ("a.py", b"\xff\xfe\x00", "UTF-8"),
        ("a.ipynb", b"{", "not JSON"),
        ("a.ipynb", b"[" * 100_000 + b"]" * 100_000, "not JSON"),
        ("a.ipynb", b"[]", "no nbformat"),
        ("a.ipynb", b'{"cells": {"a": 1}, "nbformat": 4}', "no list of cells"),
        ("a.ipynb", notebook(nbformat=3, worksheets=5), "not a valid notebook of version 3"),
        ("a.ipynb", notebook(nbformat=3, worksheets=[{"cells": [5]}]), "not a valid notebook of version 3"),
        ("a.ipynb", notebook(nbformat=3, nbformat_minor=0, worksheets=[{"cells": []}]), "no cells"),
        ("a.ipynb", notebook(nbformat=5), "unknown format version"),
        ("a.ipynb", notebook(nbformat=[4]), "unknown format version"),
        ("a.ipynb", notebook(nbformat=True), "unknown format version"),
        ("a.ipynb", notebook(nbformat="4"), "unknown format version"),
        ("a.ipynb", notebook(), "no cells"),
        ("a.ipynb", notebook(cells=["x"]), "cell 1 has an unknown cell_type"),
        ("a.ipynb", cell(cell_type="shell"), "cell 1 has an unknown cell_type"),
        ("a.ipynb", cell(cell_type=["code"]), "cell 1 has an unknown cell_type"),
        ("a.ipynb", cell(source={"a": 1}), "cell 1 has no source"),
        ("a.ipynb", cell(source=["a", 1]), "cell 1 has no source"),
        ("a.ipynb", cell(source="a\0b"), "cell 1: a string contains a NUL character"),
        ("a.ipynb", cell(source="\ud800"), "cell 1: a string contains"),
        ("a.ipynb", cell(source="x" * 1_000_001), "cell 1: .*1000000 char"),
        ("a.ipynb", notebook(cells=[{"cell_type": "code", "source": "1"}] * 1001), "at most 1000 cells"),
        ("a.ipynb", notebook(metadata={"kernelspec": {"language": "R"}}, cells=[1]), "written in 'R'"),
        ("a.ipynb", notebook(metadata={"language_info": {"name": "julia"}}, cells=[1]), "written in 'julia'"),
        ("a.py", b"", "no cells"),
        ("a.py", b"# %%\n" * 1001, "at most 1000 cells"),
        ("a.py", b"x = '\0'", "NUL character"),
        ("a.sh", b"echo", r"ends with \.ipynb or \.py"),
        ("ipynb", b"{}", r"not a Jupyter notebook"),
    ],
)
def test_hostile_files_are_refused_with_a_sentence(name: str, content: bytes, says: str) -> None:
    with pytest.raises(BadNotebook, match=says) as refused:
        read(name, content)
    assert len(str(refused.value)) < 200


def test_nothing_of_a_file_is_executed(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    code = f"open({str(mark)!r}, 'w')"
    for name, content in (
        ("a.py", f"# coding: utf-7\n# %%\n{code}\n".encode()),
        ("a.ipynb", cell(source=code, outputs=[{"data": {"application/python": code}}])),
    ):
        assert code in [one.source for one in read(name, content)]
    assert not mark.exists()
