"""Runs the cells in order in one namespace and records their outputs; stops at the first failure."""

import ast
import importlib
import json
import linecache
import os
import sys
import time
import types
from pathlib import Path
from typing import Any

from headgate.execution.notebooks.program import display, wheels
from headgate.execution.notebooks.program.capture import Capture
from headgate.execution.notebooks.program.lake import Lake
from headgate.execution.notebooks.program.spark import NoSpark, NotebookSpark

STREAM_BYTES = 200_000
DONE = "done.json"
SPARK_ENDED = "\nThe Spark process has ended; if it ran out of memory, process less data at a time"
MAGIC = "\nIPython syntax (lines that start with % or !) is not supported; use plain Python"


def run(job: dict[str, Any]) -> None:
    """Run a notebook, then exit."""
    folder = Path(job["cells"])
    wheels.unpack(Path(job["wheels"]), Path(job["scratch"], "wheels"))
    importlib.invalidate_caches()
    try:
        spark = NotebookSpark(job)
    except NoSpark:
        _write(folder / DONE, {"ok": False, "spark": False})
        os._exit(1)
    is_well = Runner(job, spark, folder).run()
    _write(folder / DONE, {"ok": is_well})
    # Without a farewell to Spark, which may take long: all that there is here ends with this process.
    os._exit(0 if is_well else 1)


class Runner:
    """The namespace of a notebook, and its cells."""

    def __init__(self, job: dict[str, Any], spark: NotebookSpark, folder: Path) -> None:
        self._job, self._spark, self._folder = job, spark, folder
        self._left: int = job["output_bytes"]
        self._number = 0
        self._shown: list[dict[str, Any]] = []
        # Functions that go to Spark's workers are taken along by what they are in this module.
        module = types.ModuleType("__main__")
        sys.modules["__main__"] = module
        self._names = module.__dict__
        self._names |= {
            **Lake(spark.session, job).names(),
            "spark": spark.session,
            "parameters": dict(job["parameters"]),
            "display": self._show,
        }
        self._capture = Capture()

    def run(self) -> bool:
        """Run them; whether all went well."""
        for number, cell in enumerate(self._job["code"], 1):
            if cell["kind"] == "code" and not self._run(number, cell["source"]):
                return False
        return True

    def _run(self, number: int, source: str) -> bool:
        began, error = time.monotonic(), None
        self._number = number
        self._shown.clear()
        self._capture.begin(max(min(self._left, STREAM_BYTES), 0))
        try:
            value = self._execute(source, f"<cell {number}>")
            if value is not None:
                self._show(value)
            self._shown += display.figures(self._folder, number)
        except BaseException as raised:  # noqa: BLE001 - whatever it is, it is the cell's
            error = self._failure(raised, source)
        out, err, is_cut = self._capture.end()
        told = {
            "number": number,
            "seconds": round(time.monotonic() - began, 3),
            "stdout": out,
            "stderr": err,
            "cut": is_cut,
            "outputs": self._shown,
            "error": error,
        }
        self._left -= _write(self._folder / f"cell-{number:04}.json", told)
        return error is None

    def _show(self, value: Any) -> None:
        """Display a value: as a picture if possible, else as a table or text."""
        values = display.picture(value, self._folder, self._number, len(self._shown))
        self._shown.append(values or display.shown(value))

    def _execute(self, source: str, name: str) -> Any:
        """Execute a cell; return the value of its last expression."""
        linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
        tree = ast.parse(source, name)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, name, "exec", dont_inherit=True), self._names)  # noqa: S102 - that is what a notebook is
        if last is None:
            return None
        expression = ast.Expression(last.value)  # type: ignore[attr-defined]
        return eval(compile(expression, name, "eval", dont_inherit=True), self._names)  # noqa: S307

    def _failure(self, error: BaseException, source: str) -> dict[str, Any]:
        values = display.failure(error)
        hint = ""
        if self._spark.has_ended:
            hint = SPARK_ENDED
        elif isinstance(error, SyntaxError) and any(
            line.lstrip().startswith(("%", "!")) for line in source.splitlines()
        ):
            hint = MAGIC
        return {**values, "message": values["message"] + hint}


def _write(file: Path, told: dict[str, Any]) -> int:
    """Write a file atomically; return its size."""
    content = json.dumps(told).encode()
    part = file.with_suffix(".part")
    part.write_bytes(content)
    part.replace(file)
    return len(content)
