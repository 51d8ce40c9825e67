"""`headgate table`: the tables of the lakehouse."""

from typing import Annotated, Any

import typer

from headgate.cli import lineage as lineage_cli
from headgate.cli.commands import Client, command
from headgate.cli.lakehouse import shared as commands
from headgate.cli.lakehouse.shared import Description, Layer, Title
from headgate.cli.lineage import Depth, Direction, WithColumns
from headgate.cli.output import Json, print_json, print_table
from headgate.cli.paging import Cursor, Limit, Prefix

app = typer.Typer(help="Tables of the lakehouse.", no_args_is_help=True, rich_markup_mode=None)

Named = Annotated[str, typer.Argument(metavar="TABLE", help="The table as LAYER.NAME, or its id.")]


@command(app, "list")
def list_tables(
    layer: Layer = None, prefix: Prefix = "", limit: Limit = 50, cursor: Cursor = None, as_json: Json = False
) -> None:
    """List the tables that you may see."""
    commands.listing("table", layer=layer, prefix=prefix, limit=limit, cursor=cursor, as_json=as_json)


@command(app)
def show(table: Named, as_json: Json = False) -> None:
    """Show a table: its size, columns, partitions, and your actions on it. To see who may read or write it, use
    `headgate access who-can execute table:LAYER.NAME` and `who-can edit`.
    """
    result = commands.show("table", table, as_json=as_json)
    if as_json or not result["columns"]:
        return
    print()
    rows = (
        (value["path"], value["type"], value["required"], value["title"] or value["doc"], value["id"])
        for value in _flat(result)
    )
    print_table(("column", "type", "required", "title", "field"), rows)
    for heading, parts in (("partitions", result["partitions"]), ("sort order", result["sort_order"])):
        if parts:
            print(f"\n{heading}: " + ", ".join(f"{part['transform']}({part['column']})" for part in parts))


def _flat(result: dict[str, Any]) -> list[dict[str, Any]]:
    """The columns as a flat list, each before its nested fields."""
    pending, flat = list(reversed(result["columns"])), []
    while pending:
        column = pending.pop()
        flat.append(column)
        pending += reversed(column["fields"])
    return flat


@command(app)
def describe(
    table: Named,
    title: Title = None,
    description: Description = None,
    field: Annotated[str | None, typer.Option(help="Describe this field instead, by path: address.city.")] = None,
    as_json: Json = False,
) -> None:
    """Set the title or description of a table or of one of its fields."""
    texts = commands.texts(title, description)
    body: dict[str, Any] = {"fields": [{"name": field, **texts}]} if field else dict(texts)
    commands.change("table", table, body, as_json=as_json)


@command(app)
def rename(
    table: Named,
    name: Annotated[
        str, typer.Argument(help="The new name. With another layer, as LAYER.NAME, the table moves there.")
    ],
    as_json: Json = False,
) -> None:
    """Rename a table, or move it to another layer. Its grants are kept."""
    commands.change("table", table, commands.moved("table", name), as_json=as_json)


@command(app)
def delete(table: Named, as_json: Json = False) -> None:
    """Delete a table with its data. `headgate deleted restore` restores it."""
    commands.delete("table", table, as_json=as_json)


@command(app)
def grants(table: Named, limit: Limit = 50, cursor: Cursor = None, as_json: Json = False) -> None:
    """List the grants on a table and on its layer."""
    commands.grants("table", table, limit, cursor, as_json=as_json)


@command(app)
def history(table: Named, limit: Limit = 50, cursor: Cursor = None, as_json: Json = False) -> None:
    """List the commits to a table."""
    columns = ("version", "at", "by", "operation", "added rows", "deleted rows", "snapshot")
    empty = "The table has no commits."
    commands.listing_of("table", table, "history", columns, empty, limit=limit, cursor=cursor, as_json=as_json)


@command(app)
def snapshots(table: Named, limit: Limit = 50, cursor: Cursor = None, as_json: Json = False) -> None:
    """List the snapshots of a table that can still be read."""
    columns = ("id", "at", "operation", "rows", "files", "bytes", "is current")
    empty = "The table has no snapshots."
    commands.listing_of("table", table, "snapshots", columns, empty, limit=limit, cursor=cursor, as_json=as_json)


@command(app)
def dependents(table: Named, limit: Limit = 50, cursor: Cursor = None, as_json: Json = False) -> None:
    """List the pipelines, data marts and integrations that read or write a table."""
    columns, empty = (
        ("kind", "name", "mode", "enabled", "id"),
        "No pipeline, data mart or integration that you may see reads or writes this table.",
    )
    commands.listing_of("table", table, "dependents", columns, empty, limit=limit, cursor=cursor, as_json=as_json)


@command(app)
def lineage(
    client: Client,
    table: Named,
    direction: Direction = "both",
    depth: Depth = 5,
    columns: WithColumns = False,
    as_json: Json = False,
) -> None:
    """Show the lineage of a table, as far as you may see it."""
    query = {"direction": direction, "depth": depth, "columns": columns}
    place = commands.path(client, "table", table).rpartition("/")[2]
    response = client.get(f"/api/lineage/{place}", **query)
    lineage_cli.show(response, as_json=as_json)


@command(app)
def preview(
    client: Client,
    table: Named,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="The number of rows.")] = 20,
    snapshot: Annotated[str | None, typer.Option(help="Read this snapshot.")] = None,
    as_of: Annotated[
        str | None, typer.Option(help="Read the table as of this time, such as 2026-03-01T12:00:00Z.")
    ] = None,
    column: Annotated[list[str] | None, typer.Option(help="Only this column. Can be repeated.")] = None,
    as_json: Json = False,
) -> None:
    """Show the first rows of a table, without Spark."""
    query = {"limit": limit, "snapshot": snapshot, "as_of": as_of, "columns": column or None}
    response = client.get(f"{commands.path(client, 'table', table)}/preview", **query)
    if as_json:
        print_json(response)
        return
    names = [value["name"] for value in response["columns"]]
    print_table(names, response["rows"], empty=f"No rows. Columns: {', '.join(names)}", verbatim=True)
    if response["truncated"]:
        print("There are more rows.")
