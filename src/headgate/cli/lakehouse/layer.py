"""`headgate layer`: the layers of the lakehouse."""

from typing import Annotated

import typer

from headgate.cli.commands import command
from headgate.cli.lakehouse import shared as commands
from headgate.cli.lakehouse.shared import Description, Title
from headgate.cli.output import Json
from headgate.cli.paging import Cursor, Limit, Prefix

app = typer.Typer(help="Layers of the lakehouse.", no_args_is_help=True, rich_markup_mode=None)

Named = Annotated[str, typer.Argument(metavar="LAYER", help="The layer, by name or id.")]


@command(app, "list")
def list_layers(prefix: Prefix = "", limit: Limit = 50, cursor: Cursor = None, as_json: Json = False) -> None:
    """List the layers that you may see."""
    commands.listing("layer", prefix=prefix, limit=limit, cursor=cursor, as_json=as_json)


@command(app)
def create(
    name: Annotated[str, typer.Argument(help="The SQL name: letters from a to z, digits and underscores.")],
    title: Title = None,
    description: Description = None,
    as_json: Json = False,
) -> None:
    """Create a layer. For admins."""
    commands.created("layer", {"name": name, "title": title, "description": description}, as_json=as_json)


@command(app)
def show(layer: Named, as_json: Json = False) -> None:
    """Show a layer and the actions that you have on it."""
    commands.show("layer", layer, as_json=as_json)


@command(app)
def describe(layer: Named, title: Title = None, description: Description = None, as_json: Json = False) -> None:
    """Set the title or description of a layer."""
    commands.change("layer", layer, commands.texts(title, description), as_json=as_json)


@command(app)
def rename(layer: Named, name: Annotated[str, typer.Argument(help="The new name.")], as_json: Json = False) -> None:
    """Rename a layer. For admins. Its grants and tables are kept."""
    commands.change("layer", layer, {"name": name}, as_json=as_json)


@command(app)
def delete(layer: Named, as_json: Json = False) -> None:
    """Delete an empty layer. `headgate deleted restore` restores it."""
    commands.delete("layer", layer, as_json=as_json)


@command(app)
def grants(layer: Named, limit: Limit = 50, cursor: Cursor = None, as_json: Json = False) -> None:
    """List the grants on a layer."""
    commands.grants("layer", layer, limit, cursor, as_json=as_json)
