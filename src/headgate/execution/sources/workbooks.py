"""Reads a sheet of a workbook. It travels to Spark's Python by value: nothing here needs this package there."""

import datetime as dt
from collections.abc import Iterator
from pathlib import Path
from typing import Any

BATCH = 10_000


class BadWorkbook(Exception):
    """A file that is no workbook; says why."""


def sheets(path: str) -> list[str]:
    """The names of a workbook's sheets."""
    return list(_opened(path).sheet_names)


def first(path: str, sheet: str) -> list[str]:
    """The values of the first row that has any, up to the last of them."""
    for row in _cells(path, sheet):
        while row and row[-1] is None:
            row.pop()
        if row:
            return [cell or "" for cell in row]
    return []


def batches(path: str, sheet: str, skip: int) -> Iterator[Any]:
    """A sheet's rows, without the first ones, as Arrow: the file's name, the row's number, its cells as texts."""
    import pyarrow as pa

    name = Path(path).name
    numbers: list[int] = []
    rows: list[list[str | None]] = []

    def made() -> Any:
        return pa.RecordBatch.from_arrays(
            [pa.array([name] * len(rows)), pa.array(numbers, pa.int64()), pa.array(rows, pa.list_(pa.string()))],
            ["file", "number", "cells"],
        )

    for number, row in enumerate(_cells(path, sheet)):
        if number < skip:
            continue
        numbers.append(number)
        rows.append(row)
        if len(rows) >= BATCH:
            yield made()
            numbers, rows = [], []
    if rows:
        yield made()


def _cells(path: str, sheet: str) -> Iterator[list[str | None]]:
    """The rows that are not empty."""
    book = _opened(path)
    try:
        result = book.get_sheet_by_name(sheet or book.sheet_names[0])
        for row in result.iter_rows():
            texts = [_text(cell) for cell in row]
            if any(text is not None for text in texts):
                yield texts
    except Exception as error:  # noqa: BLE001 - the library raises what it likes
        raise BadWorkbook(str(error)[:200]) from None


def _opened(path: str) -> Any:
    import python_calamine  # noqa: PLC0415 - only where a workbook is read

    try:
        return python_calamine.CalamineWorkbook.from_path(path)
    except Exception as error:  # noqa: BLE001 - the library raises what it likes
        raise BadWorkbook(str(error)[:200]) from None


def _text(cell: Any) -> str | None:
    match cell:
        case None | "":
            return None
        case bool():
            return "true" if cell else "false"
        case float() if cell.is_integer() and abs(cell) < 1e15:
            return str(int(cell))
        case dt.datetime():
            return cell.isoformat(sep=" ")
        case dt.date() | dt.time():
            return cell.isoformat()
    return str(cell)
