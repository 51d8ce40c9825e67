"""`headgate sql` and `headgate statement`: run SQL, follow statements, cancel them, and fetch their rows."""

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headgate.cli.commands import Client, command
from headgate.cli.field_names import SentAs
from headgate.cli.output import Json, handle_errors, print_json, print_table
from headgate.cli.paging import Cursor, Limit, print_page
from headgate.cli.progress_bar import ProgressBar

if TYPE_CHECKING:
    from headgate.client import Headgate

app = typer.Typer(help="Your statements.", no_args_is_help=True, rich_markup_mode=None)

SHOWN = 1000
"""Default limit of rows for a table on the terminal."""
INTERRUPTED, TERMINATED = 130, 143

Statement = Annotated[str, typer.Argument(help="The statement, by id.")]


class Format(StrEnum):
    """Output formats of rows."""

    table = "table"
    csv = "csv"
    json = "json"
    arrow = "arrow"
    parquet = "parquet"


BINARY = frozenset({Format.arrow, Format.parquet})
"""Binary formats, which cannot be printed on a terminal."""

Sql = Annotated[str | None, typer.Argument(metavar="SQL", help="The SQL. Use - to read standard input."), SentAs("sql")]
SqlFile = Annotated[Path | None, typer.Option("--file", "-f", help="Read the SQL from a file.")]
Most = Annotated[int | None, typer.Option("--limit", min=1, help="Keep at most this many rows."), SentAs("max_rows")]
As = Annotated[Format, typer.Option("--format", help="The output format.")]
Output = Annotated[
    Path | None, typer.Option("--output", "-o", help="Write the rows to a file instead of standard output.")
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace an existing file.")]


@handle_errors
def sql(
    text: Sql = None,
    file: SqlFile = None,
    limit: Most = None,
    as_: As = Format.table,
    output: Output = None,
    overwrite: Overwrite = False,
) -> None:
    """Run SQL as yourself and print its rows. Ctrl-C cancels the statement. A table on the terminal has at most 1,000
    rows unless --limit is given; other formats have all rows that the server keeps.
    """
    from headgate.cli.client import connect

    statement = sql_text(text, file)
    check_output(as_, output, overwrite=overwrite)
    most = limit or (SHOWN if as_ is Format.table and output is None else None)
    with connect() as client:
        values = follow(client, statement, most)
        write_rows(client, values, as_, output)


def sql_text(text: str | None, file: Path | None) -> str:
    """The SQL from the argument, a file, or standard input."""
    from headgate.cli.text_input import text_of
    from headgate.kit.errors import Invalid

    if text is not None and file is not None:
        raise Invalid("give the SQL or --file, not both")
    if text is None and file is None:
        raise Invalid("give the SQL, --file with a file that contains it, or - for standard input")
    return text_of(file) if text is None or text == "-" else text


def check_free(output: Path | None, *, overwrite: bool) -> None:
    """Refuse to overwrite an existing file without --overwrite, before anything runs."""
    from headgate.kit.errors import Conflict

    if output is not None and output.is_file() and not overwrite:
        raise Conflict(f"{output} already exists; --overwrite replaces it")


def check_output(as_: Format, output: Path | None, *, overwrite: bool) -> None:
    """Refuse to overwrite a file, and to write binary formats to a terminal."""
    from headgate.kit.errors import Invalid

    check_free(output, overwrite=overwrite)
    if output is None and as_ in BINARY and sys.stdout.isatty():
        raise Invalid(
            f"--format {as_.value} is binary and cannot be printed on a terminal: use -o FILE, or pipe it to "
            "another program"
        )


class _Terminated(KeyboardInterrupt):
    """SIGTERM was received, as from `timeout` or a service manager."""


@contextmanager
def _breaking_off() -> Iterator[None]:
    """Handle SIGTERM like Ctrl-C inside the block."""

    def terminate(*_: object) -> None:
        # `timeout` sends it twice, to the process and to its group; the second must not break the cancelling off.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise _Terminated

    before = signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def follow(client: "Headgate", statement: str, limit: int | None) -> dict[str, Any]:
    """Wait until the statement ends, and return it. An interrupt cancels it on the server."""
    from headgate.client.statements import run

    try:
        with _breaking_off(), _StatementBar() as bar:
            return run(client, statement, limit, watch=bar.show)
    except KeyboardInterrupt as error:
        print("Cancelled.", file=sys.stderr)
        raise typer.Exit(TERMINATED if isinstance(error, _Terminated) else INTERRUPTED) from None


class _StatementBar(ProgressBar):
    """The progress bar of a statement; prints nothing if the output is not a terminal."""

    def show(self, result: dict[str, Any]) -> None:
        """Draw the current progress."""
        far = result["progress"] or {"stages": [], "tasks_done": 0, "tasks_total": 0, "bytes_read": 0}
        stages, tasks = far["stages"], f"{far['tasks_done']}/{far['tasks_total']} tasks"
        done = sum(1 for stage in stages if stage["complete"])
        more = f"{tasks}, stage {min(done + 1, len(stages))} of {len(stages)}" if stages else ""
        self.draw(result["state"], far["tasks_done"], far["tasks_total"], more)


def write_rows(client: "Headgate", result: dict[str, Any], as_: Format, output: Path | None) -> None:
    """Write the rows of a successful statement."""
    writers: dict[Format, Callable[[], None]] = {
        Format.table: lambda: _print(client, result),
        Format.json: lambda: print_json(_as_json(client, result)),
        Format.csv: lambda: _save(client, result, as_, output),
        Format.parquet: lambda: _save(client, result, as_, output),
        Format.arrow: lambda: _save_arrow(client, result, output),
    }
    if output is not None and as_ in (Format.table, Format.json):
        import json

        output.write_text(json.dumps(_as_json(client, result), indent=2, ensure_ascii=False), encoding="utf-8")
    else:
        writers[as_]()
    if output is not None:
        count = 0 if result["withheld"] else result["rows"] or 0
        print(f"Wrote {_count(count)} to {output}.", file=sys.stderr)
    if result["truncated"]:
        print(f"The result was cut to {result['rows']:,} rows, by --limit or a setting of the server.", file=sys.stderr)


def _rows(client: "Headgate", result: dict[str, Any]) -> list[list[Any]]:
    from headgate.client.statements import Rows

    return list(map(list, Rows(client, result)))


def _as_json(client: "Headgate", result: dict[str, Any]) -> dict[str, Any]:
    return {"columns": result["columns"], "rows": _rows(client, result), "truncated": result["truncated"]}


def _print(client: "Headgate", result: dict[str, Any]) -> None:
    if result["withheld"]:
        print("You no longer have read access to a table that these rows come from.")
        return
    if not result["columns"]:
        print(" ".join(["Done.", *filter(None, map(_written, result["writes"]))]))
        return
    names = [value["name"] for value in result["columns"]]
    print_table(names, _rows(client, result), empty=f"No rows. Columns: {', '.join(names)}", verbatim=True)


def _written(write: dict[str, Any]) -> str | None:
    """A sentence with the numbers of rows that a commit added and removed, if the table reports them."""
    table = write["table"] or "a table that you can no longer see"
    added, removed = write["added_rows"], write["deleted_rows"]
    if added and removed:
        # Whole files are written anew; how many rows of them differ is not known.
        return f"In {table}, files with {_count(removed)} were replaced by files with {_count(added)}."
    if added:
        return f"Added {_count(added)} to {table}."
    return f"Removed {_count(removed)} from {table}." if removed else None


def _count(rows: int) -> str:
    return f"{rows:,} row{'' if rows == 1 else 's'}"


def _sink(output: Path | None) -> Any:
    from contextlib import nullcontext

    return output.open("wb") if output else nullcontext(sys.stdout.buffer)


def _save(client: "Headgate", result: dict[str, Any], as_: Format, output: Path | None) -> None:
    with _sink(output) as sink:
        for part in client.read(f"/api/sql/statements/{result['id']}/download", format=as_.value):
            sink.write(part)
        sink.flush()


def _save_arrow(client: "Headgate", result: dict[str, Any], output: Path | None) -> None:
    import pyarrow as pa

    from headgate.client.statements import Rows

    writer = None
    with _sink(output) as sink:
        for table in Rows(client, result).arrow_pages():
            writer = writer or pa.ipc.new_stream(sink, table.schema)
            writer.write_table(table)
        if writer is not None:
            writer.close()


@command(app, "list")
def list_statements(
    client: Client,
    active: Annotated[bool, typer.Option("--active", help="Only queued or running statements.")] = False,
    limit: Limit = 50,
    cursor: Cursor = None,
    as_json: Json = False,
) -> None:
    """List your statements, newest first."""
    response = client.get("/api/sql/statements", active=active, limit=limit, cursor=cursor)
    rows = (
        (value["submitted_at"][:19], value["state"], value["rows"], _short(value["sql"]), value["id"])
        for value in response["items"]
    )
    empty = "No statement is queued or running." if active else "You have no statements."
    print_page(response, ("submitted", "state", "rows", "sql", "id"), rows, empty, as_json=as_json)


def _short(sql: str) -> str:
    flat = " ".join(sql.split())
    return flat if len(flat) <= 60 else f"{flat[:59]}…"


@command(app)
def show(client: Client, statement: Statement, as_json: Json = False) -> None:
    """Show the state of a statement."""
    response = client.get(f"/api/sql/statements/{statement}")
    if as_json:
        print_json(response)
        return
    hidden = {"data", "columns", "progress", "error", "writes"}
    rows = [(name, value) for name, value in response.items() if name not in hidden]
    rows += [("wrote", told) for told in map(_written, response["writes"]) if told]
    if response["error"]:
        rows.append(("error", f"[{response['error']['code']}] {response['error']['message']}"))
    print_table(("field", "value"), rows)


@command(app)
def cancel(client: Client, statement: Statement, as_json: Json = False) -> None:
    """Cancel a statement. Nothing is committed for it any more, and Spark stops it."""
    from headgate.client.statements import FINAL
    from headgate.client.statements import cancel as stop

    state = client.get(f"/api/sql/statements/{statement}")["state"]
    is_late = state in FINAL
    if not is_late:
        state = stop(client, statement)
        # It may have come to its own end in between.
        is_late = state in FINAL - {"cancelled"}
    if as_json:
        print_json({"id": statement, "state": state})
    else:
        print(f"The statement has already ended ({state})." if is_late else f"The statement is {state}.")


@command(app)
def results(
    client: Client, statement: Statement, as_: As = Format.table, output: Output = None, overwrite: Overwrite = False
) -> None:
    """Print the rows of an earlier statement. They must still be stored, and you need read access to its tables."""
    from headgate.kit.errors import Conflict

    check_output(as_, output, overwrite=overwrite)
    response = client.get(f"/api/sql/statements/{statement}")
    if response["state"] != "succeeded":
        raise Conflict(f"this statement has no rows; its state is {response['state']}")
    client.get(f"/api/sql/statements/{statement}/pages/0")
    write_rows(client, response, as_, output)


@command(app)
def delete(client: Client, statement: Statement, as_json: Json = False) -> None:
    """Delete a statement and its rows from your history."""
    result = client.request("DELETE", f"/api/sql/statements/{statement}")
    if as_json:
        print_json(result)
    else:
        print("Deleted.")
