"""`headgate destination`: external systems that deliveries and reports are sent to."""

from typing import Annotated

import typer

from headgate.cli.commands import Client, command
from headgate.cli.output import Json
from headgate.cli.paging import Cursor, Limit, Prefix, print_page
from headgate.cli.platform import external_systems
from headgate.cli.platform.external_systems import ApiPath, Forget, Kind, Place, Secret, Set

app = typer.Typer(
    help="Destinations: external systems that deliveries and reports are sent to.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Named = Annotated[str, typer.Argument(metavar="DESTINATION", help="The destination, by name or id.")]


@command(app, "list")
def list_destinations(
    client: Client,
    deleted: Annotated[bool, typer.Option("--deleted", help="List deleted destinations that you may restore.")] = False,
    prefix: Prefix = "",
    limit: Limit = 50,
    cursor: Cursor = None,
    as_json: Json = False,
) -> None:
    """List the destinations that you own or that are shared with you."""
    response = client.get("/api/destinations", deleted=deleted, prefix=prefix, limit=limit, cursor=cursor)
    rows = (
        (
            value["name"],
            value["place_kind"],
            [owner["name"] for owner in value["owners"]],
            value["allowed"],
            value["id"],
        )
        for value in response["items"]
    )
    columns = ("name", "kind", "owners", "you can", "id")
    print_page(response, columns, rows, "There is no destination that you may see.", as_json=as_json)


@command(app)
def add(
    name: Annotated[str, typer.Argument(help="The name.")],
    kind: Kind = None,
    fields: Set = None,
    place: Place = None,
    secret: Secret = None,
    as_json: Json = False,
) -> None:
    """Create a destination. You own it, and nobody else sees it until you share it."""
    body = {"name": name, "place": external_systems.configuration_from_options(kind, place, fields) or {}}
    external_systems.add("destination", body, secret, "Made", as_json=as_json)


@command(app)
def show(destination: Named, as_json: Json = False) -> None:
    """Show a destination. Secrets are listed, but not their values."""
    external_systems.show("destination", destination, as_json=as_json)


@command(app)
def change(
    destination: Named,
    name: Annotated[str | None, typer.Option(help="The new name.")] = None,
    fields: Set = None,
    place: Place = None,
    secret: Secret = None,
    forget_secret: Forget = None,
    as_json: Json = False,
) -> None:
    """Change a destination. If its host changes, stored secrets are cleared; set them again with --secret."""
    external_systems.change(
        "destination",
        destination,
        {"name": name},
        (place, fields),
        external_systems.secrets_from_options(secret, forget_secret),
        as_json=as_json,
    )


@command(app)
def delete(client: Client, destination: Named, as_json: Json = False) -> None:
    """Delete a destination, even if it is in use. It can be restored."""
    from headgate.cli.output import print_json

    result = client.request("DELETE", external_systems.path(client, "destination", destination))
    if as_json:
        print_json(result)
        return
    users = result["users"]
    print(f"Deleted the destination {result['name']}; `headgate destination restore {result['id']}` restores it.")
    print(f"{users['reports']} reports and {users['pipelines']} pipelines used it and can no longer deliver to it.")


@command(app)
def restore(client: Client, destination: Named, as_json: Json = False) -> None:
    """Restore a deleted destination."""
    from headgate.cli.output import print_json

    result = client.request(
        "POST", f"{external_systems.path(client, 'destination', destination, deleted=True)}/restore"
    )
    if as_json:
        print_json(result)
    else:
        print(f"Restored the destination {result['name']}.")


@command(app, "test")
def try_out(
    destination: Named,
    path: ApiPath = "",
    fields: Set = None,
    place: Place = None,
    secret: Secret = None,
    as_json: Json = False,
) -> None:
    """Test a destination that you may edit: a worker connects to it and writes nothing. With --set or --place, test a
    changed configuration without saving it. Stored secrets are not sent to another host; give them with --secret.
    """
    external_systems.run_test("destination", destination, path, (place, fields), secret, as_json=as_json)
