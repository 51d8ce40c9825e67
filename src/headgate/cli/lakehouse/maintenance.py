"""`headgate maintenance`: start table maintenance and show its results."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from headgate.cli.commands import Client, command
from headgate.cli.output import Json, print_json, print_table, printable
from headgate.cli.paging import Cursor, print_page
from headgate.cli.progress_bar import ProgressBar

if TYPE_CHECKING:
    from headgate.client import Headgate

app = typer.Typer(help="Table maintenance.", no_args_is_help=True, rich_markup_mode=None)

FAILED, INTERRUPTED = 1, 130
OPEN = frozenset({"queued", "running", "compacting"})
PATIENCE = 15.0
_LOOK_EVERY = 0.5
_UNIT = 1024


@command(app)
def run(
    client: Client,
    table: Annotated[str | None, typer.Option("--table", help="Only this table, by layer.name or id.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only report what would be done.")] = False,
    as_json: Json = False,
) -> None:
    """Expire snapshots, remove orphaned files and compact small files, as the settings say. For admins."""
    asked = client.request("POST", "/api/maintenance/passes", {"table": table, "dry_run": dry_run})
    values = _watch(client, asked["id"])
    _print(values, as_json=as_json)
    if values["state"] != "succeeded":
        raise typer.Exit(FAILED)


def _watch(client: "Headgate", pass_id: str) -> dict[str, Any]:
    """Follow a maintenance pass until it ends. Ctrl-C leaves it running."""
    import time

    patience = time.monotonic() + PATIENCE
    with ProgressBar() as bar:
        try:
            while True:
                response: dict[str, Any] = client.get(f"/api/maintenance/passes/{pass_id}")
                if response["state"] not in OPEN:
                    return response
                if response["state"] == "queued" and time.monotonic() > patience:
                    patience = float("inf")
                    bar.line(
                        "The pass is queued. It starts after the current pass, and needs the scheduler of "
                        "`headgate up`."
                    )
                left = response["summary"]["compactions_open"]
                more = f", {left} to compact" if left else ""
                done, total = response["looked_at"], response["tables"]
                bar.draw(response["state"], done, total, f"{done}/{total} tables{more}")
                time.sleep(_LOOK_EVERY)
        except KeyboardInterrupt:
            bar.line(f"The pass continues; `headgate maintenance show {pass_id}` shows its results.")
            raise typer.Exit(INTERRUPTED) from None


@command(app, "list")
def list_(client: Client, cursor: Cursor = None, as_json: Json = False) -> None:
    """List maintenance passes, scheduled and manual, newest first."""
    response = client.get("/api/maintenance/passes", **({"cursor": cursor} if cursor else {}))
    rows = (
        (value["id"], value["asked_at"], value["state"], value["dry_run"], *_counts(value["summary"]))
        for value in response["items"]
    )
    columns = ("pass", "asked", "state", "dry run", "snapshots", "files removed", "bytes freed", "tables compacted")
    print_page(response, columns, rows, "There are no maintenance passes yet.", as_json=as_json)


def _counts(summary: dict[str, Any]) -> tuple[Any, ...]:
    sizes = _size(summary["bytes_removed"])
    return summary["snapshots_expired"], summary["files_removed"], sizes, summary["tables_compacted"]


@command(app)
def show(
    client: Client,
    pass_id: Annotated[str, typer.Argument(metavar="PASS", help="The id of the pass.")],
    as_json: Json = False,
) -> None:
    """Show the results of a maintenance pass, table by table."""
    response = client.get(f"/api/maintenance/passes/{pass_id}")
    _print(response, as_json=as_json)


def _print(result: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(result)
        return
    print(f"Pass {result['id']}: {result['state']}; {result['looked_at']} of {result['tables']} tables checked.")
    if result["error"]:
        print(printable(result["error"]))
    rows = [
        (
            entry["name"] or entry["table"],
            entry["outcome"],
            entry["snapshots"],
            entry["files"],
            _size(entry["bytes"]),
            _rewritten(entry),
        )
        for entry in result["items"]
    ]
    columns = ("table", "outcome", "snapshots", "files removed", "bytes freed", "files rewritten")
    print_table(columns, rows, empty="No table needed maintenance.")
    for value in result["items"]:
        if value["note"]:
            print(printable(f"{value['name'] or value['table']}: {value['note']}"))
    print(_summed(result["summary"], result["dry_run"]))


def _rewritten(table: dict[str, Any]) -> str | None:
    if table["compaction"] == "done":
        return f"{table['files_before']} into {table['files_after']}"
    return f"{table['small_files']} {table['compaction']}" if table["compaction"] else None


def _summed(summary: dict[str, Any], dry_run: bool) -> str:
    would = "Would expire" if dry_run else "Expired"
    text = (
        f"{would} {summary['snapshots_expired']} snapshots, "
        f"{'remove' if dry_run else 'removed'} {summary['files_removed']} files ({_size(summary['bytes_removed'])})"
    )
    if dry_run:
        return f"{text}, and compact {summary['compactions_planned']} tables."
    files = f" ({summary['files_before']} files into {summary['files_after']})" if summary["tables_compacted"] else ""
    return f"{text}, and compacted {summary['tables_compacted']} tables{files}."


def _size(count: int) -> str:
    size = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < _UNIT:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= _UNIT
    return f"{size:.1f} TiB"
