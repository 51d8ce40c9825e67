"""How commands find a group or context by its name or id."""

from typing import Any

from headgate.errors import NotFound
from headgate.kit.ids import kind_of
from headgate.kit.names import name_key


def id_of(client: Any, path: str, kind: str, text: str) -> str:
    """The id of what a person calls by its name or id, in the list at this path."""
    if kind_of(text) == kind:
        return text
    # The list is in the order of names, so that the name itself comes before all that begin with it.
    for item in client.get(path, prefix=text, limit=1)["items"]:
        if name_key(item["name"]) == name_key(text):
            return str(item["id"])
    raise NotFound(f"There is no {kind} called {text!r}; `headgate {kind} list` shows them")
