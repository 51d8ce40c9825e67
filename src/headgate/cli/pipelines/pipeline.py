"""`headgate pipeline`: create, save, show, plan and run pipelines."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headgate.cli import lineage as lineage_cli
from headgate.cli.commands import Client, command
from headgate.cli.lineage import Depth, Direction, WithColumns
from headgate.cli.output import Json, print_json, print_table, printable

if TYPE_CHECKING:
    from headgate.client import Headgate

app = typer.Typer(
    help="Pipelines: sources, queries, notebooks, histories, deliveries.", no_args_is_help=True, rich_markup_mode=None
)

Named = Annotated[str, typer.Argument(metavar="PIPELINE", help="The pipeline, by name or id.")]
DefinitionFile = Annotated[
    Path | None, typer.Option("--file", "-f", help="The definition, as YAML, TOML or JSON; - reads standard input.")
]
NotebookFile = Annotated[
    Path | None, typer.Option("--notebook", help="The notebook: .ipynb, or .py with cells that start with # %%.")
]
SqlFile = Annotated[Path | None, typer.Option("--sql", help="The SQL of a query pipeline, as a file.")]


def named(client: "Headgate", text: str) -> str:
    """The id of a pipeline, given its name or id."""
    from headgate.cli.names import only
    from headgate.kit.ids import kind_of

    if kind_of(text) == "pipeline":
        return text
    return only(client.get("/api/pipelines", prefix=text, limit=20)["items"], "pipeline", text)


def definition_of(file: Path | None, notebook: Path | None, sql: Path | None) -> dict[str, Any]:
    """The pipeline definition, read from files."""
    from headgate.cli.text_input import text_of
    from headgate.kit.errors import Invalid

    values: dict[str, Any] = {}
    if file is not None:
        values = _parsed(text_of(None if str(file) == "-" else file), file.suffix.lower())
    if notebook is not None:
        from headgate.pipelines.notebook_files import BadNotebook, read

        try:
            cells = read(notebook.name, notebook.read_bytes())
        except BadNotebook as error:
            raise Invalid(f"{notebook}: {error}") from None
        values = {"kind": "notebook", **values, "cells": [cell.model_dump() for cell in cells]}
    if sql is not None:
        values = {"kind": "query", **values, "sql": text_of(sql)}
    if not values:
        raise Invalid("give the definition with --file, and the code with --notebook or --sql")
    return values


def _parsed(text: str, suffix: str) -> dict[str, Any]:
    import tomllib

    import yaml

    from headgate.kit.errors import Invalid

    try:
        # JSON is YAML too.
        values = tomllib.loads(text) if suffix == ".toml" else yaml.safe_load(text)
    except (tomllib.TOMLDecodeError, yaml.YAMLError) as error:
        raise Invalid(f"cannot read the definition: {error}") from None
    if not isinstance(values, dict):
        raise Invalid("a definition must be a mapping, such as `kind: query` and its fields")
    return values


def _saved(client: "Headgate", answer: dict[str, Any]) -> str:
    """Wait until the pipeline is saved, and return its id."""
    if answer["state"] == "saved":
        return str(answer["id"])
    from headgate.client.statements import wait

    statement = client.get(f"/api/sql/statements/{answer['statement']}")
    return str(wait(client, statement)["saved_query"])


def _tell(client: "Headgate", pipeline: str, done: str, *, as_json: bool) -> None:
    response = client.get(f"/api/pipelines/{pipeline}")
    if as_json:
        print_json(response)
        return
    print(f"{done} {response['name']!r} ({pipeline}).")
    if response["unresolved"]:
        print(printable(f"It cannot run yet: {response['unresolved']}. Save it again when this is resolved."))
    for note in response["notes"]:
        print(printable(f"{note}."))


@command(app, "list")
def list_pipelines(
    client: Client,
    prefix: Annotated[str, typer.Option(help="Only names that start with this.")] = "",
    limit: Annotated[int, typer.Option(min=1, max=200, help="Maximum number of items on a page.")] = 50,
    cursor: Annotated[str | None, typer.Option(help="The cursor printed below the previous page.")] = None,
    as_json: Json = False,
) -> None:
    """List the pipelines that you may see."""
    response = client.get("/api/pipelines", prefix=prefix, limit=limit, cursor=cursor)
    if as_json:
        print_json(response)
        return
    rows = (
        (value["name"], value["kind"], value["active"], (value["last_run"] or {}).get("state"), value["id"])
        for value in response["items"]
    )
    print_table(("name", "kind", "active", "last run", "id"), rows, empty="There is no pipeline that you may see.")
    if response["next_cursor"]:
        print(f"more: --cursor {response['next_cursor']}")


@command(app)
def show(client: Client, pipeline: Named, as_json: Json = False) -> None:
    """Show a pipeline: its definition, the tables that it reads and writes, and your actions on it."""
    import yaml

    response = client.get(f"/api/pipelines/{named(client, pipeline)}")
    if as_json:
        print_json(response)
        return
    definition = response.pop("definition")
    last = response.pop("last_run")
    rows = [(name.replace("_", " "), value) for name, value in response.items()]
    rows.append(("last run", f"{last['state']} ({last['id']})" if last else None))
    print_table(("field", "value"), rows)
    if definition:
        print("\n" + printable(yaml.safe_dump(definition, sort_keys=False, allow_unicode=True).rstrip()))


@command(app)
def export(
    client: Client,
    pipeline: Named,
    output: Annotated[Path, typer.Option("--output", "-o", help="The file: .ipynb or .py for a notebook, else .yaml.")],
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing file.")] = False,
) -> None:
    """Export the definition of a pipeline to a file, or a notebook as .ipynb or .py."""
    import yaml

    from headgate.cli.lakehouse.sql import check_free
    from headgate.contracts.pipelines.definitions import Cell
    from headgate.kit.errors import Conflict
    from headgate.pipelines.notebook_files import to_ipynb, to_py

    check_free(output, overwrite=overwrite)
    result = client.get(f"/api/pipelines/{named(client, pipeline)}")["definition"]
    if result is None:
        raise Conflict(
            "cannot export the pipeline: its definition refers to resources that you may not see, or it has no "
            "definition"
        )
    if output.suffix in {".ipynb", ".py"} and result["kind"] == "notebook":
        cells = [Cell(**value) for value in result["cells"]]
        output.write_bytes(to_ipynb(cells) if output.suffix == ".ipynb" else to_py(cells))
    else:
        output.write_text(yaml.safe_dump(result, sort_keys=False, allow_unicode=True), encoding="utf-8")
    print(f"Wrote {output}.")


@command(app)
def add(
    client: Client,
    name: Annotated[str, typer.Argument(help="The name.")],
    file: DefinitionFile = None,
    notebook: NotebookFile = None,
    sql: SqlFile = None,
    description: Annotated[str, typer.Option(help="The description.")] = "",
    deactivate_after: Annotated[
        int, typer.Option(min=0, help="Deactivate the pipeline after this many consecutive failures.")
    ] = 0,
    as_json: Json = False,
) -> None:
    """Create a pipeline. It runs as you: every run uses your permissions."""
    body = {"name": name, "description": description, "definition": definition_of(file, notebook, sql)}
    answer = client.request("POST", "/api/pipelines", {**body, "deactivate_after": deactivate_after})
    _tell(client, _saved(client, answer), "Made", as_json=as_json)


@command(app)
def save(
    client: Client,
    pipeline: Named,
    file: DefinitionFile = None,
    notebook: NotebookFile = None,
    sql: SqlFile = None,
    as_json: Json = False,
) -> None:
    """Save a new definition. From then on the pipeline runs as you. With only --sql or --notebook, the rest of the
    definition is kept.
    """
    given = definition_of(file, notebook, sql)
    identifier = named(client, pipeline)
    if file is None:
        given = {**(client.get(f"/api/pipelines/{identifier}")["definition"] or {}), **given}
    answer = client.request("PATCH", f"/api/pipelines/{identifier}", {"definition": given})
    _tell(client, _saved(client, answer), "Saved", as_json=as_json)


def _change(pipeline: str, done: str, *, as_json: bool, **body: Any) -> None:
    from headgate.cli.client import connect

    with connect() as client:
        identifier = named(client, pipeline)
        client.request("PATCH", f"/api/pipelines/{identifier}", body)
        _tell(client, identifier, done, as_json=as_json)


@command(app)
def rename(pipeline: Named, name: Annotated[str, typer.Argument(help="The new name.")], as_json: Json = False) -> None:
    """Rename a pipeline."""
    _change(pipeline, "Renamed to", as_json=as_json, name=name)


@command(app)
def activate(pipeline: Named, as_json: Json = False) -> None:
    """Activate a pipeline."""
    _change(pipeline, "Activated", as_json=as_json, active=True)


@command(app)
def deactivate(pipeline: Named, as_json: Json = False) -> None:
    """Deactivate a pipeline: no trigger starts it until it is active again."""
    _change(pipeline, "Deactivated", as_json=as_json, active=False)


@command(app)
def confirm(
    client: Client,
    pipeline: Named,
    yes: Annotated[bool, typer.Option("--yes", help="Confirm without a prompt.")] = False,
    as_json: Json = False,
) -> None:
    """Confirm the hosts of a pipeline's connections and destination after one of them changed. Requires the same access
    as saving the pipeline, and makes you its last saver: outside data projects it runs as you from then on.
    """
    identifier = named(client, pipeline)
    endpoints = client.get(f"/api/pipelines/{identifier}")["endpoints"]
    moved = [endpoint for endpoint in endpoints if endpoint["version"] != endpoint["confirmed"]]
    for entry in moved:
        where = ", ".join(f"{name}={value}" for name, value in (entry["config"] or {}).items() if value)
        typer.echo(f"{entry['name']} ({entry['kind']}, version {entry['version']}): {where}", err=True)
    if moved and not yes:
        typer.confirm("Confirm these hosts, and become responsible for the pipeline?", abort=True, err=True)
    versions = {value["id"]: value["version"] for value in moved}
    client.request("POST", f"/api/pipelines/{identifier}/confirm", {"versions": versions})
    _tell(client, identifier, "Confirmed", as_json=as_json)


@command(app)
def delete(client: Client, pipeline: Named, as_json: Json = False) -> None:
    """Delete a pipeline, its triggers and its run history. The tables that it wrote are kept."""
    result = client.request("DELETE", f"/api/pipelines/{named(client, pipeline)}")
    if as_json:
        print_json(result)
    else:
        print(f"Deleted {result['name']!r}.")


@command(app)
def plan(
    client: Client,
    pipeline: Annotated[str | None, typer.Argument(metavar="PIPELINE", help="A pipeline, by name or id.")] = None,
    file: DefinitionFile = None,
    notebook: NotebookFile = None,
    sql: SqlFile = None,
    as_json: Json = False,
) -> None:
    """Show what a run would do without running it: its steps and the access that it needs. Give a pipeline, or an
    unsaved definition with --file.
    """
    if pipeline is not None:
        response = client.get(f"/api/pipelines/{named(client, pipeline)}/plan")
    else:
        body = {"definition": definition_of(file, notebook, sql)}
        response = client.request("POST", "/api/pipelines/plan", body)
    if as_json:
        print_json(response)
        return
    print_table(("", "step"), ((value["number"] + 1, value["title"]) for value in response["steps"]), empty="No steps.")
    print()
    rows = ((value["name"] or "(hidden)", value["mode"], value["level"], value["held"]) for value in response["needs"])
    print_table(("table", "mode", "needs", "held"), rows, empty="The pipeline reads and writes no tables.")
    for problem in (*response["problems"], *response["notes"]):
        print(printable(f"\n{problem}."))


@command(app)
def lineage(
    client: Client,
    pipeline: Named,
    direction: Direction = "both",
    depth: Depth = 5,
    columns: WithColumns = False,
    as_json: Json = False,
) -> None:
    """Show the lineage of a pipeline: the tables that it reads and writes, and their lineage."""
    query = {"direction": direction, "depth": depth, "columns": columns}
    response = client.get(f"/api/pipelines/{named(client, pipeline)}/lineage", **query)
    lineage_cli.show(response, as_json=as_json)


@command(app)
def run(
    pipeline: Named,
    full_refresh: Annotated[
        bool, typer.Option("--full-refresh", help="Restart incremental loads from the beginning.")
    ] = False,
    parameter: Annotated[
        list[str] | None, typer.Option("--parameter", "-p", help="A notebook parameter, as NAME=VALUE.")
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", help="Follow the run until it ends, and print its log.")] = False,
    as_json: Json = False,
) -> None:
    """Run a pipeline. Same as `headgate run start`."""
    from headgate.cli.pipelines.run import begin

    begin(pipeline, parameter or [], full_refresh=full_refresh, follow=follow, as_json=as_json)
