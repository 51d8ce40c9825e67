"""`headgate integration`: service accounts for BI tools and agents."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from headgate.cli.commands import Client, command
from headgate.cli.output import Json, print_json, print_table

if TYPE_CHECKING:
    from headgate.client import Headgate

app = typer.Typer(
    help="Integrations: service accounts for BI tools and agents, each with its own token.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

PLACE = "/api/integrations"
Named = Annotated[str, typer.Argument(metavar="INTEGRATION", help="The integration, by name or id.")]
Tables = Annotated[
    list[str] | None, typer.Option("--table", help="A table that the integration may read, as LAYER.NAME.")
]
Expires = Annotated[str | None, typer.Option(help="When the token expires, as 2027-01-31T00:00:00Z.")]


def _named(client: "Headgate", text: str) -> str:
    from headgate.cli.names import only
    from headgate.kit.ids import kind_of

    if kind_of(text) == "integration":
        return text
    return only(client.get(PLACE, prefix=text, limit=20)["items"], "integration", text)


def _print(result: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(result)
        return
    secret = result.pop("secret", None)
    uses = result.pop("uses")
    print_table(("field", "value"), [(name.replace("_", " "), value) for name, value in result.items()])
    if uses:
        print("\nread in the last thirty days:")
        print_table(("table", "reads", "last"), ((use["table"], use["reads"], use["last_at"][:19]) for use in uses))
    if secret:
        print(f"\nToken (shown only once):\n{secret}")


@command(app, "list")
def list_integrations(client: Client, as_json: Json = False) -> None:
    """List the integrations that you may see."""
    response = client.get(PLACE, limit=200)
    if as_json:
        print_json(response)
        return
    rows = ((value["name"], value["last_used_at"], value["id"]) for value in response["items"])
    print_table(("name", "last used", "id"), rows, empty="There is no integration that you may see.")


@command(app)
def show(client: Client, integration: Named, as_json: Json = False) -> None:
    """Show an integration: the tables that it may read, and its usage."""
    _print(client.get(f"{PLACE}/{_named(client, integration)}"), as_json=as_json)


@command(app)
def add(
    client: Client,
    name: Annotated[str, typer.Argument(help="The name.")],
    table: Tables = None,
    description: Annotated[str, typer.Option(help="The description.")] = "",
    expires: Expires = None,
    as_json: Json = False,
) -> None:
    """Create an integration with a token that can read only its tables. For admins."""
    body = {"name": name, "description": description, "tables": table or [], "expires": expires}
    _print(client.request("POST", PLACE, body), as_json=as_json)


@command(app)
def change(
    client: Client,
    integration: Named,
    name: Annotated[str | None, typer.Option(help="The new name.")] = None,
    description: Annotated[str | None, typer.Option(help="The new description.")] = None,
    table: Tables = None,
    as_json: Json = False,
) -> None:
    """Change the name, the description, or with --table all tables of an integration."""
    given = {"name": name, "description": description, "tables": table or None}
    body = {field: value for field, value in given.items() if value is not None}
    _print(client.request("PATCH", f"{PLACE}/{_named(client, integration)}", body), as_json=as_json)


@command(app)
def renew(client: Client, integration: Named, expires: Expires = None, as_json: Json = False) -> None:
    """Issue a new token for an integration. The old token stops working at once."""
    answer = client.request("POST", f"{PLACE}/{_named(client, integration)}/token", {"expires": expires})
    _print(answer, as_json=as_json)


@command(app)
def delete(client: Client, integration: Named, as_json: Json = False) -> None:
    """Delete an integration. Its token stops working at once."""
    result = client.request("DELETE", f"{PLACE}/{_named(client, integration)}")
    if as_json:
        print_json(result)
    else:
        print(f"Deleted {result['name']!r}.")
