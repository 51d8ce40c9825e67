"""`headgate volume`: volumes of the lakehouse, and the files in them."""

from typing import Annotated

import typer

from headgate.cli.commands import command
from headgate.cli.lakehouse import files as files_cli
from headgate.cli.lakehouse import shared as commands
from headgate.cli.lakehouse.shared import Description, Layer, Title
from headgate.cli.output import Json
from headgate.cli.paging import Cursor, Limit, Prefix

app = typer.Typer(help="Volumes and their files.", no_args_is_help=True, rich_markup_mode=None)

Named = Annotated[str, typer.Argument(metavar="VOLUME", help="The volume as LAYER.NAME, or its id.")]


@command(app, "list")
def list_volumes(
    layer: Layer = None, prefix: Prefix = "", limit: Limit = 50, cursor: Cursor = None, as_json: Json = False
) -> None:
    """List the volumes that you may see."""
    commands.listing("volume", layer=layer, prefix=prefix, limit=limit, cursor=cursor, as_json=as_json)


@command(app)
def create(
    name: Annotated[str, typer.Argument(metavar="LAYER.NAME", help="The layer and the name, as LAYER.NAME.")],
    title: Title = None,
    description: Description = None,
    as_json: Json = False,
) -> None:
    """Create a volume in a layer. Requires Editor on the layer."""
    from headgate.kit.errors import Invalid

    layer, dot, own = name.partition(".")
    if not dot:
        raise Invalid(f"{name!r} has no layer; write it as LAYER.NAME, such as raw.{name}")
    body = {"layer": layer, "name": own, "title": title, "description": description}
    commands.created("volume", body, as_json=as_json)


@command(app)
def show(volume: Named, as_json: Json = False) -> None:
    """Show a volume and your actions on it."""
    commands.show("volume", volume, as_json=as_json)


@command(app)
def describe(volume: Named, title: Title = None, description: Description = None, as_json: Json = False) -> None:
    """Set the title or description of a volume."""
    commands.change("volume", volume, commands.texts(title, description), as_json=as_json)


@command(app)
def rename(
    volume: Named,
    name: Annotated[
        str, typer.Argument(help="The new name. With another layer, as LAYER.NAME, the volume moves there.")
    ],
    as_json: Json = False,
) -> None:
    """Rename a volume, or move it to another layer. Its grants are kept."""
    commands.change("volume", volume, commands.moved("volume", name), as_json=as_json)


@command(app)
def delete(volume: Named, as_json: Json = False) -> None:
    """Delete a volume with its files. `headgate deleted restore` restores it."""
    commands.delete("volume", volume, as_json=as_json)


@command(app)
def grants(volume: Named, limit: Limit = 50, cursor: Cursor = None, as_json: Json = False) -> None:
    """List the grants on a volume and on its layer."""
    commands.grants("volume", volume, limit, cursor, as_json=as_json)


files_cli.add_to(app)
