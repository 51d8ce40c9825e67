"""Notebooks as files: Jupyter's `.ipynb` (nbformat 4), and `.py` in cells that begin with `# %%`. None is executed."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from pydantic import ValidationError

from headgate.contracts.pipelines.definitions import Cell

MAX_BYTES = 20 << 20
"""Of a file: one with pictures in its outputs is large, and they are left out."""

MAX_CELLS = 1000
_KINDS = {"code": "code", "markdown": "text", "raw": "text"}
_MARK = re.compile(r"#\s*%%(?P<rest>.*)")
_KIND_OF_MARK = re.compile(r"\[(?P<kind>markdown|md|raw)\]")
_WOULD_MARK = re.compile(r"(?:# )*#\s*%%")
_ESCAPED = re.compile(r"# (?:# )*#\s*%%")
_HEADER = "# ---"


class BadNotebook(ValueError):
    """A file that is not a notebook that can be taken; says why, and what to do."""


def read(name: str, content: bytes) -> tuple[Cell, ...]:
    """The cells of a file, by the ending of its name."""
    ending = name.rpartition(".")[2].lower()
    if ending == "ipynb":
        return from_ipynb(content)
    if ending == "py":
        return from_py(content)
    raise BadNotebook("a notebook is a file that ends with .ipynb or .py")


def from_ipynb(content: bytes) -> tuple[Cell, ...]:
    """The cells of a Jupyter notebook; its outputs are left out."""
    text = _text(content)
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise BadNotebook("the file is not JSON, as a Jupyter notebook is; save it again as .ipynb") from None
    if not isinstance(found, dict) or not isinstance(found.get("cells"), list):
        raise BadNotebook("the file is not a Jupyter notebook of version 4: it holds no list of cells")
    if found.get("nbformat") != 4 or isinstance(found["nbformat"], bool):
        raise BadNotebook("only Jupyter notebooks of version 4 are taken: convert it with `jupyter nbconvert`")
    _check_language(found.get("metadata"))
    return _checked(_of_jupyter(number, one) for number, one in enumerate(found["cells"], 1))


def to_ipynb(cells: Sequence[Cell]) -> bytes:
    """A Jupyter notebook of these cells, without outputs."""
    document = {
        "cells": [_for_jupyter(number, one) for number, one in enumerate(cells, 1)],
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(document, indent=1, ensure_ascii=False).encode() + b"\n"


def from_py(content: bytes) -> tuple[Cell, ...]:
    """The cells of a Python file, each of which begins with a line `# %%`, or `# %% [markdown]`."""
    lines = _without_header(_text(content).removeprefix("\ufeff").split("\n"))
    blocks: list[tuple[str, list[str]]] = [("code", [])]
    for line in lines:
        mark = _MARK.fullmatch(line)
        if mark is None:
            blocks[-1][1].append(line[2:] if _ESCAPED.match(line) else line)
        else:
            kind, title = _of_mark(mark["rest"])
            blocks.append((kind, [f"# {title}"] if title else []))
    if not "".join(blocks[0][1]).strip():
        del blocks[0]
    return _checked({"kind": kind, "source": _body(kind, body)} for kind, body in blocks)


def to_py(cells: Sequence[Cell]) -> bytes:
    """A Python file of these cells; text is commented out."""
    return "\n".join(_for_py(one) for one in cells).encode()


def _text(content: bytes) -> str:
    if len(content) > MAX_BYTES:
        raise BadNotebook(f"the file is larger than {MAX_BYTES >> 20} MiB; clear its outputs, and save it again")
    try:
        found = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise BadNotebook("the file is not text in UTF-8; save it as that") from None
    return found.replace("\r\n", "\n")


def _checked(values: Iterable[dict[str, Any]]) -> tuple[Cell, ...]:
    found: list[Cell] = []
    for value in values:
        if len(found) == MAX_CELLS:
            raise BadNotebook(f"a notebook has at most {MAX_CELLS} cells")
        try:
            found.append(Cell.model_validate(value))
        except ValidationError as error:
            why = error.errors()[0]["msg"].removeprefix("Value error, ")
            raise BadNotebook(f"cell {len(found) + 1}: {why}") from None
    if not found:
        raise BadNotebook("the file holds no cells")
    return tuple(found)


def _check_language(metadata: Any) -> None:
    """Refuse a notebook that says that it is not Python."""
    told = metadata if isinstance(metadata, dict) else {}
    for section, name in (("kernelspec", "language"), ("language_info", "name")):
        part = told.get(section)
        language = part.get(name) if isinstance(part, dict) else None
        if isinstance(language, str) and language.lower() not in {"python", "ipython", ""}:
            raise BadNotebook(f"the notebook is written in {language[:40]!r}; only Python is run")


def _of_jupyter(number: int, cell: Any) -> dict[str, Any]:
    kind = cell.get("cell_type") if isinstance(cell, dict) else None
    if not isinstance(kind, str) or kind not in _KINDS:
        raise BadNotebook(f"cell {number} is neither code nor text; a cell_type is code, markdown or raw")
    source = cell.get("source")
    if isinstance(source, list) and all(isinstance(one, str) for one in source):
        source = "".join(source)
    if not isinstance(source, str):
        raise BadNotebook(f"cell {number} has no source: it is a text, or a list of lines")
    return {"kind": _KINDS[kind], "source": source.replace("\r\n", "\n")}


def _for_jupyter(number: int, cell: Cell) -> dict[str, Any]:
    found: dict[str, Any] = {"cell_type": "markdown" if cell.kind == "text" else "code", "id": f"cell-{number}"}
    if cell.kind == "code":
        found |= {"execution_count": None, "outputs": []}
    return {**found, "metadata": {}, "source": re.findall(r"[^\n]*\n|[^\n]+", cell.source)}


def _of_mark(rest: str) -> tuple[str, str]:
    """The kind of a cell by the rest of its first line, and its title."""
    kind = _KIND_OF_MARK.search(rest)
    return ("text" if kind else "code"), (rest.replace(kind[0], "", 1) if kind else rest).strip()


def _without_header(lines: list[str]) -> list[str]:
    """Without the settings that Jupytext writes in comments before the first cell."""
    if lines[0].rstrip() != _HEADER:
        return lines
    for number, line in enumerate(lines[1:], 2):
        if line.rstrip() == _HEADER:
            return lines[number:]
        if not line.startswith("#"):
            break
    return lines


def _body(kind: str, lines: list[str]) -> str:
    """The source of a cell, without the empty line that parts it from the next."""
    kept = lines[:-1] if lines and not lines[-1] else lines
    if kind == "text":
        kept = [line[2:] if line.startswith("# ") else line.removeprefix("#") for line in kept]
    return "\n".join(kept)


def _for_py(cell: Cell) -> str:
    mark, lines = "# %%", iter(cell.source.replace("\r\n", "\n").split("\n"))
    if cell.kind == "text":
        mark, lines = "# %% [markdown]", _commented(lines)
    kept = (f"# {line}" if _WOULD_MARK.match(line) else line for line in lines)
    return "\n".join((mark, *kept)) + "\n"


def _commented(lines: Iterator[str]) -> Iterator[str]:
    return (f"# {line}" if line else "#" for line in lines)
