"""`headgate destination`: places that deliveries and reports are sent to."""

from typing import Annotated

import typer

from headgate.cli.output import Json, told
from headgate.cli.paging import Cursor, Limit, Prefix, print_page
from headgate.cli.platform import external_systems
from headgate.cli.platform.external_systems import ApiPath, Forget, Kind, Place, Secret, Set

app = typer.Typer(
    help="Destinations, which deliveries and reports are sent to.", no_args_is_help=True, rich_markup_mode=None
)

Named = Annotated[str, typer.Argument(metavar="DESTINATION", help="The destination, by name or id.")]


@app.command("list")
@told
def list_destinations(
    deleted: Annotated[
        bool, typer.Option("--deleted", help="Those that were deleted, and that you may restore.")
    ] = False,
    prefix: Prefix = "",
    limit: Limit = 50,
    cursor: Cursor = None,
    as_json: Json = False,
) -> None:
    """List the destinations that you own, or that are shared with you."""
    from headgate.cli.client import connect

    with connect() as client:
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


@app.command()
@told
def add(
    name: Annotated[str, typer.Argument(help="What to call it.")],
    kind: Kind = None,
    fields: Set = None,
    place: Place = None,
    secret: Secret = None,
    as_json: Json = False,
) -> None:
    """Make a destination, and own it; nobody else sees it until it is shared."""
    body = {"name": name, "place": external_systems.place_given(kind, place, fields) or {}}
    external_systems.added("destination", body, secret, "Made", as_json=as_json)


@app.command()
@told
def show(destination: Named, as_json: Json = False) -> None:
    """Show a destination; which secrets are set, not what they are."""
    external_systems.show("destination", destination, as_json=as_json)


@app.command()
@told
def change(
    destination: Named,
    name: Annotated[str | None, typer.Option(help="Another name.")] = None,
    fields: Set = None,
    place: Place = None,
    secret: Secret = None,
    forget_secret: Forget = None,
    as_json: Json = False,
) -> None:
    """Change a destination. Pointing it somewhere else clears its secrets, but those given with it."""
    external_systems.changed_by(
        "destination",
        destination,
        {"name": name},
        (place, fields),
        external_systems.secrets_given(secret, forget_secret),
        as_json=as_json,
    )


@app.command()
@told
def delete(destination: Named, as_json: Json = False) -> None:
    """Delete a destination, even if it is in use; it can be restored."""
    from headgate.cli.client import connect
    from headgate.cli.output import print_json

    with connect() as client:
        result = client.request("DELETE", external_systems.path(client, "destination", destination))
    if as_json:
        print_json(result)
        return
    users = result["users"]
    print(f"Deleted the destination {result['name']}; `headgate destination restore {result['id']}` brings it back.")
    print(f"Not sent there meanwhile: {users['reports']} reports, {users['pipelines']} pipelines.")


@app.command()
@told
def restore(destination: Named, as_json: Json = False) -> None:
    """Bring a deleted destination back."""
    from headgate.cli.client import connect
    from headgate.cli.output import print_json

    with connect() as client:
        result = client.request(
            "POST", f"{external_systems.path(client, 'destination', destination, deleted=True)}/restore"
        )
    if as_json:
        print_json(result)
    else:
        print(f"Restored the destination {result['name']}.")


@app.command("test")
@told
def try_out(
    destination: Named,
    path: ApiPath = "",
    fields: Set = None,
    place: Place = None,
    secret: Secret = None,
    as_json: Json = False,
) -> None:
    """Test a destination that you may edit: a worker connects to its host, and writes nothing.

    With --set or --place, test a changed configuration without saving it. Give its secrets with --secret: stored ones
    are not sent to another host.
    """
    external_systems.tested("destination", destination, path, (place, fields), secret, as_json=as_json)
