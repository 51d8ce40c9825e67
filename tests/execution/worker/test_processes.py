"""`headgate up` with its worker: kills, restarts and the command line, on a real Spark."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest

from headgate.kit.credentials import Sort, new_secret
from tests.support.installation import Installation, eventually, gone, installed

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.xdist_group("spark")]

STATEMENTS = "/api/sql/statements"
ENDLESS = "SELECT count(*) FROM range(1000000000000) WHERE id % 7 = 3"
SLOW = "SELECT id FROM range(0, 30000000, 1, 4) WHERE sha2(CAST(id AS STRING), 512) LIKE 'aaa%'"


class Up:
    """An installation that runs, as Tess uses it."""

    def __init__(self, one: Installation) -> None:
        self.one, self.token = one, one.token("Tess")
        self.address = one.up()
        self.http = httpx.Client(base_url=self.address, headers={"Authorization": f"Bearer {self.token}"}, timeout=60)

    def submit(self, sql: str) -> str:
        return str(self.http.post(STATEMENTS, json={"sql": sql}).json()["id"])

    def get(self, statement: str, wait: float = 0) -> Any:
        return self.http.get(f"{STATEMENTS}/{statement}", params={"wait": wait}).json()

    def done(self, statement: str, seconds: float = 150) -> Any:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            try:
                found = self.get(statement, 5)
            except httpx.TransportError:
                time.sleep(0.2)
                continue
            if found["state"] in {"succeeded", "failed", "cancelled"}:
                return found
        raise AssertionError(self.one.log.read_text()[-5000:])

    def rows(self, sql: str) -> Any:
        found = self.done(self.submit(sql))
        assert found["state"] == "succeeded", found["error"]
        return found["data"]

    def working(self, statement: str) -> None:
        eventually(lambda: (self.get(statement)["progress"] or {}).get("tasks_total"), 60)

    def child(self, name: str) -> int:
        """The newest process of a name, as the log tells."""
        lines = [
            line for line in self.one.log.read_text().splitlines() if "started" in line and f"process={name}" in line
        ]
        lines += [
            line for line in self.one.log.read_text().splitlines() if "started" in line and f"process='{name}'" in line
        ]
        return int(lines[-1].partition("pid=")[2].split()[0])

    def headgate(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        return self.one.headgate(*arguments, HEADGATE_SERVER_URL=self.address, HEADGATE_TOKEN=self.token)


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    folder = tmp_path_factory.mktemp("up")
    with installed(folder, HEADGATE_SPARK__MEMORY="1g", HEADGATE_SPARK__PREWARM="true") as one:
        one.fill()
        found = Up(one)
        found.rows("CREATE TABLE raw.kept (id BIGINT)")
        yield found
        found.http.close()
        children = one.children()
        assert one.stop() == 0
        assert all(gone(child) for child in children)


def test_the_command_line_prints_rows_and_writes_files(up: Up, tmp_path: Path) -> None:
    done = up.headgate("sql", "SELECT id, id * 2 AS twice FROM range(3)")
    assert done.returncode == 0, done.stderr
    assert [line.split() for line in done.stdout.splitlines()] == [["id", "twice"], ["0", "0"], ["1", "2"], ["2", "4"]]
    assert up.headgate("sql", "SELECT id FROM range(2)", "--format", "csv").stdout == "id\n0\n1\n"
    found = json.loads(up.headgate("sql", "SELECT 1 AS n", "--format", "json").stdout)
    assert (found["rows"], found["truncated"]) == ([[1]], False)
    for kind in ("parquet", "arrow"):
        file = tmp_path / f"rows.{kind}"
        assert up.headgate("sql", "SELECT id FROM range(2500)", "--format", kind, "-o", str(file)).returncode == 0
        assert file.stat().st_size > 1000
    limited = up.headgate("sql", "SELECT id FROM range(100)", "--limit", "2")
    assert (len(limited.stdout.splitlines()), "cut to 2 rows" in limited.stderr) == (3, True)
    wrong = up.headgate("sql", "SELEC")
    assert (wrong.returncode, "PARSE_SYNTAX_ERROR" in wrong.stderr, "Traceback" in wrong.stderr) == (2, True, False)
    assert "SELEC" in up.headgate("statement", "list").stdout


def test_saved_queries_on_the_command_line(up: Up) -> None:
    made = up.headgate("saved", "save", "Twice", "SELECT id * 2 AS twice FROM raw.kept WHERE id < 0")
    assert "it reads raw.kept" in made.stdout, made.stderr
    assert "SELECT id * 2" in up.headgate("saved", "show", "twice").stdout
    assert up.headgate("saved", "run", "Twice").stdout.strip() == "No rows. Columns: twice"
    assert up.headgate("saved", "rename", "Twice", "Double").returncode == 0
    assert "Double" in up.headgate("saved", "list").stdout
    assert up.headgate("saved", "delete", "Double").stdout == "Deleted Double.\n"


def test_ctrl_c_cancels_the_statement(up: Up) -> None:
    environment = {**up.one.environment, "HEADGATE_SERVER_URL": up.address, "HEADGATE_TOKEN": up.token}
    command = [sys.executable, "-m", "headgate.cli.main", "sql", ENDLESS]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    active = {"active": True}
    eventually(lambda: up.http.get(STATEMENTS, params=active).json()["items"])
    statement = up.http.get(STATEMENTS, params=active).json()["items"][0]["id"]
    up.working(statement)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=60)
    assert (process.returncode, told.decode().strip()) == (130, "Cancelled.")
    assert up.done(statement)["state"] == "cancelled"


def test_a_worker_that_is_killed_loses_nothing_and_doubles_nothing(up: Up) -> None:
    expected = up.rows(f"SELECT count(*) FROM ({SLOW})")[0][0]
    statement = up.submit(f"INSERT INTO raw.kept {SLOW}")
    up.working(statement)
    os.kill(up.child("worker"), signal.SIGKILL)
    found = up.done(statement)
    assert found["state"] == "succeeded", found["error"]
    assert up.rows("SELECT count(*) FROM raw.kept") == [[expected]]


def test_a_server_that_is_killed_comes_back_to_its_statements(up: Up) -> None:
    statement = up.submit(f"SELECT count(*) FROM ({SLOW})")
    up.working(statement)
    os.kill(up.child("server 1"), signal.SIGKILL)
    assert up.done(statement)["state"] == "succeeded"


def test_the_worker_token_is_printed_on_the_servers_machine_alone(up: Up, tmp_path: Path) -> None:
    token = up.one.headgate("worker", "token").stdout.strip()
    assert token.startswith("hgx_")
    with installed(tmp_path) as other:
        nowhere = other.headgate("worker", "token")
        assert nowhere.returncode == 2
        assert "no installation" in nowhere.stderr
        wrong = other.run_process("worker", "--server", up.address, HEADGATE_WORKER_TOKEN="hgx_nonsense")
        assert (wrong.returncode, "is not a worker token" in wrong.stderr) == (2, True)
        strange = other.run_process("worker", "--server", up.address, HEADGATE_WORKER_TOKEN=_another())
        assert (strange.returncode, "does not take this worker's token" in strange.stderr) == (1, True)


def _another() -> str:
    return new_secret(Sort.worker)
