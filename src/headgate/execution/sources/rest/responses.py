"""Parsing of responses: the rows, and references to the next page."""

import json
import re
from typing import Any

from headgate.execution.sources.rest.failures import ApiFailed

_SHOWN = 12
_JSON = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_NAME, _QUOTED = r"[\w*!#$&+.^`|~-]+", r'"((?:[^"\\]|\\.)*)"'
_PARAMETER = re.compile(rf'\s*;\s*({_NAME})(?:\s*=\s*(?:{_QUOTED}|([^\s",;]*)))?')
_TARGET = re.compile(r"<([^<>]*)>")


def parsed(body: bytes, content_type: str) -> Any:
    """A response as JSON; JSON lines become a list."""
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ApiFailed("API_NOT_JSON", f"The response is not UTF-8{_typed(content_type)}; {_INSTEAD}") from None
    if not text.strip():
        return None
    try:
        if "ndjson" in content_type or "jsonl" in content_type or "json-lines" in content_type:
            return [_loads(line) for line in text.splitlines() if line.strip()]
        return _loads(text)
    except RecursionError:
        raise ApiFailed("API_NOT_JSON", "The response is nested too deeply") from None
    except ValueError:
        raise ApiFailed("API_NOT_JSON", f"The response is not JSON{_typed(content_type)}; {_INSTEAD}") from None


_INSTEAD = "check the path, and whether the API requires a parameter or a header for JSON responses"


def _typed(content_type: str) -> str:
    shown = "".join(c for c in content_type.partition(";")[0].strip()[:60] if c.isprintable())
    return f" but {shown}" if shown and "json" not in shown else ""


def _loads(text: str) -> Any:
    return json.loads(text, parse_constant=_no_number)


def _no_number(text: str) -> Any:
    raise ValueError(text)


def rows(answer: Any, path: str) -> list[Any]:
    """The rows of a response: the list at a path. With the path `.`, the response itself is one row."""
    if answer is None:
        return []
    if path == ".":
        return [answer]
    try:
        result = at(answer, path)
    except LookupError:
        told = f"The response has no value at {path!r}{_keys(answer)}; set `rows` to the path of the rows"
        raise ApiFailed("API_SHAPE", told) from None
    if result is None or isinstance(result, list):
        return result or []
    where = f"At {path!r} the response has" if path else "The response is"
    raise ApiFailed("API_SHAPE", f"{where} {_kind(result)}, not a list of rows{_lists(result, path)}")


def at(value: Any, path: str) -> Any:
    """The value at a path such as `data.items`; a number is a list index, -1 the last. LookupError if there is none."""
    for step in path.split(".") if path else ():
        if isinstance(value, dict):
            value = value[step]
        elif isinstance(value, list) and re.fullmatch(r"-?\d{1,6}", step):
            value = value[int(step)]
        else:
            raise LookupError(step)
    return value


def linked(headers: str) -> str | None:
    """The target of the link `next` in headers named Link (RFC 8288)."""
    place = 0
    while target := _TARGET.search(headers, place):
        place, relation = target.end(), ""
        while parameter := _PARAMETER.match(headers, place):
            place = parameter.end()
            if parameter[1].lower() == "rel":
                relation = relation or parameter[2] or parameter[3] or ""
        if "next" in relation.lower().split():
            return target[1]
    return None


def as_text(row: Any) -> str:
    """A row as JSON; a value that is not an object becomes one with the field `value`."""
    value = row if isinstance(row, dict) else {"value": row}
    text = _JSON.encode(value)
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        # A lone surrogate is not valid text, but can be escaped in ASCII.
        return json.dumps(value, separators=(",", ":"))
    return text


def _kind(value: Any) -> str:
    if isinstance(value, dict):
        return "an object"
    return "a text" if isinstance(value, str) else f"{json.dumps(value)[:40]}"


def _keys(answer: Any) -> str:
    if not isinstance(answer, dict):
        return f": it is {_kind(answer)}" if not isinstance(answer, list) else ": it is a list"
    return f"; it has {', '.join(_names(answer))}" if answer else "; it is empty"


def _lists(result: Any, path: str) -> str:
    """The fields that could be meant."""
    if not isinstance(result, dict):
        return "; set `rows` to the path of the rows, such as data.items"
    lists = [name for name in _names(result) if isinstance(result.get(name), list)]
    before = f"{path}." if path else ""
    if lists:
        return f"; set `rows` to the path of the rows: {' or '.join(before + name for name in lists)}"
    value = "" if path else ", or to a dot if the whole response is one row"
    return f"; it has {', '.join(_names(result)) or 'no fields'}. Set `rows` to the path of the rows{value}"


def _names(result: dict[str, Any]) -> list[str]:
    return [name[:60] for name in result if name.isprintable()][:_SHOWN]
