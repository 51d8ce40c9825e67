"""Translate the field names in a server's error messages to the options and arguments of the command."""

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class SentAs:
    """Annotation of an option or argument: the request field that it sets, if its name differs."""

    field: str


def own_words(command: Callable[..., Any]) -> dict[str, str]:
    """The request fields of a command, mapped to its options and arguments: `--limit`, `NAME`."""
    values: dict[str, str] = {}
    for name, parameter in inspect.signature(command).parameters.items():
        marks = getattr(parameter.annotation, "__metadata__", ())
        info = next((mark for mark in marks if hasattr(mark, "param_decls")), None)
        if info is None:
            continue
        flags = [value for value in info.param_decls or () if value.startswith("--")]
        is_option = type(info).__name__ == "OptionInfo"
        shown = (flags or [f"--{name.replace('_', '-')}"])[0] if is_option else info.metavar or name.upper()
        for field in (name.rstrip("_"), *(mark.field for mark in marks if isinstance(mark, SentAs))):
            values[field] = shown
    return values


def translated(problem: Mapping[str, Any], detail: str, words: Mapping[str, str]) -> str:
    """A server's error message with the command's own option names."""
    if problem.get("errors"):
        told = [f"{_spoken(str(value['place']), words)}: {value['message']}" for value in problem["errors"]]
        return "; ".join(told)
    field = re.match(r"([a-z_]+(?:\.\w+)*): ", detail)
    if field is not None:
        detail = f"{_spoken(field[1], words)}: {detail[field.end() :]}"
    return re.sub(r"`([a-z_]+)`", lambda match: words.get(match[1], match[0]), detail)


def _spoken(place: str, words: Mapping[str, str]) -> str:
    """The option name of a field: its own, else that of the field that contains it."""
    outer, *inner = (part for part in place.split(".") if not part.isdigit())
    if inner and (own := _known(inner[-1], words)):
        return own
    known = _known(outer, words)
    return " ".join([known, *inner]) if known else place


def _known(field: str, words: Mapping[str, str]) -> str | None:
    names = (field, field.removesuffix("_id"), field.removesuffix("s"))
    return next((words[name] for name in names if name in words), None)
