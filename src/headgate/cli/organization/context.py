"""`headgate context`: contexts, and how many resources they are attached to."""

from typing import Annotated

import typer

from headgate.cli.commands import Client, command
from headgate.cli.organization import shared as named
from headgate.cli.output import Json
from headgate.cli.paging import Cursor, Limit, Prefix, print_page

app = typer.Typer(
    help="Contexts, which limit the selected scope of members.", no_args_is_help=True, rich_markup_mode=None
)

PATH = "/api/contexts"
Context = Annotated[str, typer.Argument(help="The context, by name or id.")]


@command(app, "list")
def list_contexts(
    client: Client,
    prefix: Prefix = "",
    limit: Limit = 50,
    cursor: Cursor = None,
    as_json: Json = False,
) -> None:
    """List the contexts. Members who manage contexts also see how many resources each is attached to."""
    response = client.get(PATH, prefix=prefix, limit=limit, cursor=cursor)
    columns = ("name", "resources", "members", "invitations", "id")
    rows = ([item[column] for column in columns] for item in response["items"])
    print_page(response, columns, rows, "There is no such context.", as_json=as_json)


@command(app)
def create(name: Annotated[str, typer.Argument(help="The name.")], as_json: Json = False) -> None:
    """Create a context. `headgate access change attach_context` attaches it to a resource."""
    named.create(PATH, "context", name, as_json=as_json)


@command(app)
def rename(context: Context, name: Annotated[str, typer.Argument(help="The new name.")], as_json: Json = False) -> None:
    """Rename a context. It stays attached to its resources."""
    named.rename(PATH, "context", context, name, as_json=as_json)


@command(app)
def delete(context: Context, as_json: Json = False) -> None:
    """Delete a context that is not attached to any resource."""
    named.delete(PATH, "context", context, as_json=as_json)
