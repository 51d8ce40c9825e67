"""Validation of schemas and partition specs from clients; errors name the column."""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from headgate.lakehouse.catalog.errors import NotValid

FORMAT = 2
MAX_FIELDS = 10_000
MAX_ID = 2**31 - 1
FIRST_PARTITION_FIELD = 1000
TYPES = (
    "boolean, int, long, float, double, decimal(P,S), date, time, timestamp, timestamptz, string, uuid, fixed[N], "
    "binary, struct, list and map"
)
_PRIMITIVE = re.compile(
    r"boolean|int|long|float|double|date|time|timestamp|timestamptz|string|uuid|binary"
    r"|decimal\(\s*\d{1,3}\s*,\s*\d{1,3}\s*\)|fixed\[\s*\d{1,9}\s*\]"
)
_TRANSFORM = re.compile(r"identity|year|month|day|hour|void|(?:bucket|truncate)\[(\d{1,10})\]")
_LATER = frozenset({"unknown", "variant", "timestamp_ns", "timestamptz_ns", "geometry", "geography"})
_PARTS = {"list": ("element",), "map": ("key", "value")}
_DEFAULTS = ("initial-default", "write-default")


def check_raw_schema(schema: Any) -> None:
    """Reject unknown types and default values, which this table format lacks, before parsing."""
    if not isinstance(schema, dict) or schema.get("type", "struct") != "struct":
        raise NotValid('Invalid schema: write it as {"type": "struct", "fields": [...]}')
    try:
        _check_fields(schema, "")
    except RecursionError:
        raise NotValid("Invalid schema: its types are nested too deeply; use fewer levels") from None


def _check_fields(struct: dict[str, Any], path: str) -> None:
    fields = struct.get("fields")
    if not isinstance(fields, list) or not all(isinstance(field, dict) for field in fields):
        raise NotValid(f"Invalid schema: {path or 'it'} requires a list of fields")
    for field in fields:
        name = field.get("name")
        if not isinstance(name, str) or not name:
            raise NotValid(f"Invalid schema: a field{f' of {path}' if path else ''} has no name")
        column = f"{path}.{name}" if path else name
        for default in _DEFAULTS:
            if field.get(default) is not None:
                raise NotValid(
                    f"Column {column[:200]} has the {default} {str(field[default])[:60]!r}, but format version "
                    f"{FORMAT} has no column defaults; remove it, and write the value with each row"
                )
        _check_type(field.get("type"), column)


def _check_type(result: Any, column: str) -> None:
    kind = str(result.get("type")) if isinstance(result, dict) else None
    if kind == "struct":
        _check_fields(result, column)
    elif kind in _PARTS:
        for part in _PARTS[kind]:
            _check_type(result.get(part), f"{column}.{part}")
    elif isinstance(result, str) and result.partition("(")[0].strip() in _LATER:
        raise NotValid(
            f"Column {column[:200]} has the type {result[:60]}, which requires format version 3; tables have "
            f"format version {FORMAT} with the types {TYPES}"
        )
    elif not isinstance(result, str) or not _PRIMITIVE.fullmatch(result):
        raise NotValid(f"Column {column[:200]} has the unknown type {str(result)[:60]!r}; the types are {TYPES}")


def check_ids(schema: dict[str, Any]) -> None:
    """Reject a raw schema in which two fields share an id, because readers find columns by id."""
    taken: set[int] = set()
    for id_ in _ids(schema):
        if id_ in taken:
            raise NotValid(f"Invalid schema: several fields have the id {id_}; make the ids unique")
        taken.add(id_)


def _ids(kind: Any) -> Iterator[int]:
    if not isinstance(kind, dict):
        return
    parts = [(value.get("id"), value.get("type")) for value in kind.get("fields", ())]
    parts += [(kind.get(f"{value}-id"), kind.get(value)) for value in _PARTS.get(kind.get("type", ""), ())]
    for number, part in parts:
        if isinstance(number, int):
            yield number
        yield from _ids(part)


