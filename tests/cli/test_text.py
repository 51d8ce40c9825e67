"""Text that is not UTF-8, on the command line, in files and on standard input: a sentence, and never a traceback."""

import subprocess
import sys
from pathlib import Path

import pytest

from headgate.kit.credentials import Sort, new_secret
from tests.support.command import run
from tests.support.installation import Installation

BAD = b"\xff\xfes\x00"
NOWHERE = {"HEADGATE_SERVER_URL": "http://127.0.0.1:1"}


def said(folder: Path, *arguments: str | bytes, given: bytes = b"", **environment: str) -> tuple[int, str]:
    """Status and output of a command in a process of its own, whose locale Python reads as it starts."""
    done = subprocess.run(
        [sys.executable, "-m", "headgate.cli.main", *arguments],
        env=_environment(folder, environment),
        cwd=folder,
        capture_output=True,
        input=given,
        check=False,
        timeout=60,
    )
    return _checked(done.returncode, (done.stdout + done.stderr).decode())


def _environment(folder: Path, more: dict[str, str]) -> dict[str, str]:
    return {**Installation(folder).environment, **NOWHERE, "HEADGATE_TOKEN": new_secret(Sort.token), **more}


def _checked(status: int, text: str) -> tuple[int, str]:
    assert "Traceback" not in text, text
    return status, text


def said_here(folder: Path, *arguments: str | bytes, **environment: str) -> tuple[int, str]:
    """Status and output of a command in this process."""
    done = run(arguments, _environment(folder, environment), folder)
    return _checked(done.returncode, done.stdout + done.stderr)


@pytest.mark.processes
@pytest.mark.parametrize("command", [("sql",), ("saved", "save", "x")])
def test_sql_that_is_not_utf_8_is_said(tmp_path: Path, command: tuple[str, ...]) -> None:
    (tmp_path / "bad.sql").write_bytes(BAD)
    says = "error: {} is not UTF-8 text; save it as UTF-8\n"
    assert said_here(tmp_path, *command, "-f", "bad.sql") == (2, says.format("bad.sql"))
    for locale in ("C.UTF-8", "C"):
        assert said(tmp_path, *command, "-", given=BAD, LC_ALL=locale) == (2, says.format("standard input"))


@pytest.mark.processes
def test_a_password_that_is_not_utf_8_is_said(tmp_path: Path) -> None:
    for locale in ("C.UTF-8", "C"):
        found = said(tmp_path, "login", "--email", "a@b.example", "--password-stdin", given=BAD, LC_ALL=locale)
        assert found == (2, "error: standard input is not UTF-8 text; convert it to UTF-8\n")


@pytest.mark.parametrize(
    "arguments",
    [
        ("table", "show", b"raw.\xff"),
        ("sql", b"select '\xff'"),
        ("saved", "save", b"\xff", "select 1"),
        ("layer", "describe", "raw", "--title", b"\xff"),
        (b"\xff",),
    ],
)
def test_arguments_that_are_not_utf_8_are_said_here(tmp_path: Path, arguments: tuple[str | bytes, ...]) -> None:
    status, text = said_here(tmp_path, *arguments)
    assert (status, text.startswith("error: the argument "), "\ufffd" in text) == (2, True, True), text
    assert "is not UTF-8 text" in text
    assert len(text.splitlines()) == 1


def test_a_token_with_a_slip_is_told_from_what_is_none(tmp_path: Path) -> None:
    for sort, variable, command in (
        (Sort.token, "HEADGATE_TOKEN", "me"),
        (Sort.worker, "HEADGATE_WORKER_TOKEN", "worker"),
    ):
        secret = new_secret(sort)
        slip = secret[:-1] + ("a" if secret[-1] != "a" else "b")
        status, text = said_here(tmp_path, command, **{variable: slip})
        assert (status, "the checksum of the" in text, slip in text) == (2, True, False), text
        status, text = said_here(tmp_path, command, **{variable: secret[:-1]})
        assert (status, f"{variable} is not a" in text, secret[:-1] in text) == (2, True, False), text


def test_sql_is_given_once(tmp_path: Path) -> None:
    (tmp_path / "good.sql").write_text("SELECT 1")
    found = said_here(tmp_path, "sql", "SELECT 2", "-f", "good.sql")
    assert found == (2, "error: give the SQL or --file, not both\n")
    assert said_here(tmp_path, "sql") == (
        2, "error: give the SQL, --file with a file that contains it, or - for standard input\n"
    )  # fmt: skip


@pytest.mark.processes
def test_a_process_is_given_an_argument_that_is_not_utf_8(tmp_path: Path) -> None:
    arguments = ("sql", b"select '\xff'")
    assert said(tmp_path, *arguments) == said_here(tmp_path, *arguments)
