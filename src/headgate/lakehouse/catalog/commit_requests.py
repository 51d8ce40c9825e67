"""Parsing and validation of commit requests."""

import json
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from headgate.lakehouse.catalog.errors import Malformed, NotValid
from headgate.lakehouse.catalog.names import Ident, from_json
from headgate.lakehouse.catalog.table_schemas import check_ids, check_raw_schema, short

if TYPE_CHECKING:
    from pydantic import TypeAdapter

MAX_UPDATES = 2_000
MAX_REQUIREMENTS = 500
MAX_SUMMARY = 2_000
_LONG = 2**63


@dataclass(frozen=True, slots=True)
class TableChange:
    """The updates that a client requests for one table, and its requirements."""

    ident: Ident
    requirements: tuple[Any, ...]
    updates: tuple[Any, ...]

    @property
    def is_create(self) -> bool:
        """Whether it creates a table that was staged."""
        return any(requirement.type == "assert-create" for requirement in self.requirements)


def document(content: bytes) -> dict[str, Any]:
    """Parse the JSON object in a body."""
    try:
        text = content.decode()
        document = json.loads(text or "null", parse_int=_number)
        if "\\u" in text:
            # A lone surrogate is valid JSON, but cannot be stored.
            json.dumps(document, ensure_ascii=False).encode()
    except UnicodeError:
        raise Malformed("The body is not UTF-8, or contains an unpaired surrogate (\\ud800 to \\udfff)") from None
    except (ValueError, RecursionError):
        raise Malformed("The body is not JSON") from None
    if not isinstance(document, dict):
        raise Malformed("The body is not a JSON object")
    return document


def _number(digits: str) -> int:
    """An integer in the range that engines can read."""
    result = int(digits)
    if not -_LONG <= result < _LONG:
        raise Malformed(f"The number {digits[:30]} in the body has more than 64 bits")
    return result


def change(body: Any, ident: Ident | None = None) -> TableChange:
    """Parse a change; the table comes from the path, or else from the body."""
    if not isinstance(body, dict):
        raise Malformed("A commit is a JSON object with requirements and updates")
    if body.get("identifier") is not None:
        named = from_json(body["identifier"])
        ident = ident or named
        if (named.layer_key, named.table_key) != (ident.layer_key, ident.table_key):
            raise Malformed(f"The body names the table {named}, but the path names {ident}")
    if ident is None:
        raise Malformed("Each change requires the identifier of its table")
    requirements = _list(body, "requirements", MAX_REQUIREMENTS)
    updates = _list(body, "updates", MAX_UPDATES)
    for update in updates:
        _check_raw(update)
    return TableChange(
        ident,
        tuple(_parsed(_requirement(), requirement, "requirement", "type") for requirement in requirements),
        tuple(_parsed(_update(), update, "update", "action") for update in updates),
    )


def _list(body: dict[str, Any], name: str, most: int) -> list[Any]:
    response = body.get(name, [])
    if not isinstance(response, list) or not all(isinstance(value, dict) for value in response):
        raise Malformed(f"{name} must be a list of objects")
    if len(response) > most:
        raise Malformed(f"A commit has at most {most} {name}; split it into several commits")
    return response


def _check_raw(update: dict[str, Any]) -> None:
    """Reject content that the models would drop or change silently."""
    if update.get("action") == "add-schema":
        check_raw_schema(update.get("schema"))
        check_ids(update["schema"])
    if update.get("action") == "set-properties" and not _is_texts(update.get("updates")):
        raise Malformed("set-properties: updates must be an object of strings")
    if update.get("action") == "add-snapshot":
        _check_raw_snapshot(update.get("snapshot"))


def _check_raw_snapshot(snapshot: Any) -> None:
    if not isinstance(snapshot, dict):
        raise Malformed("add-snapshot: snapshot is required")
    if snapshot.get("key-id") is not None:
        raise NotValid("Encrypted snapshots are not supported")
    if snapshot.get("manifests") is not None:
        raise NotValid("A snapshot must reference a manifest list")
    summary = snapshot.get("summary")
    if not isinstance(summary, dict) or "operation" not in summary or len(summary) > MAX_SUMMARY:
        raise Malformed(f"add-snapshot: the summary requires an operation, and has at most {MAX_SUMMARY} entries")
    if not _is_texts(summary):
        raise Malformed("add-snapshot: the values of the summary must be strings")
    for name in ("snapshot-id", "parent-snapshot-id", "sequence-number", "timestamp-ms"):
        value = snapshot.get(name)
        if value is not None and (not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < _LONG):
            raise Malformed(f"add-snapshot: {name} must be a number from 0 to {_LONG - 1}")


def _is_texts(result: Any) -> bool:
    """Whether this is a JSON object with string values."""
    return isinstance(result, dict) and all(isinstance(value, str) for value in result.values())


def _parsed(adapter: "TypeAdapter[Any]", value: dict[str, Any], what: str, tag: str) -> Any:
    from pyiceberg.exceptions import ValidationError

    try:
        return adapter.validate_python(value)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, ArithmeticError, ValidationError) as error:
        raise Malformed(f"Invalid {what} {str(value.get(tag))[:60]!r}: {short(error)}") from None


@cache
def _update() -> "TypeAdapter[Any]":
    from pydantic import TypeAdapter  # noqa: PLC0415 - with the rest
    from pyiceberg.table.update import TableUpdate

    return TypeAdapter(TableUpdate)


@cache
def _requirement() -> "TypeAdapter[Any]":
    from pydantic import TypeAdapter  # noqa: PLC0415 - with the rest
    from pyiceberg.table.update import TableRequirement

    return TypeAdapter(TableRequirement)
