"""`headgate notifications webhook`: where the organization's notices about runs are posted."""

from typing import Annotated, Any

import typer

from headgate.cli.output import Json, print_json, print_table, told

app = typer.Typer(help="The organization's webhook.", no_args_is_help=True, rich_markup_mode=None)
PATH = "/api/webhook"


def _show(result: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(result)
    elif result["host"] is None:
        print("There is no webhook.")
    else:
        print_table(("field", "value"), [(name.replace("_", " "), value) for name, value in result.items()])


@app.command()
@told
def show(as_json: Json = False) -> None:
    """Show the webhook, and how its last delivery went."""
    from headgate.cli.client import connect

    with connect() as client:
        response = client.get(PATH)
    _show(response, as_json=as_json)


@app.command("set")
@told
def set_url(
    url: Annotated[str, typer.Argument(help="Where notices are posted; - reads it from standard input.")],
    as_json: Json = False,
) -> None:
    """Set the webhook, in place of any before. Prints the key of the signatures, once."""
    from headgate.cli.client import connect
    from headgate.cli.text_input import line_of_input

    with connect() as client:
        result = client.request("PUT", PATH, {"url": line_of_input() if url == "-" else url})
    _show(result, as_json=as_json)


@app.command()
@told
def remove(as_json: Json = False) -> None:
    """Remove the webhook."""
    from headgate.cli.client import connect

    with connect() as client:
        result = client.request("DELETE", PATH)
    _show(result, as_json=as_json)
