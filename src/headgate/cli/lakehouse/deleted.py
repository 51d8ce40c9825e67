"""`headgate deleted`: list and restore deleted resources."""

from typing import Annotated, Any

import typer

from headgate.cli.commands import Client, command
from headgate.cli.output import Json, print_json
from headgate.cli.paging import Cursor, Limit, print_page

app = typer.Typer(help="Deleted resources that can be restored.", no_args_is_help=True, rich_markup_mode=None)

PATH = "/api/deleted"


@command(app, "list")
def list_deleted(client: Client, limit: Limit = 50, cursor: Cursor = None, as_json: Json = False) -> None:
    """List the deleted layers, tables and volumes that you may restore, newest first."""
    response = client.get(PATH, limit=limit, cursor=cursor)
    columns = ("name", "kind", "deleted", "by", "restore until", "id")
    print_page(
        response,
        columns,
        map(_row, response["items"]),
        "There is no deleted resource that you may restore.",
        as_json=as_json,
    )


def _row(value: dict[str, Any]) -> tuple[Any, ...]:
    by = value["deleted_by"]["name"] if value["deleted_by"] else None
    return value["name"], value["kind"], value["deleted_at"], by, value["restore_until"], value["id"]


@command(app)
def restore(
    client: Client,
    deleted: Annotated[str, typer.Argument(help="The id, or the name if it is unique.")],
    name: Annotated[str | None, typer.Option(help="A new name, if the old one is in use.")] = None,
    as_json: Json = False,
) -> None:
    """Restore a deleted resource with its grants and data."""
    response = client.post(f"{PATH}/{_id_of(client, deleted)}/restore", {"name": name})
    if as_json:
        print_json(response)
    else:
        print(f"Restored the {response['kind']} {response['name']}.")


def _id_of(client: Any, text: str) -> str:
    """The id of a deleted resource, given its id or name."""
    from headgate.kit.errors import Conflict, NotFound
    from headgate.kit.ids import kind_of
    from headgate.kit.names import name_key

    if kind_of(text):
        return text
    results, cursor = [], None
    while True:
        listed = client.get(PATH, limit=200, cursor=cursor)
        results += [value["id"] for value in listed["items"] if name_key(value["name"]) == name_key(text)]
        cursor = listed["next_cursor"]
        if cursor is None:
            break
    if len(results) > 1:
        raise Conflict(
            f"Several deleted resources are named {text!r}: {', '.join(results)}. Give the id of one of them"
        )
    if not results:
        raise NotFound(
            f"There is no deleted resource called {text!r} that you may restore; `headgate deleted list` shows them"
        )
    return str(results[0])