def check_schema(schema: Any) -> None:
    """Reject an invalid schema."""
    from pyiceberg.exceptions import ValidationError
    from pyiceberg.schema import index_by_id, index_by_name

    try:
        fields = index_by_id(schema)
        index_by_name(schema)
        schema.check_format_version_compatibility(FORMAT)
    except (ValueError, TypeError, RecursionError, ValidationError) as error:
        raise NotValid(f"Invalid schema: {short(error)}") from None
    if (
        not 0 <= schema.schema_id <= MAX_ID
        or len(fields) > MAX_FIELDS
        or not all(0 <= field <= MAX_ID for field in fields)
    ):
        raise NotValid(f"Invalid schema: at most {MAX_FIELDS} fields, with ids from 0")


def with_field_ids(spec: Any) -> Any:
    """A raw partition spec of a new table with an id for each field; clients may omit them."""
    fields = spec.get("fields") if isinstance(spec, dict) else None
    if not isinstance(fields, list):
        return spec
    numbered = [
        {"field-id": FIRST_PARTITION_FIELD + position, **field} if isinstance(field, dict) else field
        for position, field in enumerate(fields)
    ]
    return {**spec, "fields": numbered}


def check_spec(spec: Any) -> None:
    """Reject an invalid partition spec."""
    ids = [field.field_id for field in spec.fields]
    if not 0 <= spec.spec_id <= MAX_ID or len(ids) != len(set(ids)) or len(ids) > MAX_FIELDS:
        raise NotValid("Invalid partition spec: its field ids are not unique")
    if not all(FIRST_PARTITION_FIELD <= id_ <= MAX_ID for id_ in ids):
        raise NotValid(f"Invalid partition spec: field ids must be {FIRST_PARTITION_FIELD} or higher")
    check_transforms("partition", spec.fields)


def check_transforms(what: str, fields: Iterable[Any]) -> None:
    """Reject partition or sort fields with a transform that no engine can write."""
    for field in fields:
        # PyIceberg serializes an unknown transform as "unknown"; the original text is stored separately.
        result = str(getattr(field.transform, "_transform", field.transform))
        number = _TRANSFORM.fullmatch(result)
        if number is None or not 0 < int(number[1] or 1) <= MAX_ID:
            raise NotValid(
                f"A {what} field of column {field.source_id} has the unknown transform {result[:60]!r}; the transforms "
                "are identity, year, month, day, hour, bucket[N], truncate[W] and void"
            )


def short(error: Exception) -> str:
    """The error in one line, without library-specific wording."""
    errors = getattr(error, "errors", None)
    if callable(errors):
        return _in_words(errors(include_url=False, include_input=False)[0])[:300]
    if isinstance(error, TypeError | KeyError | AttributeError):
        # Python's own message for these errors refers to our code, not to the request.
        return "a part of it is missing or has the wrong type"
    return (str(error).partition("\n")[0] or type(error).__name__)[:300]


_KINDS = {
    "int": "an integer",
    "bool": "true or false",
    "string": "a text",
    "uuid": "a UUID",
    "list": "a list",
    "dict": "an object",
    "model": "an object",
    "dataclass": "an object",
    "set": "a list",
    "frozen": "a list",
    "tuple": "a list",
}
"""The expected kind of value, by the prefix of a validation error code."""


def _in_words(result: dict[str, Any]) -> str:
    """A validation error in Headgate's words. Errors of value checks come from the Iceberg library."""
    code, place = result["type"], ".".join(str(part) for part in result["loc"])
    context = result.get("ctx", {})
    reason, expected = context.get("error"), str(context.get("expected"))
    if code.startswith("union_tag"):
        return "it does not exist in the Iceberg REST specification, or is not supported"
    if reason is not None and code in {"value_error", "assertion_error"}:
        text = str(reason)
    elif code == "missing":
        text = "is missing"
    elif code in {"literal_error", "enum"}:
        is_listed = expected.startswith("'")
        text = f"must be {expected}" if is_listed else "is not a value of the Iceberg REST specification"
    elif (kind := _KINDS.get(code.partition("_")[0])) is not None:
        text = f"must be {kind}"
    else:
        text = "does not have the format of the Iceberg REST specification"
    return f"{place}: {text}" if place else text
