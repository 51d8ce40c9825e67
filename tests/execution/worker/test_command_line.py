"""`headgate sql` and `headgate statement` against a server, with an engine that stands in for Spark."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.execution.worker.support import StandIn, done, served, working
from tests.lakehouse.sql.support import STATEMENTS
from tests.support import command
from tests.support.company import Company
from tests.support.installation import Installation, eventually


@dataclass
class Terminal:
    """Where Tess types commands."""

    millrace: Company
    folder: Path
    environment: dict[str, str]

    def headgate(self, *arguments: str) -> tuple[int, str, str]:
        ended = command.run(arguments, self.environment, self.folder)
        assert "Traceback" not in ended.stderr, ended.stderr
        return ended.returncode, ended.stdout, ended.stderr

    def start(self, *arguments: str, before: tuple[str, ...] = ()) -> "subprocess.Popen[str]":
        line = [*before, sys.executable, "-m", "headgate.cli.main", *arguments]
        pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        return subprocess.Popen(line, env=self.environment, cwd=self.folder, **pipes)

    def statements(self, **more: Any) -> list[dict[str, Any]]:
        return list(self.millrace.as_("Tess").get(STATEMENTS, **more).json()["items"])


@pytest.fixture
def terminal(millrace_on_sqlite: Company, tmp_path: Path) -> Iterator[Terminal]:
    folder = tmp_path / "here"
    folder.mkdir()
    with served(millrace_on_sqlite) as address, working(millrace_on_sqlite, address, StandIn()):
        named = {"HEADGATE_SERVER_URL": address, "HEADGATE_TOKEN": millrace_on_sqlite.token("Tess")}
        yield Terminal(millrace_on_sqlite, folder, {**Installation(folder).environment, **named})


@pytest.mark.processes
@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_command_that_is_ended_cancels_its_statement(terminal: Terminal, number: int, status: int) -> None:
    process = terminal.start("sql", "sleep 60")
    eventually(lambda: [one for one in terminal.statements(active=True) if one["state"] == "running"])
    (statement,) = terminal.statements(active=True)
    os.kill(process.pid, number)
    _, told = process.communicate(timeout=60)
    assert (process.returncode, told) == (status, "Cancelled.\n")
    assert done(terminal.millrace, "Tess", statement["id"])["state"] == "cancelled"


@pytest.mark.processes
def test_timeout_cancels_the_statement_though_it_asks_twice(terminal: Terminal) -> None:
    process = terminal.start("sql", "sleep 60", before=("timeout", "5"))
    eventually(terminal.statements)
    (statement,) = terminal.statements()
    _, told = process.communicate(timeout=60)
    assert (process.returncode, told) == (124, "Cancelled.\n")
    assert done(terminal.millrace, "Tess", statement["id"])["state"] == "cancelled"


def test_a_file_is_replaced_only_when_asked(terminal: Terminal) -> None:
    file = terminal.folder / "rows.out"
    for kind in ("csv", "json", "table", "arrow", "parquet"):
        file.write_bytes(b"precious")
        ran = len(terminal.statements())
        status, _, told = terminal.headgate("sql", "rows 3", "--format", kind, "-o", "rows.out")
        assert (status, told) == (1, "error: rows.out already exists; --overwrite replaces it\n")
        assert (file.read_bytes(), len(terminal.statements())) == (b"precious", ran)
        found = terminal.headgate("sql", "rows 3", "--format", kind, "-o", "rows.out", "--overwrite")
        assert found == (0, "", "Wrote 3 rows to rows.out.\n")
        assert b"precious" not in file.read_bytes()
    statement = terminal.statements()[0]["id"]
    assert terminal.headgate("statement", "results", statement, "--format", "csv", "-o", "rows.out")[0] == 1
    found = terminal.headgate("statement", "results", statement, "--format", "csv", "-o", "new.csv")
    assert (found, (terminal.folder / "new.csv").read_bytes()) == (
        (0, "", "Wrote 3 rows to new.csv.\n"), b"n\r\n0\r\n1\r\n2\r\n"
    )  # fmt: skip
    assert terminal.headgate("sql", "rows 1", "--format", "csv", "-o", "/dev/null")[0] == 0


def test_what_is_said_of_statements(terminal: Terminal) -> None:
    assert terminal.headgate("statement", "list")[1] == "You have no statements.\n"
    assert terminal.headgate("statement", "list", "--active")[1] == "No statement is queued or running.\n"
    status, _, told = terminal.headgate("statement", "show", "stm_nope")
    assert (status, "one looks like stm_" in told) == (2, True), told
    assert terminal.headgate("sql", "rows 1")[0] == 0
    statement = terminal.statements()[0]["id"]
    assert terminal.headgate("statement", "cancel", statement)[:2] == (
        0,
        "The statement has already ended (succeeded).\n",
    )
    as_json = terminal.headgate("statement", "cancel", statement, "--json")[1]
    assert json.loads(as_json) == {"id": statement, "state": "succeeded"}
    assert terminal.millrace.as_("Tess").post(STATEMENTS, {"sql": "sleep 60"}).status_code == 200
    eventually(lambda: [one for one in terminal.statements(active=True) if one["state"] == "running"])
    (slow,) = terminal.statements(active=True)
    assert terminal.headgate("statement", "cancel", slow["id"])[:2] == (0, "The statement is cancelled.\n")
    assert terminal.headgate("statement", "cancel", slow["id"])[1] == "The statement has already ended (cancelled).\n"


def test_a_table_without_its_kind_is_guessed(terminal: Terminal) -> None:
    for words in (("grant", "viewer"), ("revoke", "viewer")):
        status, _, told = terminal.headgate(*words, "raw.orders", "Ben")
        assert status == 2
        assert told == "error: 'raw.orders' is not a resource; write kind:name, such as table:raw.orders, or an id\n"
    assert "such as" not in terminal.headgate("grant", "viewer", "castle:x", "Ben")[2]
