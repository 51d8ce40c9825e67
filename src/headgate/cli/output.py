"""Output of commands: tables for people, JSON for programs, and error messages."""

import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, ParamSpec

import typer

if TYPE_CHECKING:
    from headgate.kit.errors import Problem

P = ParamSpec("P")
FAILED, MALFORMED = 1, 2
_UNUSUAL = re.compile(r"[^\n -~]")

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def print_error(message: str) -> None:
    """Print an error message."""
    print(f"error: {printable(message)}", file=sys.stderr)


def fail(message: str, status: int = FAILED) -> NoReturn:
    """Print an error message, and exit."""
    print_error(message)
    raise typer.Exit(status)


def printable(text: str) -> str:
    """Text without characters that control the terminal."""
    return "".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in text)


def print_json(value: Any) -> None:
    """Print a value as JSON, with control characters escaped."""
    text = json.dumps(value, indent=2, ensure_ascii=False, default=str)
    print(_UNUSUAL.sub(lambda match: match[0] if match[0].isprintable() else json.dumps(match[0])[1:-1], text))


def print_table(
    columns: Sequence[str], rows: Iterable[Sequence[Any]], *, empty: str = "Nothing.", verbatim: bool = False
) -> None:
    """Print a table, wrapped to the terminal; plain with upper-case headings if the output is not a terminal.
    `verbatim` headings are printed unchanged.
    """
    results, shown = [[_cell(value) for value in row] for row in rows], [_cell(column) for column in columns]
    if not results:
        print(printable(empty))
        return
    if not sys.stdout.isatty():
        widths = [max(len(row[n]) for row in [shown, *results]) for n in range(len(shown))]
        for row in [[column if verbatim else column.upper() for column in shown], *results]:
            print("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip())
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, header_style="bold", pad_edge=False)
    for column in shown:
        table.add_column(Text(column), overflow="fold")
    for row in results:
        table.add_row(*(Text(text) for text in row))
    Console().print(table)


def _cell(value: Any) -> str:
    if value is None:
        return "—"
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = ", ".join(str(value) for value in value) if isinstance(value, list | tuple) else str(value)
    return printable(text).replace("\n", "\N{REPLACEMENT CHARACTER}")


def _about_database(error: Exception) -> str:
    """The database error in one line, without the password."""
    cause = str(getattr(error, "orig", None) or error).strip().splitlines()[0]
    return f"cannot use the database: {cause}; check `database.url` in the settings, and that the database is running"


def _sentence(command: Callable[..., Any], error: "Problem") -> str:
    """The message of an API error, for the user of the command."""
    if error.status == 401 and error.code == "not_signed_in" and error.more:
        return f"{error.detail}. Set HEADGATE_TOKEN to a valid token, or run `headgate login`"
    if "request_id" not in error.more:
        return error.detail
    from headgate.cli.field_names import own_words, translated

    hint = _hint(error.more) if "ask" in error.more else ""
    return translated(error.more, error.detail, own_words(command)) + hint


def _hint(refusal: dict[str, Any]) -> str:
    """The command that requests the access that was refused."""
    from shlex import quote

    asked = f"{refusal['action']} {quote(str(refusal['resource']))}"
    return f"\n`headgate request make {asked} --reason …` requests access from the members who can grant it"


_MENDABLE = {
    "headgate.access.yaml_nodes": "WorldError",
    "headgate.settings.settings": "BadSettings",
    "headgate.kit.key_file": "BadKeyFile",
    "headgate.supervisor.preflight": "NotReady",
}
"""Errors with a message for the user, by module; a module is not imported just to catch its errors."""


def _mendable() -> tuple[type[Exception], ...]:
    return tuple(getattr(sys.modules[place], name) for place, name in _MENDABLE.items() if place in sys.modules)


def handle_errors(function: Callable[P, None]) -> Callable[P, None]:
    """Turn an expected error into a message and an exit status instead of a traceback."""

    @wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> None:
        from headgate.kit.errors import Invalid, Problem

        try:
            function(*args, **kwargs)
        except Problem as error:
            is_malformed = isinstance(error, Invalid) or error.status in (400, 422)
            fail(_sentence(function, error), MALFORMED if is_malformed else FAILED)
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        except OSError as error:
            fail(f"{error.filename or ''}: {error.strerror or error}".lstrip(": "), MALFORMED)
        except Exception as error:
            if type(error).__module__.startswith(("sqlalchemy", "psycopg")):
                fail(_about_database(error), MALFORMED)
            if isinstance(error, _mendable()):
                fail(str(error), MALFORMED)
            raise

    return wrapped
