"""Notebook files: Jupyter's `.ipynb`, and Python's percent format (`# %%`). Reading a file executes nothing."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import nbformat
from nbformat import v4
from pydantic import ValidationError

from headgate.contracts.pipelines.definitions import Cell

MAX_BYTES = 20 << 20
"""Maximum size of a file. Figures in outputs make files large; outputs are dropped on import."""

MAX_CELLS = 1000
_KINDS = {"code": "code", "markdown": "text", "raw": "text"}
_MARKER = re.compile(r"#\s*%%(?P<rest>.*)")
_MARKER_KIND = re.compile(r"\[(?P<kind>markdown|md|raw)\]")
_LIKE_MARKER = re.compile(r"(?:# )*#\s*%%")
_ESCAPED = re.compile(r"# (?:# )*#\s*%%")
_HEADER = "# ---"


class BadNotebook(ValueError):
    """The file is not an importable notebook; the message says why and what to do."""


def read(name: str, content: bytes) -> tuple[Cell, ...]:
    """Read the cells of a file; the file name extension determines the format."""
    extension = name.rpartition(".")[2].lower()
    if extension == "ipynb":
        return from_ipynb(content)
    if extension == "py":
        return from_py(content)
    raise BadNotebook("unknown notebook format; use a file whose name ends with .ipynb or .py")


def from_ipynb(content: bytes) -> tuple[Cell, ...]:
    """Read the cells of a Jupyter notebook, without outputs."""
    try:
        document = nbformat.reader.parse_json(_text(content))  # type: ignore[no-untyped-call]
    except (nbformat.reader.NotJSONError, RecursionError):
        raise BadNotebook("the file is not JSON; save the notebook as .ipynb") from None
    if not isinstance(document, dict) or "nbformat" not in document:
        raise BadNotebook("the file is not a Jupyter notebook: it has no nbformat; save the notebook as .ipynb")
    notebook = document if document["nbformat"] == nbformat.current_nbformat else _upgraded(document)
    if not isinstance(notebook.get("cells"), list):
        raise BadNotebook("the file is not a Jupyter notebook: it has no list of cells")
    _check_language(notebook.get("metadata"))
    return _checked(_from_jupyter(number, cell) for number, cell in enumerate(notebook["cells"], 1))


def _upgraded(document: dict[str, Any]) -> dict[str, Any]:
    """Upgrade a notebook of an older format version to the current one."""
    version = document["nbformat"]
    if type(version) is not int or version not in nbformat.versions:
        raise BadNotebook("the notebook has an unknown format version; save it as version 4")
    try:
        notebook = nbformat.versions[version].to_notebook_json(document)
        converted = nbformat.convert(notebook, nbformat.current_nbformat)  # type: ignore[no-untyped-call]
    except Exception:  # noqa: BLE001 - nbformat raises whatever a malformed document leads to
        raise BadNotebook(f"the file is not a valid notebook of version {version}; save it as version 4") from None
    return dict(converted)


def to_ipynb(cells: Sequence[Cell]) -> bytes:
    """Write cells as a Jupyter notebook, without outputs."""
    metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    notebook = v4.new_notebook(  # type: ignore[no-untyped-call]
        cells=[_for_jupyter(number, cell) for number, cell in enumerate(cells, 1)], metadata=metadata
    )
    return f"{nbformat.writes(notebook)}\n".encode()  # type: ignore[no-untyped-call]


def from_py(content: bytes) -> tuple[Cell, ...]:
    """Read the cells of a Python file, in which each cell starts with a line `# %%` or `# %% [markdown]`."""
    lines = _without_header(_text(content).removeprefix("\ufeff").split("\n"))
    blocks: list[tuple[str, list[str]]] = [("code", [])]
    for line in lines:
        marker = _MARKER.fullmatch(line)
        if marker is None:
            blocks[-1][1].append(line[2:] if _ESCAPED.match(line) else line)
        else:
            kind, title = _parse_marker(marker["rest"])
            blocks.append((kind, [f"# {title}"] if title else []))
    if not "".join(blocks[0][1]).strip():
        del blocks[0]
    return _checked({"kind": kind, "source": _body(kind, body)} for kind, body in blocks)


def to_py(cells: Sequence[Cell]) -> bytes:
    """Write cells as a Python file; text cells become comments."""
    return "\n".join(_for_py(cell) for cell in cells).encode()


def _text(content: bytes) -> str:
    if len(content) > MAX_BYTES:
        raise BadNotebook(f"the file is larger than {MAX_BYTES >> 20} MiB; clear its outputs and save it again")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise BadNotebook("the file is not UTF-8 text; save it as UTF-8") from None
    return text.replace("\r\n", "\n")


def _checked(values: Iterable[dict[str, Any]]) -> tuple[Cell, ...]:
    cells: list[Cell] = []
    for value in values:
        if len(cells) == MAX_CELLS:
            raise BadNotebook(f"a notebook has at most {MAX_CELLS} cells")
        try:
            cells.append(Cell.model_validate(value))
        except ValidationError as error:
            reason = error.errors()[0]["msg"].removeprefix("Value error, ")
            raise BadNotebook(f"cell {len(cells) + 1}: {reason}") from None
    if not cells:
        raise BadNotebook("the file has no cells")
    return tuple(cells)


def _check_language(metadata: Any) -> None:
    """Reject a notebook whose metadata names a language other than Python."""
    sections = metadata if isinstance(metadata, dict) else {}
    for section, name in (("kernelspec", "language"), ("language_info", "name")):
        info = sections.get(section)
        language = info.get(name) if isinstance(info, dict) else None
        if isinstance(language, str) and language.lower() not in {"python", "ipython", ""}:
            raise BadNotebook(f"the notebook is written in {language[:40]!r}; only Python is supported")


def _from_jupyter(number: int, cell: Any) -> dict[str, Any]:
    kind = cell.get("cell_type") if isinstance(cell, dict) else None
    if not isinstance(kind, str) or kind not in _KINDS:
        raise BadNotebook(f"cell {number} has an unknown cell_type; use code, markdown or raw")
    source = cell.get("source")
    if isinstance(source, list) and all(isinstance(line, str) for line in source):
        source = "".join(source)
    if not isinstance(source, str):
        raise BadNotebook(f"cell {number} has no source; it must be a string or a list of lines")
    return {"kind": _KINDS[kind], "source": source.replace("\r\n", "\n")}


def _for_jupyter(number: int, cell: Cell) -> Any:
    create = v4.new_markdown_cell if cell.kind == "text" else v4.new_code_cell
    return create(cell.source, id=f"cell-{number}")  # type: ignore[no-untyped-call]


def _parse_marker(rest: str) -> tuple[str, str]:
    """The kind and the title of a cell, from the text after its marker."""
    kind = _MARKER_KIND.search(rest)
    return ("text" if kind else "code"), (rest.replace(kind[0], "", 1) if kind else rest).strip()


def _without_header(lines: list[str]) -> list[str]:
    """The lines without Jupytext's header comment."""
    if lines[0].rstrip() != _HEADER:
        return lines
    for number, line in enumerate(lines[1:], 2):
        if line.rstrip() == _HEADER:
            return lines[number:]
        if not line.startswith("#"):
            break
    return lines


def _body(kind: str, lines: list[str]) -> str:
    """The source of a cell, without the blank line before the next cell."""
    source = lines[:-1] if lines and not lines[-1] else lines
    if kind == "text":
        source = [line[2:] if line.startswith("# ") else line.removeprefix("#") for line in source]
    return "\n".join(source)


def _for_py(cell: Cell) -> str:
    marker, lines = "# %%", iter(cell.source.replace("\r\n", "\n").split("\n"))
    if cell.kind == "text":
        marker, lines = "# %% [markdown]", _commented(lines)
    escaped = (f"# {line}" if _LIKE_MARKER.match(line) else line for line in lines)
    return "\n".join((marker, *escaped)) + "\n"


def _commented(lines: Iterator[str]) -> Iterator[str]:
    return (f"# {line}" if line else "#" for line in lines)
