"""`headgate notifications webhook`: the webhook for notifications about runs."""

from typing import Annotated, Any

import typer

from headgate.cli.commands import Client, command
from headgate.cli.output import Json, print_json, print_table

app = typer.Typer(help="The webhook for notifications about runs.", no_args_is_help=True, rich_markup_mode=None)
PATH = "/api/webhook"


def _show(result: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(result)
    elif result["host"] is None:
        print("There is no webhook.")
    else:
        print_table(("field", "value"), [(name.replace("_", " "), value) for name, value in result.items()])


@command(app)
def show(client: Client, as_json: Json = False) -> None:
    """Show the webhook and the result of its last delivery."""
    response = client.get(PATH)
    _show(response, as_json=as_json)


@command(app, "set")
def set_url(
    client: Client,
    url: Annotated[str, typer.Argument(help="The URL; - reads it from standard input.")],
    as_json: Json = False,
) -> None:
    """Set the webhook, replacing any previous one. Prints the signing key once."""
    from headgate.cli.text_input import line_of_input

    result = client.request("PUT", PATH, {"url": line_of_input() if url == "-" else url})
    _show(result, as_json=as_json)


@command(app)
def remove(client: Client, as_json: Json = False) -> None:
    """Delete the webhook."""
    result = client.request("DELETE", PATH)
    _show(result, as_json=as_json)
