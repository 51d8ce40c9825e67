"""`headgate context`: contexts, and to how much they are attached."""

from typing import Annotated

import typer

from headgate.cli.organization import shared as named
from headgate.cli.output import Json, told
from headgate.cli.paging import Cursor, Limit, Prefix, print_page

app = typer.Typer(
    help="Contexts, which narrow what a selected scope reaches.", no_args_is_help=True, rich_markup_mode=None
)

PATH = "/api/contexts"
Context = Annotated[str, typer.Argument(help="The context, by name or id.")]


@app.command("list")
@told
def list_contexts(
    prefix: Prefix = "",
    limit: Limit = 50,
    cursor: Cursor = None,
    as_json: Json = False,
) -> None:
    """List the contexts; who manages contexts also sees to how much each is attached."""
    from headgate.cli.client import connect

    with connect() as client:
        response = client.get(PATH, prefix=prefix, limit=limit, cursor=cursor)
    columns = ("name", "resources", "members", "invitations", "id")
    rows = ([item[column] for column in columns] for item in response["items"])
    print_page(response, columns, rows, "There is no such context.", as_json=as_json)


@app.command()
@told
def create(name: Annotated[str, typer.Argument(help="What to call it.")], as_json: Json = False) -> None:
    """Create a context; `headgate access change attach_context` attaches it."""
    named.create(PATH, "context", name, as_json=as_json)


@app.command()
@told
def rename(context: Context, name: Annotated[str, typer.Argument(help="The new name.")], as_json: Json = False) -> None:
    """Rename a context; it stays attached to what it is attached to."""
    named.rename(PATH, "context", context, name, as_json=as_json)


@app.command()
@told
def delete(context: Context, as_json: Json = False) -> None:
    """Delete a context that is attached to nothing."""
    named.delete(PATH, "context", context, as_json=as_json)
