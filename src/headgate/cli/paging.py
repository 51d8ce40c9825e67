"""Options that select a page of a list, and the output of a page."""

from collections.abc import Iterable, Sequence
from typing import Annotated, Any

import typer

from headgate.cli.output import print_json, print_table

Prefix = Annotated[str, typer.Option(help="Only names that start with this.")]
Limit = Annotated[int, typer.Option(min=1, max=200, help="Maximum number of items on a page.")]
Cursor = Annotated[str | None, typer.Option(help="The cursor printed below the previous page.")]


def print_page(
    result: Any, columns: Sequence[str], rows: Iterable[Sequence[Any]], empty: str = "Nothing.", *, as_json: bool
) -> None:
    """Print a page of a list, and the cursor of the next page."""
    if as_json:
        print_json(result)
        return
    print_table(columns, rows, empty=empty)
    print_more(result)


def print_more(result: Any) -> None:
    """Print the cursor of the next page, if there is one."""
    if result["next_cursor"]:
        print(f"more: --cursor {result['next_cursor']}")
