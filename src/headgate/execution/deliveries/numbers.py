"""Which numbers a column takes whole, as conditions that both kinds of databases read."""

from headgate.contracts.tables.types import BIGINT, DOUBLE, FLOAT, INT, Decimal, PrimitiveType, Type
from headgate.execution.deliveries.database import both

WHOLE = {INT: (-(2**31), 2**31 - 1), BIGINT: (-(2**63), 2**63 - 1)}
EXACT_IN = {"single": 2**24, "double": 2**53}
"""The largest whole number up to which a floating one holds each."""

DIGITS = {INT: 10, BIGINT: 19}


def is_number(given: Type) -> bool:
    """Whether it is a type of numbers."""
    return isinstance(given, Decimal) or (isinstance(given, PrimitiveType) and given.name in {*WHOLE, FLOAT, DOUBLE})


def in_whole(given: Type, value: str, low: int, high: int, truncated: str) -> str:
    """That a number is whole, and in a range; `truncated` is the number without what is after the point."""
    if isinstance(given, PrimitiveType) and given.name in WHOLE:
        least, most = WHOLE[given.name]
        return "" if low <= least and most <= high else f"{value} BETWEEN {low} AND {high}"
    return both(f"{value} = {truncated}", f"{value} BETWEEN {low} AND {high}")


def in_decimal(given: Type, value: str, precision: int, scale: int, rounded: str) -> str:
    """That a number has as many digits at most; `rounded` is the number with so many after the point."""
    before = precision - scale
    below = f"{value} > -1e{before} AND {value} < 1e{before}"
    if isinstance(given, Decimal):
        fits = given.precision - given.scale <= before
        return both("" if fits else below, "" if given.scale <= scale else f"{rounded} = {value}")
    if isinstance(given, PrimitiveType) and given.name in DIGITS:
        return "" if DIGITS[given.name] <= before else below
    return both(below, f"{rounded} = {value}")


def in_floating(given: Type, value: str, size: str) -> str | None:
    """That a whole number is one that floating numbers of this size hold; None for types that this does not tell of."""
    if isinstance(given, PrimitiveType) and given.name in WHOLE:
        most = EXACT_IN[size]
        return "" if WHOLE[given.name][1] <= most else f"{value} BETWEEN -{most} AND {most}"
    return None
