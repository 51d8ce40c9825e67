"""What commands print: headings, rows and files."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from headgate.cli.output import print_json, print_table
from headgate.kit.credentials import Sort, new_secret
from tests.support.installation import Installation


def test_our_headings_are_in_capitals_and_names_of_columns_stay(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("name", "created by"), [("a", "Ana")])
    assert capsys.readouterr().out == "NAME  CREATED BY\na     Ana\n"
    print_table(("regionName", "n"), [("north", 1)], verbatim=True)
    assert capsys.readouterr().out == "regionName  n\nnorth       1\n"


def test_no_heading_steers_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("a\x1b[31m",), [(1,)], verbatim=True)
    print_table(("a",), [], empty="No rows. Columns: a\x1b[31m")
    assert "\x1b" not in capsys.readouterr().out


def test_nothing_in_a_list_steers_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("names",), [(["\x1b[2J", "line\nbreak"],)])
    assert capsys.readouterr().out.splitlines() == ["NAMES", "\ufffd[2J, line\ufffdbreak"]


def test_json_says_everything_and_steers_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    value = {
        "a\x9b2J": ["\x1b[31m", "\x7f", "\u202eback", "line\u2028end", "\U000e0041", "Käse, 粉, 🥖", "line\nbreak"]
    }
    print_json(value)
    said = capsys.readouterr().out
    assert json.loads(said) == value
    assert all(one.isprintable() for one in said.splitlines())
    assert "Käse, 粉, 🥖" in said


@pytest.mark.processes
@pytest.mark.parametrize("command", [("sql", "SELECT 1"), ("statement", "results", "stm_x"), ("saved", "run", "x")])
@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_bytes_are_not_written_to_a_terminal(tmp_path: Path, command: tuple[str, ...], form: str) -> None:
    own, terminal = pty.openpty()
    asked = {"HEADGATE_TOKEN": new_secret(Sort.token), "HEADGATE_SERVER_URL": "http://127.0.0.1:1"}

    def run(stdout: int, *more: str) -> tuple[int, str]:
        done = subprocess.run(
            [sys.executable, "-m", "headgate.cli.main", *command, "--format", form, *more],
            env={**Installation(tmp_path).environment, **asked},
            cwd=tmp_path,
            stdout=stdout,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
        return done.returncode, done.stderr

    try:
        says = (
            f"error: --format {form} is binary and cannot be printed on a terminal: use -o FILE, or pipe it to "
            "another program\n"
        )
        assert run(terminal) == (2, says)
        for stdout, more in ((terminal, ("-o", "rows")), (subprocess.PIPE, ())):
            assert "cannot reach" in run(stdout, *more)[1]
    finally:
        os.close(own)
        os.close(terminal)
