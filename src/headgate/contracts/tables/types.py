"""Column types: SQL notation, assignability, and conversion of values."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from headgate.contracts.pipelines.fields import literal, quoted

BOOLEAN, INT, BIGINT, FLOAT, DOUBLE = "BOOLEAN", "INT", "BIGINT", "FLOAT", "DOUBLE"
STRING, BINARY, DATE, TIMESTAMP, TIMESTAMP_NTZ = "STRING", "BINARY", "DATE", "TIMESTAMP", "TIMESTAMP_NTZ"
TIMES = frozenset({DATE, TIMESTAMP, TIMESTAMP_NTZ})
_DIGITS = {INT: 10, BIGINT: 19}
_EXACT_IN = {(INT, BIGINT), (INT, DOUBLE), (FLOAT, DOUBLE)}
_GROWS_TO = {(INT, BIGINT), (FLOAT, DOUBLE)}


@dataclass(frozen=True, slots=True)
class PrimitiveType:
    """A primitive type."""

    name: str


@dataclass(frozen=True, slots=True)
class Decimal:
    """A decimal with precision and scale."""

    precision: int
    scale: int


@dataclass(frozen=True, slots=True)
class Struct:
    """Named fields."""

    fields: "tuple[Column, ...]"


@dataclass(frozen=True, slots=True)
class Array:
    """Values in order."""

    element: "Type"


@dataclass(frozen=True, slots=True)
class Map:
    """Values by key."""

    key: "Type"
    value: "Type"


Type = PrimitiveType | Decimal | Struct | Array | Map


@dataclass(frozen=True, slots=True)
class Column:
    """A column or a struct field."""

    name: str
    type: Type


Columns = tuple[Column, ...]


class InvalidColumns(ValueError):
    """Columns that no table can have; the message says why."""


class IncompatibleType(ValueError):
    """A column whose type cannot be reconciled with the table's."""

    def __init__(self, there: Type, given: Type, path: str = "") -> None:
        super().__init__(f"{path} is {shown(given)}, and the table has {shown(there)}")
        self.there, self.given, self.path = there, given, path


def key(name: str) -> str:
    """The comparison key of a name; like SQL, it ignores case."""
    return name.lower()


def find(columns: Iterable[Column], name: str) -> Column | None:
    """The column with this name."""
    return next((column for column in columns if key(column.name) == key(name)), None)


def of_arrow(schema: Any) -> Columns:
    """The columns of an Arrow schema; InvalidColumns names an unsupported one."""
    columns = tuple(Column(value.name, _of_arrow(value)) for value in schema)
    names = [key(column.name) for column in columns]
    twice = next((column.name for column in columns if names.count(key(column.name)) > 1), None)
    if twice is not None:
        raise InvalidColumns(f"Two columns have the name {twice}; make the names unique, ignoring case")
    return columns


def _of_arrow(field: Any) -> Type:
    import pyarrow.types as kinds

    result, plain = field.type, _PLAIN.get(str(field.type))
    if plain is not None:
        return PrimitiveType(plain)
    if kinds.is_timestamp(result):
        return PrimitiveType(TIMESTAMP if result.tz else TIMESTAMP_NTZ)
    if kinds.is_decimal(result):
        return Decimal(result.precision, result.scale)
    if kinds.is_list(result):
        return Array(_of_arrow(result.value_field))
    if kinds.is_map(result):
        return Map(_of_arrow(result.key_field), _of_arrow(result.item_field))
    if kinds.is_struct(result) and not any(
        (result.field(n).metadata or {}).get(b"variant") for n in range(len(result))
    ):
        return Struct(of_arrow(result))
    if kinds.is_null(result):
        raise InvalidColumns(
            f"The column {field.name} is always NULL and has no type; write CAST(NULL AS STRING), or another type"
        )
    raise InvalidColumns(
        f"The column {field.name} has a type that tables do not support; CAST it to another type, such as STRING"
    )


_PLAIN = {
    "bool": BOOLEAN,
    "int8": INT,
    "int16": INT,
    "int32": INT,
    "int64": BIGINT,
    "float": FLOAT,
    "double": DOUBLE,
    "string": STRING,
    "large_string": STRING,
    "binary": BINARY,
    "large_binary": BINARY,
    "date32[day]": DATE,
}
"""Tables store small integers as INT."""


def sql(entry: Type) -> str:
    """The type in SQL."""
    match entry:
        case PrimitiveType(name):
            return name
        case Decimal(precision, scale):
            return f"DECIMAL({precision}, {scale})"
        case Struct(fields):
            return f"STRUCT<{', '.join(f'{quoted(each.name)}: {sql(each.type)}' for each in fields)}>"
        case Array(element):
            return f"ARRAY<{sql(element)}>"
        case Map(of, value):
            return f"MAP<{sql(of)}, {sql(value)}>"


