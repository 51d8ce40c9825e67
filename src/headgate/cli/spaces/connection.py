"""`headgate connection`: the external systems that pipelines read and write."""

from typing import Annotated

import typer

from headgate.cli.commands import Client, command
from headgate.cli.output import Json
from headgate.cli.paging import Cursor, Limit, Prefix, print_page
from headgate.cli.platform import external_systems
from headgate.cli.platform.external_systems import ApiPath, Forget, Kind, Most, Pattern, Place, Secret, Set

app = typer.Typer(
    help="Connections to databases, APIs, files and catalogs.", no_args_is_help=True, rich_markup_mode=None
)

ALLOW = "Allow notebook code to read its secrets; off by default."
Named = Annotated[str, typer.Argument(metavar="CONNECTION", help="The connection, by name or id.")]


@command(app, "list")
def list_connections(
    client: Client, prefix: Prefix = "", limit: Limit = 50, cursor: Cursor = None, as_json: Json = False
) -> None:
    """List the connections of the spaces in which you have a role."""
    response = client.get("/api/connections", prefix=prefix, limit=limit, cursor=cursor)
    rows = (
        (
            value["name"],
            value["place_kind"],
            value["space"]["name"],
            (value["owner"] or {}).get("name"),
            value["allowed"],
            value["id"],
        )
        for value in response["items"]
    )
    columns = ("name", "kind", "space", "owner", "you can", "id")
    print_page(response, columns, rows, "There is no connection that you may see.", as_json=as_json)


@command(app)
def add(
    name: Annotated[str, typer.Argument(help="The name.")],
    space: Annotated[str, typer.Option(help="The space that contains it, by name or id.")],
    kind: Kind = None,
    fields: Set = None,
    place: Place = None,
    secret: Secret = None,
    allow_code: Annotated[bool, typer.Option("--allow-code", help=ALLOW)] = False,
    as_json: Json = False,
) -> None:
    """Add a connection to a space that you manage. You own it. Example: headgate connection add Shop --space "Sales
    data" --kind postgresql --set host=db.example.com --set database=shop --set user=reader --secret password
    """
    wanted = external_systems.configuration_from_options(kind, place, fields) or {}
    body = {"name": name, "space": space, "place": wanted, "allow_code": allow_code}
    external_systems.add("connection", body, secret, "Added", as_json=as_json)


@command(app)
def show(connection: Named, as_json: Json = False) -> None:
    """Show a connection. Secrets are listed, but not their values."""
    external_systems.show("connection", connection, as_json=as_json)


@command(app)
def change(
    connection: Named,
    name: Annotated[str | None, typer.Option(help="The new name.")] = None,
    fields: Set = None,
    place: Place = None,
    secret: Secret = None,
    forget_secret: Forget = None,
    allow_code: Annotated[bool | None, typer.Option("--allow-code/--no-code", help=ALLOW)] = None,
    as_json: Json = False,
) -> None:
    """Change a connection that you own. A new host clears stored secrets; set them again with --secret."""
    external_systems.change(
        "connection",
        connection,
        {"name": name, "allow_code": allow_code},
        (place, fields),
        external_systems.secrets_from_options(secret, forget_secret),
        as_json=as_json,
    )


@command(app)
def delete(client: Client, connection: Named, as_json: Json = False) -> None:
    """Delete a connection that no pipeline uses."""
    from headgate.cli.output import print_json

    result = client.request("DELETE", external_systems.path(client, "connection", connection))
    if as_json:
        print_json(result)
    else:
        print(f"Deleted the connection {result['name']} and its secrets.")


@command(app, "test")
def try_out(
    connection: Named,
    path: ApiPath = "",
    fields: Set = None,
    place: Place = None,
    secret: Secret = None,
    as_json: Json = False,
) -> None:
    """Test a connection: a worker connects to its host. With --set or --place, test a changed configuration without
    saving it. Stored secrets are not sent to another host; give them with --secret.
    """
    external_systems.run_test("connection", connection, path, (place, fields), secret, as_json=as_json)


@command(app)
def discover(connection: Named, pattern: Pattern = "", limit: Most = 500, as_json: Json = False) -> None:
    """List the tables or files of the system, read by a worker."""
    external_systems.print_discovered("connection", connection, pattern, limit, as_json=as_json)
