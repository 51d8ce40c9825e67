"""What commands print: tables for people, JSON for programs, and errors that say what to do."""

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

Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]


def complain(message: str) -> None:
    """Say what is wrong."""
    print(f"error: {printable(message)}", file=sys.stderr)


def fail(message: str, status: int = FAILED) -> NoReturn:
    """Say what is wrong, and end."""
    complain(message)
    raise typer.Exit(status)


def printable(text: str) -> str:
    """Text that cannot steer the terminal."""
    return "".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in text)


def print_json(value: Any) -> None:
    """Print a value as JSON; what could steer the terminal is written as JSON escapes it."""
    text = json.dumps(value, indent=2, ensure_ascii=False, default=str)
    print(_UNUSUAL.sub(lambda match: match[0] if match[0].isprintable() else json.dumps(match[0])[1:-1], text))


def print_table(
    columns: Sequence[str], rows: Iterable[Sequence[Any]], *, empty: str = "Nothing.", verbatim: bool = False
) -> None:
    """Print rows under headings, wrapped to the terminal; plain when it is none, and then in capitals.

    `verbatim` headings are names of somebody's columns, and stay as they are.
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
    """What is wrong with the database, in one line, without its password."""
    cause = str(getattr(error, "orig", None) or error).strip().splitlines()[0]
    return f"the database cannot be used: {cause}; check `database.url` in the settings, and that it is running"


def _sentence(command: Callable[..., Any], error: "Problem") -> str:
    """A problem as whoever gave the command understands it."""
    if error.status == 401 and error.code == "not_signed_in" and error.more:
        return f"{error.detail}. Set HEADGATE_TOKEN to a valid token, or run `headgate login`"
    if "request_id" not in error.more:
        return error.detail
    from headgate.cli.field_names import own_words, translated

    hint = _hint(error.more) if "ask" in error.more else ""
    return translated(error.more, error.detail, own_words(command)) + hint


def _hint(refusal: dict[str, Any]) -> str:
    """How to ask for what was refused."""
    from shlex import quote

    asked = f"{refusal['action']} {quote(str(refusal['resource']))}"
    return f"\n`headgate request make {asked} --reason …` asks those who could grant it"


_MENDABLE = {
    "headgate.access.yaml_nodes": "WorldError",
    "headgate.settings.settings": "BadSettings",
    "headgate.kit.key_file": "BadKeyFile",
    "headgate.supervisor.preflight": "NotReady",
}
"""Errors whose message says what to do, by the modules that have them: most commands never load those."""


def _mendable() -> tuple[type[Exception], ...]:
    return tuple(getattr(sys.modules[place], name) for place, name in _MENDABLE.items() if place in sys.modules)


def told(function: Callable[P, None]) -> Callable[P, None]:
    """Turn what a person can mend into a sentence and an exit status, never a traceback."""

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
