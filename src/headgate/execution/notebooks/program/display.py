"""Display the result of a cell: its last value, tables, figures and errors, as text and pictures only."""

import io
import sys
import traceback
from pathlib import Path
from typing import Any

ROWS, COLUMNS, CELL, TEXT = 20, 100, 500, 20_000
FIGURES, FIGURE_BYTES = 20, 5 << 20
_DATA_FRAMES = ("pyspark.sql", "pandas.core", "pyarrow.lib")


def shown(value: Any) -> dict[str, Any]:
    """A value as a preview table of a data frame, or as text."""
    try:
        table = _table(value)
    except Exception as error:  # noqa: BLE001 - whatever goes wrong in showing is shown
        return {"kind": "text", "text": f"<cannot display: {cut(str(error))}>"}
    if table is not None:
        return table
    try:
        text = repr(value)
    except Exception as error:  # noqa: BLE001
        text = f"<cannot display: {type(error).__name__}>"
    return {"kind": "text", "text": cut(text)}


def picture(value: Any, folder: Path, number: int, before: int) -> dict[str, Any] | None:
    """A value that gives itself as a picture, as those of Pillow do, or a figure that pyplot does not hold; else None.

    `before` is how much the cell has shown before.
    """
    try:
        content = _png(value)
    except Exception as error:  # noqa: BLE001 - whatever goes wrong in showing is shown
        return {"kind": "text", "text": f"<cannot display: {cut(str(error))}>"}
    if content is None:
        return None
    return _kept(content, folder, f"cell-{number:04}-shown-{before + 1}.png")


def _png(value: Any) -> bytes | None:
    if isinstance(value, type):
        return None
    if callable(own := getattr(value, "_repr_png_", None)):
        result = own()
        # Some tell sizes beside it.
        result = result[0] if isinstance(result, tuple) and result else result
        return result if isinstance(result, bytes) else None
    if type(value).__module__.startswith("matplotlib.figure") and not _is_held(value):
        content = io.BytesIO()
        value.savefig(content, format="png")
        return content.getvalue()
    return None


def _is_held(figure: Any) -> bool:
    """Whether pyplot holds a figure, which is displayed when the cell ends."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    return pyplot is not None and any(pyplot.figure(fignum) is figure for fignum in pyplot.get_fignums())


def _kept(content: bytes, folder: Path, name: str) -> dict[str, Any]:
    if len(content) > FIGURE_BYTES:
        return {"kind": "text", "text": f"<a figure larger than {FIGURE_BYTES >> 20} MiB is omitted>"}
    (folder / name).write_bytes(content)
    return {"kind": "image", "file": name}


def cut(text: str, most: int = TEXT) -> str:
    """A text, truncated to this length."""
    return text if len(text) <= most else text[:most] + "…"


def _table(value: Any) -> dict[str, Any] | None:
    module, name = type(value).__module__, type(value).__name__
    if not module.startswith(_DATA_FRAMES):
        return None
    if name == "DataFrame" and module.startswith("pyspark.sql"):
        names, rows = list(value.columns), [tuple(row) for row in value.limit(ROWS + 1).collect()]
    elif name in {"DataFrame", "Series", "Table"}:
        frame = value.slice(0, ROWS + 1).to_pandas() if name == "Table" else value
        frame = frame.to_frame() if name == "Series" else frame
        frame = frame.head(ROWS + 1)
        names, rows = [str(column) for column in frame.columns], list(frame.itertuples(index=False, name=None))
    else:
        return None
    kept = [[cut(str(value), CELL) if value is not None else None for value in row[:COLUMNS]] for row in rows[:ROWS]]
    columns = [cut(str(value), CELL) for value in names[:COLUMNS]]
    return {"kind": "table", "columns": columns, "rows": kept, "more": len(rows) > ROWS or len(names) > COLUMNS}


def figures(folder: Path, number: int) -> list[dict[str, Any]]:
    """Save and close the open figures of matplotlib."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is None:
        return []
    results: list[dict[str, Any]] = []
    for place in pyplot.get_fignums()[:FIGURES]:
        content = io.BytesIO()
        pyplot.figure(place).savefig(content, format="png")
        results.append(_kept(content.getvalue(), folder, f"cell-{number:04}-{len(results) + 1}.png"))
    pyplot.close("all")
    return results


def failure(error: BaseException) -> dict[str, Any]:
    """The traceback of an error, limited to lines of cells."""
    frames = [
        frame_summary
        for frame_summary in traceback.extract_tb(error.__traceback__)
        if frame_summary.filename.startswith("<cell ")
    ]
    said = "".join(traceback.format_exception_only(error))
    lines = [line for line in said.splitlines() if not line.startswith(("\tat ", "\t..."))]
    message = cut("\n".join(lines).strip())
    text = "Traceback (most recent call last):\n" + "".join(traceback.format_list(frames)) if frames else ""
    return {"name": type(error).__name__[:200], "message": message, "traceback": cut(f"{text}{message}")}
