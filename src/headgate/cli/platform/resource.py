"""`headgate resource`: list and show resources of any kind."""

from typing import Annotated, Any

import typer

from headgate.cli.commands import Client, command
from headgate.cli.output import Json, print_json, print_table
from headgate.cli.paging import Cursor, Limit, Prefix, print_more

app = typer.Typer(help="Resources of any kind.", no_args_is_help=True, rich_markup_mode=None)


@command(app, "list")
def list_resources(
    client: Client,
    kind: Annotated[str, typer.Argument(help="The kind, such as data_mart, table or space.")],
    sort: Annotated[
        str, typer.Option(help="Sort by name, created, updated or created_by; -name reverses the order.")
    ] = "name",
    prefix: Prefix = "",
    action: Annotated[str | None, typer.Option(help="Only those on which you have this action.")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
    as_json: Json = False,
) -> None:
    """List the resources of a kind that you may see."""
    query = {"kind": kind, "sort": sort, "prefix": prefix, "action": action, "limit": limit, "cursor": cursor}
    response = client.get("/api/resources", **query, total=cursor is None)
    if as_json:
        print_json(response)
        return
    rows = (
        (item["id"], item["name"], _creator(item), item["updated_at"], item["allowed"]) for item in response["items"]
    )
    print_table(
        ("id", "name", "created by", "updated", "you can"), rows, empty="There are no resources that you may see."
    )
    if response["total"]:
        print(f"{response['total']} in all")
    print_more(response)


def _creator(item: dict[str, Any]) -> str | None:
    return item["created_by"]["name"] if item["created_by"] else None


def _id_of(client: Any, text: str) -> str:
    """The id of a resource, given its kind and name."""
    from headgate.cli.names import only

    kind, _, name = text.partition(":")
    result = client.get("/api/resources", kind=kind, prefix=name, limit=20)["items"]
    return only(result, kind, name, f"headgate resource list {kind}")


@command(app)
def get(
    client: Client,
    resource: Annotated[str, typer.Argument(help="kind:name, or an id.")],
    as_json: Json = False,
) -> None:
    """Show a resource and your actions on it."""
    from urllib.parse import quote

    identifier = _id_of(client, resource) if ":" in resource else resource.strip() or "-"
    response = client.get(f"/api/resources/{quote(identifier, safe='')}")
    if as_json:
        print_json(response)
        return
    response["created_by"] = _creator(response)
    print_table(("field", "value"), response.items())
