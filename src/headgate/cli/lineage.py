"""How the commands of tables and pipelines show lineage."""

from typing import Annotated, Any

import typer

from headgate.cli.output import print_json, print_table

Direction = Annotated[str, typer.Option(help="upstream, downstream or both.")]
Depth = Annotated[int, typer.Option(min=1, max=20, help="How many pipelines far.")]
WithColumns = Annotated[bool, typer.Option("--columns", help="Also which columns the columns are made of.")]


def show(result: dict[str, Any], *, as_json: bool) -> None:
    """Print what leads to what; and of columns what they are made of, if that was asked for."""
    if as_json:
        print_json(result)
        return
    names = {value["id"]: value["name"] for value in result["nodes"]}
    kinds = {value["id"]: value["kind"] for value in result["nodes"]}
    rows = sorted(
        (names[value["source"]], kinds[value["source"]], names[value["target"]], kinds[value["target"]])
        for value in result["edges"]
    )
    print_table(("from", "kind", "to", "kind"), rows, empty="Nothing that you may see leads to it, or comes of it.")
    if result["columns"] is not None:
        print()
        lines = sorted(
            (_name(names, value, "target"), _name(names, value, "source"), names[value["pipeline"]])
            for value in result["columns"]
        )
        print_table(("column", "made of", "by"), lines, empty="What its columns are made of is not known.")
    if result["cut"]:
        print("There is more than this; ask for less with --depth or --direction.")


def _name(names: dict[str, str], edge: dict[str, Any], side: str) -> str:
    """A column with its table; all of them by a star."""
    if edge[side] is None:
        return "outside"
    column = edge[f"{side}_column"]
    return f"{names[edge[side]]}.{'*' if column is None else column}"
