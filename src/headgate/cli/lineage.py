"""Output of lineage, shared by the commands for tables and pipelines."""

from typing import Annotated, Any

import typer

from headgate.cli.output import print_json, print_table

Direction = Annotated[str, typer.Option(help="upstream, downstream or both.")]
Depth = Annotated[int, typer.Option(min=1, max=20, help="The maximum distance, in pipelines.")]
WithColumns = Annotated[bool, typer.Option("--columns", help="Include column lineage.")]


def show(result: dict[str, Any], *, as_json: bool) -> None:
    """Print lineage, with column lineage if it was requested."""
    if as_json:
        print_json(result)
        return
    names = {value["id"]: value["name"] for value in result["nodes"]}
    kinds = {value["id"]: value["kind"] for value in result["nodes"]}
    rows = sorted(
        (names[value["source"]], kinds[value["source"]], names[value["target"]], kinds[value["target"]])
        for value in result["edges"]
    )
    print_table(("from", "kind", "to", "kind"), rows, empty="There is no lineage that you may see.")
    if result["columns"] is not None:
        print()
        lines = sorted(
            (_name(names, value, "target"), _name(names, value, "source"), names[value["pipeline"]])
            for value in result["columns"]
        )
        print_table(("column", "derived from", "by"), lines, empty="Column lineage is not known.")
    if result["cut"]:
        print("The lineage was cut off; narrow it with --depth or --direction.")


def _name(names: dict[str, str], edge: dict[str, Any], side: str) -> str:
    """A column as table.column; table.* for all columns."""
    if edge[side] is None:
        return "outside"
    column = edge[f"{side}_column"]
    return f"{names[edge[side]]}.{'*' if column is None else column}"
