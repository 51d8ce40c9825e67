"""The outputs of a notebook's cells, read from files that untrusted code may have written."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headgate.execution.sources.rest.failures import redact
from headgate.kit.untrusted_files import NotRegularFile, content, entries

MAX_CELLS = 1000
MAX_OUTPUTS = 50
MAX_COLUMNS, MAX_ROWS, MAX_VALUE = 100, 50, 1000
MAX_TEXT = 200_000
MAX_MESSAGE = 4000
MAX_FILE = 8 << 20
NAME = "notebook.json"
HIDDEN = "•••"
_PNG = b"\x89PNG\r\n\x1a\n"
_LEFT_OUT = {"kind": "text", "text": "<omitted: the outputs of the notebook exceed the size limit>"}


@dataclass(frozen=True)
class Artifact:
    """A file that is stored with the run."""

    name: str
    media_type: str
    content: bytes


class Outputs:
    """The outputs of a notebook's cells, limited in size and without secrets."""

    def __init__(self, folder: Path, most: int, secrets: Iterable[str]) -> None:
        self._folder, self._left = folder, most
        self._hidden = list(secrets)
        self._pictures: list[Artifact] = []
        self.cells = [self._cell(number) for number in self.numbers()]

    def numbers(self) -> list[int]:
        """The numbers of the cells that have ended, according to the notebook."""
        result = []
        for entry in entries(self._folder, 10 * MAX_CELLS):
            number = entry.name.removeprefix("cell-").removesuffix(".json")
            if entry.name == f"cell-{number}.json" and number.isdecimal() and len(number) == 4:
                result.append(int(number))
        return result[:MAX_CELLS]

    @property
    def failed(self) -> dict[str, Any] | None:
        """The cell that failed, if any."""
        return next((cell for cell in self.cells if cell["error"] is not None), None)

    def artifacts(self) -> list[Artifact]:
        """The artifacts of the run: all outputs as JSON, and each picture."""
        told = json.dumps({"cells": self.cells}, ensure_ascii=False).encode()
        return [Artifact(NAME, "application/json", told), *self._pictures]

    def brief(self) -> list[dict[str, Any]]:
        """A summary of each cell with its duration and error, for the run's row."""
        return [
            {"number": cell["number"], "seconds": cell["seconds"]}
            | ({"error": cell["error"]["message"][:500]} if cell["error"] else {})
            for cell in self.cells
        ]

    def _cell(self, number: int) -> dict[str, Any]:
        try:
            told = json.loads(content(self._folder / f"cell-{number:04}.json", MAX_FILE))
            told = told if isinstance(told, dict) else {}
        except (NotRegularFile, ValueError, RecursionError):
            told = {}
        shown = told.get("outputs")
        seconds = told.get("seconds")
        values: dict[str, Any] = {
            "number": number,
            "seconds": float(seconds) if isinstance(seconds, int | float) and 0 <= seconds < 1e7 else 0.0,
            "stdout": self._text(told.get("stdout"), MAX_TEXT),
            "stderr": self._text(told.get("stderr"), MAX_TEXT),
            "cut": bool(told.get("cut")),
            "outputs": [self._output(value) for value in (shown if isinstance(shown, list) else [])[:MAX_OUTPUTS]],
            "error": self._error(told.get("error")),
        }
        size = len(json.dumps(values).encode())
        if size > self._left:
            values |= {"stdout": "", "stderr": "", "cut": True, "outputs": [_LEFT_OUT]}
        self._left -= min(size, max(self._left, 0))
        return values

    def _output(self, told: Any) -> dict[str, Any]:
        kind = told.get("kind") if isinstance(told, dict) else None
        if kind == "text":
            return {"kind": "text", "text": self._text(told.get("text"), MAX_TEXT)}
        if kind == "table" and isinstance(told.get("columns"), list) and isinstance(told.get("rows"), list):
            rows = [value for value in told["rows"] if isinstance(value, list)]
            return {
                "kind": "table",
                "columns": [self._text(value, MAX_VALUE) for value in told["columns"][:MAX_COLUMNS]],
                "rows": [
                    [None if value is None else self._text(value, MAX_VALUE) for value in row[:MAX_COLUMNS]]
                    for row in rows[:MAX_ROWS]
                ],
                "more": bool(told.get("more")) or len(rows) > MAX_ROWS,
            }
        if kind == "image":
            return self._picture(told.get("file"))
        return {"kind": "text", "text": ""}

    def _picture(self, name: Any) -> dict[str, Any]:
        if not isinstance(name, str) or not name.removesuffix(".png").replace("-", "").isalnum() or len(name) > 40:
            return _LEFT_OUT
        try:
            result = content(self._folder / name, min(MAX_FILE, max(self._left, 0)))
        except NotRegularFile:
            return _LEFT_OUT
        if not result.startswith(_PNG):
            return _LEFT_OUT
        self._left -= len(result)
        kept = f"picture-{len(self._pictures) + 1}.png"
        self._pictures.append(Artifact(kept, "image/png", result))
        return {"kind": "image", "file": kept}

    def _error(self, told: Any) -> dict[str, Any] | None:
        if not isinstance(told, dict):
            return None
        return {name: self._text(told.get(name), MAX_MESSAGE) for name in ("name", "message", "traceback")}

    def _text(self, told: Any, most: int) -> str:
        text = told if isinstance(told, str) else ""
        # What cannot be stored is shown as such.
        text = text.encode("utf-8", "replace").decode().replace("\0", "\ufffd")
        text = redact(text, self._hidden, HIDDEN)
        return text if len(text) <= most else text[:most] + "…"
