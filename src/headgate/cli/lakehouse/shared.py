"""Helpers shared by the commands for layers, tables and volumes, which are looked up by name or id."""

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from headgate.cli.output import print_json, print_table
from headgate.cli.paging import print_page

Layer = Annotated[str | None, typer.Option(help="Only in this layer, by name or id.")]
Title = Annotated[str | None, typer.Option(help="The title. An empty text removes it.")]
Description = Annotated[str | None, typer.Option(help="The description. An empty text removes it.")]


def path(client: Any, kind: str, text: str) -> str:
    """The API path of a layer, table or volume given its name or id."""
    from headgate.cli.organization.shared import id_of
    from headgate.kit.errors import NotFound

    where = f"/api/{kind}s"
    try:
        return f"{where}/{id_of(client, where, kind, text)}"
    except NotFound:
        how = "" if kind == "layer" or "." in text else f"; write it with its layer, such as raw.{text}"
        detail = f"There is no {kind} called {text!r} that you may see{how or f'; `headgate {kind} list` shows them'}"
        raise NotFound(detail) from None


def listing(kind: str, *, as_json: bool, **query: Any) -> None:
    """Print the resources of a kind."""
    from headgate.cli.client import connect

    with connect() as client:
        response = client.get(f"/api/{kind}s", **query)
    rows = ((value["name"], value["title"], value["allowed"], value["id"]) for value in response["items"])
    columns = ("name", "title", "you can", "id")
    print_page(response, columns, rows, f"There is no {kind} that you may see.", as_json=as_json)


def listing_of(
    kind: str, text: str, rest: str, columns: Sequence[str], empty: str, *, as_json: bool, **query: Any
) -> None:
    """Print a list that belongs to a resource; columns are the fields of its items."""
    from headgate.cli.client import connect

    with connect() as client:
        response = client.get(f"{path(client, kind, text)}/{rest}", **query)
    rows = ([_short(value[column.replace(" ", "_")]) for column in columns] for value in response["items"])
    print_page(response, columns, rows, empty, as_json=as_json)


def _short(value: Any) -> Any:
    return value["name"] if isinstance(value, dict) else value


def show(kind: str, text: str, *, as_json: bool) -> Any:
    """Print a resource, and return it."""
    from headgate.cli.client import connect

    with connect() as client:
        response = client.get(path(client, kind, text))
    if as_json:
        print_json(response)
        return response
    hidden = ("columns", "partitions", "sort_order", "properties", "snapshot")
    rows = [(name.replace("_", " "), _short(value)) for name, value in response.items() if name not in hidden]
    print_table(("field", "value"), rows)
    return response


def change(kind: str, text: str, body: dict[str, Any], *, as_json: bool) -> None:
    """Rename or describe a resource, and print the result."""
    from headgate.cli.client import connect

    with connect() as client:
        result = client.request("PATCH", path(client, kind, text), body)
    if as_json:
        print_json(result)
    elif "name" in body or "layer" in body:
        print(f"The {kind} is now called {result['name']}; its grants are kept.")
    else:
        print(f"Updated the title or description of {result['name']}.")


def texts(title: str | None, description: str | None) -> dict[str, str | None]:
    """The texts that were given; an empty text clears the stored one."""
    from headgate.kit.errors import Invalid

    given = {"title": title, "description": description}
    values = {name: value.strip() or None for name, value in given.items() if value is not None}
    if not values:
        raise Invalid("give --title, --description, or both")
    return values


def delete(kind: str, text: str, *, as_json: bool) -> None:
    """Delete a resource, and print until when it can be restored."""
    from headgate.cli.client import connect

    with connect() as client:
        result = client.request("DELETE", path(client, kind, text))
    if as_json:
        print_json(result)
        return
    print(
        f"Deleted the {kind} {result['name']}. Until {result['restore_until']}: headgate deleted restore {result['id']}"
    )


def created(kind: str, body: dict[str, Any], *, as_json: bool) -> None:
    """Create a resource, and print its name and id."""
    from headgate.cli.client import connect

    with connect() as client:
        response = client.post(f"/api/{kind}s", body)
    if as_json:
        print_json(response)
    else:
        print(f"Created the {kind} {response['name']} ({response['id']}).")


def moved(kind: str, name: str) -> dict[str, str]:
    """The name and layer in a new name: `orders`, or `trusted.orders` to move it."""
    layer, dot, own = name.rpartition(".")
    return {"layer": layer, "name": own} if dot and kind != "layer" else {"name": name}


GRANTS = ("to", "to kind", "level", "expires at", "ended", "inherited", "created by")


def grants(kind: str, text: str, limit: int, cursor: str | None, *, as_json: bool) -> None:
    """List the grants on a resource."""
    listing_of(kind, text, "grants", GRANTS, "There are no grants.", as_json=as_json, limit=limit, cursor=cursor)
