"""`headgate space`: data spaces."""

from typing import Annotated

import typer

from headgate.cli.commands import Client, command
from headgate.cli.output import Json
from headgate.cli.paging import Cursor, Limit, Prefix, print_page

app = typer.Typer(help="Data spaces, which contain connections.", no_args_is_help=True, rich_markup_mode=None)


@command(app, "list")
def list_spaces(
    client: Client, prefix: Prefix = "", limit: Limit = 50, cursor: Cursor = None, as_json: Json = False
) -> None:
    """List the spaces in which you have a role."""
    response = client.get("/api/spaces", prefix=prefix, limit=limit, cursor=cursor)
    rows = (
        (value["name"], (value["owner"] or {}).get("name"), value["allowed"], value["id"])
        for value in response["items"]
    )
    print_page(
        response, ("name", "owner", "you can", "id"), rows, "There is no space that you may see.", as_json=as_json
    )


@command(app)
def create(
    name: Annotated[str, typer.Argument(help="The name.")],
    as_json: Json = False,
) -> None:
    """Create a data space that you own. `headgate access change give_space_role` gives others access."""
    from headgate.cli.organization import shared as named_cli

    named_cli.create("/api/spaces", "space", name, as_json=as_json)


@command(app)
def show(
    client: Client,
    space: Annotated[str, typer.Argument(help="The space, by name or id.")],
    as_json: Json = False,
) -> None:
    """Show a space and your actions on it."""
    from headgate.cli.output import print_json, print_table
    from headgate.cli.platform.external_systems import path

    response = client.get(path(client, "space", space))
    if as_json:
        print_json(response)
        return
    rows = [
        (name.replace("_", " "), value["name"] if isinstance(value, dict) else value)
        for name, value in response.items()
    ]
    print_table(("field", "value"), rows)
