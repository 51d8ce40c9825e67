"""Helpers shared by the commands for groups, contexts and members, which are looked up by name or id."""

from typing import Any

from headgate.cli.output import print_json
from headgate.kit.errors import NotFound
from headgate.kit.ids import kind_of
from headgate.kit.names import name_key


def id_of(client: Any, path: str, kind: str, text: str) -> str:
    """The id of an item in the list at this path, given its name or id."""
    if kind_of(text) == kind:
        return text
    # The list is in the order of names, so that the name itself comes before all that begin with it.
    for item in client.get(path, prefix=text, limit=1)["items"]:
        if name_key(item["name"]) == name_key(text):
            return str(item["id"])
    raise NotFound(f"There is no {kind} called {text!r}; `headgate {kind} list` shows them")


def create(path: str, kind: str, name: str, *, as_json: bool) -> None:
    """Create an item with a name, and print it."""
    from headgate.cli.client import connect

    with connect() as client:
        response = client.post(path, {"name": name})
    _say(response, f"Created the {kind} {response['name']} ({response['id']}).", as_json=as_json)


def rename(path: str, kind: str, text: str, name: str, *, as_json: bool) -> None:
    """Rename an item, and print the new name."""
    from headgate.cli.client import connect

    with connect() as client:
        result = client.request("PATCH", f"{path}/{id_of(client, path, kind, text)}", {"name": name})
    _say(result, f"The {kind} is now called {result['name']}.", as_json=as_json)


def delete(path: str, kind: str, text: str, *, as_json: bool) -> None:
    """Delete an item, and print what else ended."""
    from headgate.cli.client import connect

    with connect() as client:
        result = client.request("DELETE", f"{path}/{id_of(client, path, kind, text)}")
    ended = [f"{name.replace('_', ' ')}: {count}" for name, count in result.items() if isinstance(count, int)]
    more = f"; also ended: {', '.join(ended)}" if ended else ""
    _say(result, f"Deleted the {kind} {result['name']}{more}.", as_json=as_json)


def _say(result: Any, sentence: str, *, as_json: bool) -> None:
    if as_json:
        print_json(result)
    else:
        print(sentence)
