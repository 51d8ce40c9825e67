"""Columns as fields of an Iceberg schema, with ids."""

import re
from collections.abc import Iterator
from itertools import count
from typing import Any

from headgate.contracts.tables.types import Array, Column, Columns, Decimal, Map, PrimitiveType, Struct, Type

Field = dict[str, Any]

_WORDS = {
    "BOOLEAN": "boolean",
    "INT": "int",
    "BIGINT": "long",
    "FLOAT": "float",
    "DOUBLE": "double",
    "STRING": "string",
    "BINARY": "binary",
    "DATE": "date",
    "TIMESTAMP": "timestamptz",
    "TIMESTAMP_NTZ": "timestamp",
}
_NAMES = {word: name for name, word in _WORDS.items()}
_DECIMAL = re.compile(r"decimal\(\s*(\d+)\s*,\s*(\d+)\s*\)")


class Unknown(ValueError):
    """A type without a SQL name here."""


def fields(columns: Columns) -> list[Field]:
    """The schema fields of these columns, all nullable."""
    return _fields(columns, count(1))


def _fields(columns: Columns, ids: Iterator[int]) -> list[Field]:
    return [
        {"id": next(ids), "name": column.name, "required": False, "type": _type(column.type, ids)} for column in columns
    ]


def _type(entry: Type, ids: Iterator[int]) -> Any:
    match entry:
        case PrimitiveType(name):
            return _WORDS[name]
        case Decimal(precision, scale):
            return f"decimal({precision}, {scale})"
        case Struct(inner):
            return {"type": "struct", "fields": _fields(inner, ids)}
        case Array(element):
            return {
                "type": "list",
                "element-id": next(ids),
                "element-required": False,
                "element": _type(element, ids),
            }
        case Map(of, value):
            return {
                "type": "map",
                "key-id": next(ids),
                "value-id": next(ids),
                "value-required": False,
                "key": _type(of, ids),
                "value": _type(value, ids),
            }


def columns(result: list[Field]) -> Columns:
    """The columns of these schema fields; Unknown if a type cannot occur in query results."""
    return tuple(Column(value["name"], _named(value["type"])) for value in result)


def _named(kind: Any) -> Type:
    if isinstance(kind, str):
        return _plain(kind)
    match kind.get("type"):
        case "struct":
            return Struct(columns(kind["fields"]))
        case "list":
            return Array(_named(kind["element"]))
        case "map":
            return Map(_named(kind["key"]), _named(kind["value"]))
    raise Unknown(str(kind.get("type")))


def _plain(word: str) -> Type:
    if word in _NAMES:
        return PrimitiveType(_NAMES[word])
    decimal = _DECIMAL.fullmatch(word)
    if decimal is None:
        raise Unknown(word)
    return Decimal(int(decimal[1]), int(decimal[2]))
