"""SQL literals of values in definitions, typed by the column that they are compared with."""

import math
from datetime import UTC, date, datetime
from decimal import Decimal as Number
from decimal import InvalidOperation

from headgate.contracts.pipelines.fields import literal
from headgate.contracts.tables import types
from headgate.contracts.tables.types import Column, Decimal, PrimitiveType

_WHOLE = {types.INT, types.BIGINT}
_BROKEN = {types.FLOAT, types.DOUBLE}
_MOST_DIGITS = 38


class BadValue(ValueError):
    """A value of the wrong type; the message says what to write."""


def written(value: str | float | bool, column: Column) -> str:
    """The SQL literal of a value."""
    kind = column.type.name if isinstance(column.type, PrimitiveType) else ""
    if kind == types.BOOLEAN and isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, bool):
        raise _bad(value, column)
    if kind in _WHOLE | _BROKEN or isinstance(column.type, Decimal):
        return _number(value, column, kind)
    if isinstance(value, str):
        if kind == types.STRING:
            return literal(value)
        if kind in types.TIMES:
            return _time(value, column, kind)
    raise _bad(value, column)


def _number(value: str | float, column: Column, kind: str) -> str:
    try:
        number = Number(value if isinstance(value, str) else repr(value))
    except InvalidOperation:
        raise _bad(value, column) from None
    if not number.is_finite() or not math.isfinite(float(number)):
        raise _bad(value, column)
    if kind in _BROKEN:
        # As the column rounds it: otherwise 0.1 would be no value of a column of 0.1s.
        return f"CAST({float(number)!r}D AS {kind})"
    digits = number.as_tuple()
    scale = max(0, -int(digits.exponent))
    if scale > _MOST_DIGITS or len(digits.digits) + max(0, int(digits.exponent)) > _MOST_DIGITS:
        raise _bad(value, column)
    is_whole = kind in _WHOLE and number == int(number) and abs(number) < 2**63
    return f"{int(number)}L" if is_whole else f"{number:f}BD"


def _time(value: str, column: Column, kind: str) -> str:
    try:
        if kind == types.DATE:
            return f"DATE '{date.fromisoformat(value).isoformat()}'"
        moment = datetime.fromisoformat(value)
    except ValueError:
        raise _bad(value, column) from None
    if moment.tzinfo is not None:
        if kind == types.TIMESTAMP_NTZ:
            raise BadValue(f"{column.name} has times without a time zone; write {value!r} without one")
        moment = moment.astimezone(UTC)
        return f"TIMESTAMP '{moment.replace(tzinfo=None).isoformat(sep=' ')}+00:00'"
    return f"{kind} '{moment.isoformat(sep=' ')}'"


def _bad(value: object, column: Column) -> BadValue:
    kind = types.shown(column.type)
    wanted = _WANTED.get(kind, "a number" if isinstance(column.type, Decimal) else None)
    if wanted is None:
        return BadValue(f"{column.name} is {kind}, which cannot be compared with values; write a check in SQL")
    return BadValue(f"{value!r} is not a valid value of {column.name}, which is {kind}; write {wanted}")


_WANTED = {
    types.BOOLEAN: "true or false",
    types.INT: "a number",
    types.BIGINT: "a number",
    types.FLOAT: "a number",
    types.DOUBLE: "a number",
    types.STRING: "a text, in quotes",
    types.DATE: "a date as '2026-05-31'",
    types.TIMESTAMP: "a time as '2026-05-31 14:30:00', or with a zone as '2026-05-31T14:30:00+02:00'",
    types.TIMESTAMP_NTZ: "a time as '2026-05-31 14:30:00'",
}
