"""Split a table into ranges of a column between its minimum and maximum."""

from datetime import date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from itertools import pairwise
from typing import Any


def limits(low: str | None, high: str | None, order: str, count: int) -> list[Any]:
    """The boundaries of at most this many partitions; none if the table cannot be split."""
    if low is None or high is None:
        return []
    try:
        first, last = _value(low, order), _value(high, order)
    except (ValueError, InvalidOperation):
        # Infinite, or before the first year: not worth parts.
        return []
    if order == "bigint":
        width = last - first + 1
        return sorted({first + width * number // count for number in range(1, count)} - {first})
    if order == "date":
        width = (last - first).days + 1
        return sorted({first + timedelta(days=width * number // count) for number in range(1, count)} - {first})
    step = (last - first) / count
    return [first + step * number for number in range(1, count)] if last > first else []


def _value(text: str, order: str) -> Any:
    match order:
        case "bigint":
            return int(Decimal(text))
        case "decimal" | "double":
            number = Decimal(text)
            if not number.is_finite():
                raise ValueError(text)
            return number
        case "date":
            return date.fromisoformat(text)
        case "timestamp" | "timestamp_ntz":
            return datetime.fromisoformat(text)
    raise ValueError(order)


def conditions(column: str, between: list[str]) -> list[str]:
    """A filter per partition. Each row matches exactly one; NULLs belong to the first."""
    if not between:
        return []
    first = f"{column} < {between[0]} OR {column} IS NULL"
    middle = [f"{column} >= {low} AND {column} < {high}" for low, high in pairwise(between)]
    return [first, *middle, f"{column} >= {between[-1]}"]
