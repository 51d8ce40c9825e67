"""Commands speak of their own options and arguments, and name what was asked for; never of the fields of the API."""

from pathlib import Path
from typing import Annotated

import pytest
import typer

from headgate.cli.field_names import SentAs, own_words, translated
from headgate.cli.main import app
from tests.organization.profile.support import Commands
from tests.support.company import Company

ZEROS = "0" * 20


def command(
    text: Annotated[str, typer.Argument(metavar="SQL"), SentAs("sql")],
    statement: Annotated[str, typer.Argument()],
    as_of: Annotated[str, typer.Option()] = "",
    column: Annotated[str, typer.Option()] = "",
    as_: Annotated[str, typer.Option("-f", "--format")] = "",
    plain: str = "",
) -> None:
    """A command."""


def test_a_command_knows_what_it_calls_a_field() -> None:
    assert own_words(command) == {
        "text": "SQL",
        "sql": "SQL",
        "statement": "STATEMENT",
        "as_of": "--as-of",
        "column": "--column",
        "as": "--format",
    }


@pytest.mark.parametrize(
    ("detail", "says"),
    [
        ("sql: is empty", "SQL: is empty"),
        ("statement_id: is not an id", "STATEMENT: is not an id"),
        ("columns: unknown column", "--column: unknown column"),
        ("as_of: too early", "--as-of: too early"),
        ("colour: is not known", "colour: is not known"),
        ("The file exists; `as_of` helps, `headgate x` too", "The file exists; --as-of helps, `headgate x` too"),
        ("Note: text", "Note: text"),
    ],
)
def test_what_a_server_says_is_translated(detail: str, says: str) -> None:
    assert translated({}, detail, own_words(command)) == says


def test_several_slips_are_translated_each() -> None:
    places = ("sql", "fields.0.column", "statement.host", "columns.3", "place.host")
    errors = [{"place": place, "message": "is odd"} for place in places]
    said = translated({"errors": errors}, "", own_words(command))
    assert [one.removesuffix(": is odd") for one in said.split("; ")] == [
        "SQL", "--column", "STATEMENT host", "--column", "place.host",
    ]  # fmt: skip


@pytest.fixture
def run(millrace_on_sqlite: Company, monkeypatch: pytest.MonkeyPatch) -> Commands:
    return Commands(millrace_on_sqlite, app, monkeypatch)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("sql", ""), "SQL: is empty"),
        (("saved", "save", "x", ""), "SQL: is empty"),
        (("grant", "boss", "table:raw.orders", "Bea"), "LEVEL: must be viewer, editor or manager"),
        (("grant", "viewer", "table:raw.orders", "Bea", "--until", "soon"), "--until: must be a time with a time zone"),
        (("resource", "list", "castle"), "KIND: must be storage"),
        (("statement", "show", "7"), "STATEMENT: is not an id; one looks like stm_"),
        (("table", "preview", "raw.orders", "--as-of", "soon"), "--as-of: must be a time"),
        (("access", "change", "grant", "tos=Ana"), "tos: is an unknown field; did you mean to?"),
        (("member", "set-scope", "Ben", "some"), "SCOPE: must be entire or selected"),
    ],
)
def test_slips_are_told_of_options_and_arguments(run: Commands, arguments: tuple[str, ...], says: str) -> None:
    done = run("Adam", *arguments)
    assert (done.exit_code, done.output.startswith(f"error: {says}")) == (2, True), done.output


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("grant", "viewer", "table:raw.nope", "Bea"), "no table raw.nope "),
        (("access", "explain", "edit", "data_mart:Nope"), "no data mart Nope "),
        (("request", "make", "edit", "table:raw.nope", "--reason", "x"), "no table raw.nope "),
        (("request", "show", f"req_{ZEROS}"), f"no request req_{ZEROS} "),
        (("resource", "get", "data_mart:Nope"), "no data mart called 'Nope' "),
        (("resource", "get", f"tbl_{ZEROS}"), f"no table tbl_{ZEROS} "),
        (("statement", "show", f"stm_{ZEROS}"), f"no statement stm_{ZEROS} "),
        (("statement", "results", f"stm_{ZEROS}"), f"no statement stm_{ZEROS} "),
        (("saved", "show", f"sq_{ZEROS}"), f"no saved query sq_{ZEROS} "),
        (("table", "rename", "raw.orders", "nope.orders"), "no layer nope "),
        (("table", "list", "--layer", "nope"), "no layer nope "),
        (("volume", "files", "volume:raw.nope"), "no volume raw.nope "),
        (("volume", "get", "volume:raw.invoices/nope.csv"), "no file 'nope.csv' in this volume"),
        (("volume", "rm", "volume:raw.invoices/nope.csv"), "no file 'nope.csv' in this volume"),
        (("my", "end-token", f"tok_{ZEROS}"), f"no token tok_{ZEROS} "),
    ],
)
def test_what_is_not_there_is_named(run: Commands, arguments: tuple[str, ...], says: str) -> None:
    done = run("Tess", *arguments)
    assert (done.exit_code, says in done.output, "does not exist" in done.output) == (1, True, False), done.output


def test_a_file_that_is_there_is_replaced_by_the_commands_own_option(run: Commands, tmp_path: Path) -> None:
    (tmp_path / "f.txt").write_text("hi")
    given = ("volume", "put", str(tmp_path / "f.txt"), "volume:raw.invoices")
    assert run("Tess", *given).exit_code == 0
    assert "error: The file 'f.txt' already exists; set --overwrite to replace it" in run("Tess", *given).output
    assert run("Tess", *given, "--overwrite").exit_code == 0
