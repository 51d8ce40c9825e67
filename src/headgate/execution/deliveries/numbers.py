"""Conditions that a number fits a column without loss, in SQL that both databases accept."""

from headgate.contracts.tables.types import BIGINT, DOUBLE, FLOAT, INT, Decimal, PrimitiveType, Type
from headgate.execution.deliveries.database import all_conditions

WHOLE = {INT: (-(2**31), 2**31 - 1), BIGINT: (-(2**63), 2**63 - 1)}
EXACT_IN = {"single": 2**24, "double": 2**53}
"""The largest n such that the float type represents every integer up to n."""

DIGITS = {INT: 10, BIGINT: 19}


def is_number(given: Type) -> bool:
    """Whether a type is numeric."""
    return isinstance(given, Decimal) or (isinstance(given, PrimitiveType) and given.name in {*WHOLE, FLOAT, DOUBLE})


def in_whole(given: Type, value: str, low: int, high: int, truncated: str) -> str:
    """The condition that a number is an integer in a range; `truncated` is the number without its fraction."""
    if isinstance(given, PrimitiveType) and given.name in WHOLE:
        least, most = WHOLE[given.name]
        return "" if low <= least and most <= high else f"{value} BETWEEN {low} AND {high}"
    return all_conditions(f"{value} = {truncated}", f"{value} BETWEEN {low} AND {high}")


def in_decimal(given: Type, value: str, precision: int, scale: int, rounded: str) -> str:
    """The condition that a number fits precision and scale; `rounded` is the number rounded to the scale."""
    before = precision - scale
    below = f"{value} > -1e{before} AND {value} < 1e{before}"
    if isinstance(given, Decimal):
        fits = given.precision - given.scale <= before
        return all_conditions("" if fits else below, "" if given.scale <= scale else f"{rounded} = {value}")
    if isinstance(given, PrimitiveType) and given.name in DIGITS:
        return "" if DIGITS[given.name] <= before else below
    return all_conditions(below, f"{rounded} = {value}")


def in_floating(given: Type, value: str, size: str) -> str | None:
    """The condition that an integer is exact in this float type; None if the type cannot be checked."""
    if isinstance(given, PrimitiveType) and given.name in WHOLE:
        most = EXACT_IN[size]
        return "" if WHOLE[given.name][1] <= most else f"{value} BETWEEN -{most} AND {most}"
    return None
