"""`headgate organization`: its name, plan, invitation policy and usage."""

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from headgate.cli.commands import Client, command
from headgate.cli.output import Json, print_json, print_table

app = typer.Typer(help="The organization.", no_args_is_help=True, rich_markup_mode=None)

PATH = "/api/organization"


@command(app)
def show(client: Client, as_json: Json = False) -> None:
    """Show the organization: its name, its plan, and who may invite members."""
    response = client.get(PATH)
    if as_json:
        print_json(response)
    else:
        print_table(("field", "value"), response.items())


@command(app)
def rename(client: Client, name: Annotated[str, typer.Argument(help="The new name.")], as_json: Json = False) -> None:
    """Rename the organization."""
    result = client.request("PATCH", PATH, {"name": name})
    if as_json:
        print_json(result)
    else:
        print(f"The organization is now called {result['name']}.")


def _flat(result: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in result.items():
        if isinstance(value, dict):
            yield from ((f"{name}: {inner}", count) for inner, count in value.items())
        else:
            yield name, value


@command(app)
def usage(client: Client, as_json: Json = False) -> None:
    """Show the usage of the organization. For owners."""
    response = client.get(f"{PATH}/usage")
    if as_json:
        print_json(response)
    else:
        print_table(("what", "value"), _flat(response))


def _change(change: dict[str, str], *, as_json: bool) -> None:
    from headgate.cli.client import connect

    with connect() as client:
        response = client.post("/api/access/changes", change)
    if as_json:
        print_json(response)
    else:
        print(f"Done, by {', '.join(response['via'])}.")


@command(app, "set-plan")
def set_plan(
    plan: Annotated[str, typer.Argument(help="starter, growth or custom.")],
    as_json: Json = False,
) -> None:
    """Change the plan. `headgate access what-if set_plan plan=…` simulates the change."""
    _change({"change": "set_plan", "plan": plan}, as_json=as_json)


@command(app, "set-invites")
def set_invites(
    invites: Annotated[str, typer.Argument(help="by-role or admins-only.")],
    as_json: Json = False,
) -> None:
    """Set who may invite members: by role, or admins only."""
    _change({"change": "set_invites", "invites": invites}, as_json=as_json)
