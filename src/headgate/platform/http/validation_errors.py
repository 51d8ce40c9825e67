"""Validation errors of requests: the field and what it must be, in plain words."""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from headgate.kit.ids import PREFIXES

WHOLE = "body"
"""The location of an error in the body as a whole."""
_PARTS = frozenset({"body", "query", "path", "header", "cookie"})
_LACKING = frozenset({"missing", "unknown_field"})
"""Error types about a field that the body may lack."""
_TIME = "must be a time with a time zone, such as 2026-11-02T08:00:00Z"


def describe_errors(errors: Iterable[Any], body: Any = None) -> list[dict[str, str]]:
    """The invalid values: location and reason."""
    return [{"place": _place(error, body), "message": _message(error)} for error in errors]


def _place(error: Any, body: Any) -> str:
    """The field with its parents, as named in the request."""
    where, *rest = error["loc"] or (WHOLE,)
    if where not in _PARTS:
        where, rest = "", [where, *rest]
    fields = _fields(rest, body, may_lack=error["type"] in _LACKING) if where == WHOLE else rest
    if error["type"].startswith("union_tag"):
        fields = [*fields, str(error["ctx"]["discriminator"]).strip("'")]
    return ".".join(map(str, fields)) or WHOLE


def _fields(parts: Sequence[Any], body: Any, *, may_lack: bool) -> list[Any]:
    """The field names in a location; the library inserts the names of union members between them."""
    fields: list[Any] = []
    for number, part in enumerate(parts):
        is_item = isinstance(body, list) and isinstance(part, int) and part < len(body)
        if is_item or (isinstance(body, dict) and part in body):
            fields.append(part)
            body = body[part]
        elif may_lack and isinstance(body, dict) and number == len(parts) - 1:
            fields.append(part)
    return fields


def _prefix(context: dict[str, Any]) -> str:
    """The id prefix that a pattern requires; a data mart's if it accepts any kind."""
    match = re.match(r"\^\(?([a-z]{2,3})[_|]", str(context.get("pattern")))
    return match[1] if match else PREFIXES["data_mart"]


def _malformed(context: dict[str, Any]) -> str:
    """The message for a pattern mismatch: only ids have patterns; other formats are described in words."""
    return f"is not an id; one looks like {_prefix(context)}_01k6x3v9c2m4n8p0q7rs"


def _count(number: Any, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _short(least: int) -> str:
    return "is empty" if least == 1 else f"must have at least {least} characters"


_MESSAGES: dict[str, str | Callable[[dict[str, Any]], str]] = {
    "missing": "is required",
    "extra_forbidden": "is unknown",
    "json_invalid": "is not valid JSON",
    "union_tag_invalid": lambda c: (
        f"unknown kind {c['tag']!r}; the kinds are {c['expected_tags'].replace(chr(39), '')}"
    ),
    "union_tag_not_found": "is required",
    "string_pattern_mismatch": _malformed,
    "string_too_short": lambda c: _short(c["min_length"]),
    "string_too_long": lambda c: f"is too long; the maximum is {_count(c['max_length'], 'character')}",
    "string_type": "must be a string",
    "int_type": "must be an integer",
    "int_parsing": "must be an integer",
    "int_from_float": "must be an integer",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "list_type": "must be a list",
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "model_attributes_type": "must be an object",
    "too_long": lambda c: f"is too long; the maximum is {_count(c['max_length'], 'item')}",
    "too_short": lambda c: f"must have at least {_count(c['min_length'], 'item')}",
    "greater_than": lambda c: f"must be more than {c['gt']}",
    "greater_than_equal": lambda c: f"must be at least {c['ge']}",
    "less_than": lambda c: f"must be less than {c['lt']}",
    "less_than_equal": lambda c: f"must be at most {c['le']}",
    "literal_error": lambda c: f"must be {c['expected'].replace(chr(39), '')}",
    "enum": lambda c: f"must be {c['expected'].replace(chr(39), '')}",
    "datetime_type": _TIME,
    "datetime_parsing": _TIME,
    "datetime_from_date_parsing": _TIME,
    "datetime_object_invalid": _TIME,
    "timezone_aware": _TIME,
}
"""Messages by the library's error type. They continue after the field name."""


def _message(error: Any) -> str:
    template = _MESSAGES.get(error["type"])
    if callable(template):
        return template(error["ctx"])
    return template or str(error["msg"]).removeprefix("Value error, ")
