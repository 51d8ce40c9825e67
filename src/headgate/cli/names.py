"""Resolve a name or id with a list of the API, in which several resources may have the same name."""

from collections.abc import Iterable
from typing import Any

from headgate.kit.errors import Conflict, NotFound
from headgate.kit.names import name_key, several


def only(items: Iterable[dict[str, Any]], kind: str, name: str, see: str | None = None) -> str:
    """The id of the item with this name. `see` is the command that lists the items, if not `headgate KIND list`."""
    same = [str(item["id"]) for item in items if name_key(item["name"]) == name_key(name)]
    if not same:
        noun, command = kind.replace("_", " "), see or f"headgate {kind} list"
        raise NotFound(f"There is no {noun} called {name!r} that you may see; `{command}` shows them")
    if len(same) > 1:
        raise Conflict(several(kind, name, same))
    return same[0]
