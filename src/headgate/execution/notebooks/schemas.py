"""Validate the schema that a notebook reports for an output table. Spark instantiates classes named in a schema, so the
schema is rebuilt from known types only.
"""

import re
from typing import Any

MAX_COLUMNS = 2000
MAX_LEVELS = 20
_PLAIN = frozenset(
    {
        *("boolean", "byte", "short", "integer", "long", "float", "double", "string", "binary", "date", "timestamp"),
        "timestamp_ntz",
    }
)
_DECIMAL = re.compile(r"decimal\((\d{1,2}),(\d{1,2})\)")


class BadSchema(ValueError):
    """An invalid schema; the message names the column and what to do."""


def checked(schema: Any) -> dict[str, Any]:
    """The schema rebuilt from known types; BadSchema for anything else."""
    values = _struct(schema, "", [0], 1)
    if not values["fields"]:
        raise BadSchema("the data frame has no columns; save one that has columns")
    return values


def _struct(value: Any, place: str, count: list[int], level: int) -> dict[str, Any]:
    fields = value.get("fields") if isinstance(value, dict) and value.get("type") == "struct" else None
    if not isinstance(fields, list):
        raise BadSchema("its schema cannot be read; save a Spark or pandas data frame")
    kept: list[dict[str, Any]] = []
    seen: set[str] = set()
    for field in fields:
        count[0] += 1
        if count[0] > MAX_COLUMNS:
            raise BadSchema(f"it has more than {MAX_COLUMNS} columns and fields")
        name = field.get("name") if isinstance(field, dict) else None
        if not isinstance(name, str) or not 0 < len(name) <= 255 or not name.isprintable() or name.strip() != name:
            raise BadSchema(f"a column has the invalid name {str(name)[:100]!r}; rename it")
        if name.lower() in seen:
            raise BadSchema(f"two columns have the name {place}{name}; rename one of them")
        seen.add(name.lower())
        kept.append(
            {
                "name": name,
                "type": _type(field.get("type"), f"{place}{name}", count, level),
                "nullable": True,
                "metadata": {},
            }
        )
    return {"type": "struct", "fields": kept}


def _type(value: Any, place: str, count: list[int], level: int) -> Any:
    if level > MAX_LEVELS:
        raise BadSchema(f"the column {place} is nested too deeply; flatten it")
    if isinstance(value, str):
        decimal = _DECIMAL.fullmatch(value)
        if value in _PLAIN or (decimal and 0 < int(decimal[1]) <= 38 and int(decimal[2]) <= int(decimal[1])):
            return value
    kind = value.get("type") if isinstance(value, dict) else None
    if kind == "struct":
        return _struct(value, f"{place}.", count, level + 1)
    if kind == "array":
        element = _type(value.get("elementType"), place, count, level + 1)
        return {"type": "array", "elementType": element, "containsNull": True}
    if kind == "map":
        key, held = (_type(value.get(entry), place, count, level + 1) for entry in ("keyType", "valueType"))
        return {"type": "map", "keyType": key, "valueType": held, "valueContainsNull": True}
    told = value if isinstance(value, str) else kind
    raise BadSchema(
        f"the column {place} has the type {str(told)[:60]!r}, which tables do not support; cast it to another type"
    )
