"""`headgate maintenance`: maintain tables now, and see what was done."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from headgate.cli.output import Json, print_json, print_table, printable, told
from headgate.cli.paging import Cursor, print_page
from headgate.cli.progress_bar import ProgressBar

if TYPE_CHECKING:
    from headgate.client import Headgate

app = typer.Typer(help="Maintenance of tables.", no_args_is_help=True, rich_markup_mode=None)

FAILED, INTERRUPTED = 1, 130
OPEN = frozenset({"queued", "running", "compacting"})
PATIENCE = 15.0
_LOOK_EVERY = 0.5
_UNIT = 1024


@app.command()
@told
def run(
    table: Annotated[str | None, typer.Option("--table", help="Only this table, by layer.name or id.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only find out what there is to do.")] = False,
    as_json: Json = False,
) -> None:
    """Expire snapshots, remove orphaned files and rewrite small ones, as the settings say. For admins."""
    from headgate.cli.client import connect

    with connect() as client:
        asked = client.request("POST", "/api/maintenance/passes", {"table": table, "dry_run": dry_run})
        values = _watch(client, asked["id"])
    _print(values, as_json=as_json)
    if values["state"] != "succeeded":
        raise typer.Exit(FAILED)


def _watch(client: "Headgate", pass_id: str) -> dict[str, Any]:
    """Follow a pass to its end. Breaking off leaves it running."""
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
                    bar.line("It waits for another pass, or for the scheduler of `headgate up`, which must run.")
                left = response["summary"]["compactions_open"]
                more = f", {left} to rewrite" if left else ""
                done, total = response["looked_at"], response["tables"]
                bar.draw(response["state"], done, total, f"{done}/{total} tables{more}")
                time.sleep(_LOOK_EVERY)
        except KeyboardInterrupt:
            bar.line(f"It goes on; `headgate maintenance show {pass_id}` tells what it did.")
            raise typer.Exit(INTERRUPTED) from None


@app.command("list")
@told
def list_(cursor: Cursor = None, as_json: Json = False) -> None:
    """The newest passes, by schedule and by hand."""
    from headgate.cli.client import connect

    with connect() as client:
        response = client.get("/api/maintenance/passes", **({"cursor": cursor} if cursor else {}))
    rows = (
        (value["id"], value["asked_at"], value["state"], value["dry_run"], *_counts(value["summary"]))
        for value in response["items"]
    )
    columns = ("pass", "asked", "state", "dry run", "snapshots", "files removed", "bytes freed", "tables compacted")
    print_page(response, columns, rows, "No table was maintained yet.", as_json=as_json)


def _counts(summary: dict[str, Any]) -> tuple[Any, ...]:
    sizes = _size(summary["bytes_removed"])
    return summary["snapshots_expired"], summary["files_removed"], sizes, summary["tables_compacted"]


@app.command()
@told
def show(
    pass_id: Annotated[str, typer.Argument(metavar="PASS", help="The pass, by id.")], as_json: Json = False
) -> None:
    """What a pass did to which table."""
    from headgate.cli.client import connect

    with connect() as client:
        response = client.get(f"/api/maintenance/passes/{pass_id}")
    _print(response, as_json=as_json)


def _print(result: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(result)
        return
    print(f"Pass {result['id']}: {result['state']}; {result['looked_at']} of {result['tables']} tables looked at.")
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
    print_table(columns, rows, empty="There was nothing to do.")
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
        return f"{text}, and rewrite {summary['compactions_planned']} tables."
    files = f" ({summary['files_before']} files into {summary['files_after']})" if summary["tables_compacted"] else ""
    return f"{text}, and rewrote {summary['tables_compacted']} tables{files}."


def _size(count: int) -> str:
    size = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < _UNIT:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= _UNIT
    return f"{size:.1f} TiB"
