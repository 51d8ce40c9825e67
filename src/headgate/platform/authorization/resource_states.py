"""Validation of the `with` fields from programs."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from headgate.access.actions import SPACE_ROLES
from headgate.access.world_fields import GRANT_STATE, STATE, Field
from headgate.kit.clock import in_utc
from headgate.kit.errors import Invalid

LONGEST = 350
MOST = 2000


def parse_state(kind: str, action: str, state: dict[str, Any] | None) -> dict[str, Any] | None:
    """The fields with validated types; Invalid names the first invalid one."""
    if state is None:
        return None
    fields = GRANT_STATE if action in {"grant", "grant_manager"} else STATE.get(kind, {})
    unknown = sorted(set(state) - set(fields))
    if unknown:
        known = ", ".join(sorted(fields)) or "nothing"
        raise Invalid(f"with: a {kind} has no {', '.join(unknown)}; it has {known}")
    return {name: _parse(f"with.{name}", value, fields[name]) for name, value in state.items()}


def _parse(place: str, value: Any, spec: Field) -> Any:
    if value is None:
        return None
    parsers: dict[str, Callable[[], Any]] = {
        "flag": lambda: _flag(place, value),
        "word": lambda: _word(place, value, spec.words),
        "instant": lambda: _instant(place, value),
        "roles": lambda: {_text(place, who): _words(f"{place}.{who}", roles) for who, roles in _mapping(place, value)},
        **dict.fromkeys(("refs", "tables", "members", "contexts"), lambda: _texts(place, value)),
    }
    return parsers.get(spec.holds, lambda: _text(place, value))()


def _text(place: str, value: Any) -> str:
    if not isinstance(value, str) or not value or len(value) > LONGEST or not value.isprintable():
        raise Invalid(f"{place}: expected a name or id")
    return value


def _flag(place: str, value: Any) -> bool:
    if isinstance(value, str) and value.lower() in {"true", "false"}:
        return value.lower() == "true"
    if not isinstance(value, bool):
        raise Invalid(f"{place}: expected true or false")
    return value


def _word(place: str, value: Any, words: tuple[str, ...]) -> str:
    if value not in words or not isinstance(value, str):
        raise Invalid(f"{place}: expected one of {', '.join(words)}")
    return value


def _instant(place: str, value: Any) -> datetime:
    try:
        moment = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        raise Invalid(f"{place}: expected a time such as 2026-06-01T00:00:00Z") from None
    try:
        return in_utc(moment if moment.tzinfo else moment.replace(tzinfo=UTC))
    except ValueError as error:
        raise Invalid(f"{place}: {error}") from None


def _texts(place: str, value: Any) -> list[str]:
    if not isinstance(value, list) or len(value) > MOST:
        raise Invalid(f"{place}: expected a list of at most {MOST} names")
    return [_text(f"{place}.{number}", value) for number, value in enumerate(value)]


def _words(place: str, value: Any) -> list[str]:
    if not isinstance(value, list):
        raise Invalid(f"{place}: expected a list of roles")
    return [_word(f"{place}.{number}", value, SPACE_ROLES) for number, value in enumerate(value)]


def _mapping(place: str, value: Any) -> list[tuple[Any, Any]]:
    if not isinstance(value, dict) or len(value) > MOST:
        raise Invalid(f"{place}: expected members with their roles")
    return list(value.items())
