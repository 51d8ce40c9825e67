"""`headgate group`: groups and their members."""

from typing import Annotated, Any

import typer

from headgate.cli.commands import Client, command
from headgate.cli.organization import shared as named
from headgate.cli.organization.shared import id_of
from headgate.cli.output import Json, print_json, print_table
from headgate.cli.paging import Cursor, Limit, Prefix, print_more, print_page

app = typer.Typer(help="Groups of members.", no_args_is_help=True, rich_markup_mode=None)

PATH = "/api/groups"
Group = Annotated[str, typer.Argument(help="The group, by name or id.")]
Members = Annotated[list[str], typer.Argument(help="Members, by name or id.")]


@command(app, "list")
def list_groups(
    client: Client,
    prefix: Prefix = "",
    limit: Limit = 50,
    cursor: Cursor = None,
    as_json: Json = False,
) -> None:
    """List the groups with their number of members."""
    response = client.get(PATH, prefix=prefix, limit=limit, cursor=cursor)
    rows = ((item["name"], item["members"], item["built_in"], item["id"]) for item in response["items"])
    print_page(response, ("name", "members", "built in", "id"), rows, "There is no such group.", as_json=as_json)


@command(app)
def show(client: Client, group: Group, limit: Limit = 50, cursor: Cursor = None, as_json: Json = False) -> None:
    """Show a group. Its members are shown to members of the group and to those who manage groups."""
    response = client.get(f"{PATH}/{id_of(client, PATH, 'group', group)}", limit=limit, cursor=cursor)
    if as_json:
        print_json(response)
        return
    print_table(("field", "value"), response["group"].items())
    print()
    if response["members"] is None:
        print("Only members of the group and those who manage groups see its members.")
        return
    print_table(
        ("member", "id"),
        ((value["name"], value["id"]) for value in response["members"]),
        empty="The group has no members.",
    )
    print_more(response)


@command(app)
def create(name: Annotated[str, typer.Argument(help="The name.")], as_json: Json = False) -> None:
    """Create a group. `headgate group add` adds members."""
    named.create(PATH, "group", name, as_json=as_json)


@command(app)
def rename(group: Group, name: Annotated[str, typer.Argument(help="The new name.")], as_json: Json = False) -> None:
    """Rename a group. Its grants are kept."""
    named.rename(PATH, "group", group, name, as_json=as_json)


@command(app)
def delete(group: Group, as_json: Json = False) -> None:
    """Delete a group. Its grants, space roles and memberships end at once."""
    named.delete(PATH, "group", group, as_json=as_json)


def _change(change: str, group: str, members: list[str], *, as_json: bool) -> None:
    from headgate.cli.client import connect

    answers: list[Any] = []
    with connect() as client:
        for member in members:
            answers.append(client.post("/api/access/changes", {"change": change, "group": group, "member": member}))
            if not as_json:
                print(f"{member} {'is in' if change == 'join_group' else 'is no longer in'} {group}.")
    if as_json:
        print_json(answers)


@command(app)
def add(group: Group, members: Members, as_json: Json = False) -> None:
    """Add members to a group."""
    _change("join_group", group, members, as_json=as_json)


@command(app)
def remove(group: Group, members: Members, as_json: Json = False) -> None:
    """Remove members from a group."""
    _change("leave_group", group, members, as_json=as_json)