def shown(entry: Type) -> str:
    """The type for display."""
    return re.sub(r"`([A-Za-z_][A-Za-z0-9_]*)`", r"\1", sql(entry))


def holds(wide: Type, narrow: Type) -> bool:
    """Whether every value of the narrow type can be stored as the wide type without loss."""
    match wide, narrow:
        case PrimitiveType(large), PrimitiveType(small):
            return large == small or (small, large) in _EXACT_IN
        case Decimal(), Decimal():
            digits, needed = wide.precision - wide.scale, narrow.precision - narrow.scale
            return wide.scale >= narrow.scale and digits >= needed
        case Decimal(), PrimitiveType(name):
            return wide.precision - wide.scale >= _DIGITS.get(name, 99)
        case Array(), Array():
            return holds(wide.element, narrow.element)
        case Map(), Map():
            return wide.key == narrow.key and holds(wide.value, narrow.value)
        case Struct(), Struct():
            there = {key(each.name): each.type for each in wide.fields}
            return all(
                key(field.name) in there and holds(there[key(field.name)], field.type) for field in narrow.fields
            )
    return False


def widened(there: Type, given: Type) -> Type:
    """The type that a column needs to store both: its own, or one it can be promoted to. Raises IncompatibleType."""
    match there, given:
        case Struct(), Struct():
            return Struct(merged(there.fields, given.fields))
        case Array(), Array():
            return Array(widened(there.element, given.element))
        case Map(), Map() if there.key == given.key:
            return Map(there.key, widened(there.value, given.value))
        case Decimal(), Decimal() if there.scale == given.scale:
            return Decimal(max(there.precision, given.precision), there.scale)
        case PrimitiveType(small), PrimitiveType(large) if (small, large) in _GROWS_TO:
            return given
    if holds(there, given):
        return there
    raise IncompatibleType(there, given)


def merged(there: Columns, given: Columns) -> Columns:
    """The columns of a table that also stores the given ones; IncompatibleType names a column that does not fit."""
    columns: list[Column] = []
    for entry in there:
        other = find(given, entry.name)
        try:
            columns.append(Column(entry.name, widened(entry.type, other.type)) if other else entry)
        except IncompatibleType as error:
            raise IncompatibleType(error.there, error.given, f"{entry.name}.{error.path}".rstrip(".")) from None
    return (*columns, *(column for column in given if find(there, column.name) is None))


def conformed(value: str, given: Type, wanted: Type) -> str:
    """SQL that converts a value to a wider type: struct fields by name, missing ones NULL."""
    if given == wanted:
        return value
    match given, wanted:
        case Struct(), Struct():
            fields = []
            for field in wanted.fields:
                source = find(given.fields, field.name)
                inside = f"{value}.{quoted(source.name)}" if source else ""
                fields.append(
                    f"{literal(field.name)}, "
                    + (conformed(inside, source.type, field.type) if source else f"CAST(NULL AS {sql(field.type)})")
                )
            return f"IF({value} IS NULL, NULL, named_struct({', '.join(fields)}))"
        case Array(), Array():
            name = _variable(value)
            return f"transform({value}, {name} -> {conformed(name, given.element, wanted.element)})"
        case Map(), Map():
            name = _variable(value)
            return f"transform_values({value}, ({name}_k, {name}) -> {conformed(name, given.value, wanted.value)})"
    return f"CAST({value} AS {sql(wanted)})"


def comparable(value: str, entry: Type) -> str:
    """SQL for a value that can be compared for equality; maps are compared regardless of order."""
    if not _has_map(entry):
        return value
    match entry:
        case Map(of, held):
            name = _variable(value)
            inside = f"named_struct('k', {comparable(f'{name}.key', of)}, 'v', {comparable(f'{name}.value', held)})"
            return f"array_sort(transform(map_entries({value}), {name} -> {inside}))"
        case Array(element):
            name = _variable(value)
            return f"transform({value}, {name} -> {comparable(name, element)})"
        case Struct(fields):
            parts = (
                f"{literal(f'f{n}')}, {comparable(f'{value}.{quoted(each.name)}', each.type)}"
                for n, each in enumerate(fields)
            )
            return f"IF({value} IS NULL, NULL, named_struct({', '.join(parts)}))"
    return value


def is_key(entry: Type) -> bool:
    """Whether values of this type can identify rows."""
    return not _has_map(entry)


def _has_map(entry: Type) -> bool:
    match entry:
        case Map():
            return True
        case Array(element):
            return _has_map(element)
        case Struct(fields):
            return any(_has_map(each.type) for each in fields)
    return False


def _variable(value: str) -> str:
    """A variable name that is unique within an expression; nested ones are longer."""
    used = re.findall(r"\bx_+", value)
    return "x_" + "_" * max((len(value) for value in used), default=0)
