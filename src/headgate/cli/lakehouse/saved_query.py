"""`headgate saved`: your saved queries."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from headgate.cli.commands import Client, command
from headgate.cli.field_names import SentAs
from headgate.cli.lakehouse.sql import (
    SHOWN,
    As,
    Format,
    Most,
    Output,
    Overwrite,
    Sql,
    SqlFile,
    check_output,
    follow,
    sql_text,
    write_rows,
)
from headgate.cli.output import Json, print_json, print_table
from headgate.cli.paging import Cursor, Limit, Prefix, print_page

if TYPE_CHECKING:
    from headgate.client import Headgate

app = typer.Typer(help="Your saved queries; nobody else sees them.", no_args_is_help=True, rich_markup_mode=None)

PATH = "/api/sql/saved"
Query = Annotated[str, typer.Argument(help="The saved query, by name or id."), SentAs("saved_query")]


def _one(client: "Headgate", query: str) -> dict[str, Any]:
    """A saved query by name or id."""
    from headgate.kit.errors import NotFound
    from headgate.kit.ids import kind_of
    from headgate.kit.names import name_key

    if kind_of(query) == "saved_query":
        return dict(client.get(f"{PATH}/{query}"))
    for value in client.get(PATH, prefix=query, limit=200)["items"]:
        if name_key(value["name"]) == name_key(query):
            return dict(client.get(f"{PATH}/{value['id']}"))
    raise NotFound(f"you have no saved query called {query!r}; `headgate saved list` shows yours")


@command(app, "list")
def list_saved(
    client: Client,
    prefix: Prefix = "",
    limit: Limit = 50,
    cursor: Cursor = None,
    as_json: Json = False,
) -> None:
    """List your saved queries."""
    response = client.get(PATH, prefix=prefix, limit=limit, cursor=cursor)
    rows = ((value["name"], value["updated_at"][:19], value["id"]) for value in response["items"])
    print_page(response, ("name", "saved", "id"), rows, "You have no saved query.", as_json=as_json)


@command(app)
def show(client: Client, query: Query, as_json: Json = False) -> None:
    """Show a saved query: its SQL, the tables that it reads, and your actions on it."""
    values = _one(client, query)
    if as_json:
        print_json(values)
        return
    print_table(("field", "value"), [(name, value) for name, value in values.items() if name != "sql"])
    print(f"\n{values['sql']}")


@command(app)
def save(
    client: Client,
    name: Annotated[str, typer.Argument(help="The name. Replaces your saved query of that name.")],
    text: Sql = None,
    file: SqlFile = None,
    as_json: Json = False,
) -> None:
    """Save a query. Spark analyses it to determine the tables that it reads; if that fails, nothing is saved."""
    from headgate.client.statements import STATEMENTS, wait
    from headgate.kit.errors import NotFound

    sql = sql_text(text, file)
    try:
        begun = client.request("PATCH", f"{PATH}/{_one(client, name)['id']}", {"sql": sql})
    except NotFound:
        begun = client.post(PATH, {"name": name, "sql": sql})
    done = wait(client, client.get(f"{STATEMENTS}/{begun['statement']}"))
    response = client.get(f"{PATH}/{done['saved_query']}")
    if as_json:
        print_json(response)
    else:
        print(f"Saved {response['name']} ({response['id']}); it reads {', '.join(response['reads']) or 'no table'}.")


@command(app)
def run(
    client: Client,
    query: Query,
    limit: Most = None,
    as_: As = Format.table,
    output: Output = None,
    overwrite: Overwrite = False,
) -> None:
    """Run a saved query and print its rows."""
    from headgate.kit.errors import Conflict

    check_output(as_, output, overwrite=overwrite)
    saved = _one(client, query)
    if saved["sql"] is None:
        raise Conflict("this saved query has no SQL; set it with `headgate saved save`")
    most = limit or (SHOWN if as_ is Format.table and output is None else None)
    write_rows(client, follow(client, saved["sql"], most), as_, output)


@command(app)
def rename(
    client: Client, query: Query, name: Annotated[str, typer.Argument(help="The new name.")], as_json: Json = False
) -> None:
    """Rename a saved query."""
    values = _one(client, query)
    client.request("PATCH", f"{PATH}/{values['id']}", {"name": name})
    if as_json:
        print_json({"id": values["id"], "name": name})
    else:
        print(f"Renamed {values['name']} to {name}.")


@command(app)
def delete(client: Client, query: Query, as_json: Json = False) -> None:
    """Delete a saved query. Requires Editor on every table that it reads."""
    result = client.request("DELETE", f"{PATH}/{_one(client, query)['id']}")
    if as_json:
        print_json(result)
    else:
        print(f"Deleted {result['name']}.")
