"""`headgate up`: starts, restarts what dies, stops cleanly, and starts again after being killed."""

import json
import os
import signal
import socket
import sqlite3
from contextlib import suppress
from pathlib import Path

import httpx2 as httpx
import pytest

from tests.support.installation import eventually, gone, installed

pytestmark = pytest.mark.processes


def test_it_starts_serves_and_stops_cleanly(tmp_path: Path) -> None:
    with installed(tmp_path) as one:
        address = one.up()
        assert httpx.get(f"{address}/healthz").json()["status"] == "ok"
        children = one.children()
        assert len(children) == 3
        # The worker and the scheduler let go of it: they would keep callers waiting when the servers are gone.
        eventually(lambda: sum(_listens(child, int(address.rpartition(":")[2])) for child in children) == 1)
        assert one.stop() == 0
        assert all(gone(child) for child in children)
        with pytest.raises(httpx.TransportError):
            httpx.get(f"{address}/healthz")


def _listens(pid: int, port: int) -> bool:
    """Whether a process holds the socket that listens on a port."""
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    [inode] = [fields[9] for fields in lines if fields[3] == "0A" and fields[1].endswith(f":{port:04X}")]
    found = []
    for handle in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):
            found.append(str(handle.readlink()))
    return f"socket:[{inode}]" in found


def test_what_dies_is_started_again(tmp_path: Path) -> None:
    with installed(tmp_path, HEADGATE_SERVER__PROCESSES="2") as one:
        address = one.up()
        before = set(one.children())
        for child in before:
            os.kill(child, signal.SIGKILL)
        eventually(lambda: len(set(one.children()) - before) == 4)
        eventually(lambda: _answers(address))
        assert one.stop() == 0


def _answers(address: str) -> bool:
    try:
        return bool(httpx.get(f"{address}/readyz", timeout=2).is_success)
    except httpx.TransportError:
        return False


def test_after_a_kill_nothing_is_left_and_it_starts_again(tmp_path: Path) -> None:
    with installed(tmp_path) as one:
        one.up()
        children = one.children()
        one.kill()
        eventually(lambda: all(gone(child) for child in children))
        address = one.up()
        assert httpx.get(f"{address}/readyz").is_success
        assert one.stop() == 0


def test_a_second_one_on_the_same_folder_says_who_is_there(tmp_path: Path) -> None:
    with installed(tmp_path) as one:
        one.up()
        assert one.process
        second = one.run_process("up")
        assert second.returncode == 2
        assert f"pid {one.process.pid}" in second.stderr
        assert "Traceback" not in second.stderr


def test_a_port_that_is_taken_is_said(tmp_path: Path) -> None:
    with socket.socket() as taken, installed(tmp_path) as one:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = one.run_process("up", HEADGATE_SERVER__PORT=str(port))
        assert done.returncode == 2
        assert f"127.0.0.1:{port}" in done.stderr


def test_a_database_of_another_version_is_refused_with_advice(tmp_path: Path) -> None:
    with installed(tmp_path) as one:
        assert one.headgate("db", "upgrade").returncode == 0
        with sqlite3.connect(tmp_path / "headgate.db") as connection:
            connection.execute("UPDATE alembic_version SET version_num = '0000'")
        old = one.run_process("up")
        assert (old.returncode, "headgate db upgrade" in old.stderr) == (2, True)
        with sqlite3.connect(tmp_path / "headgate.db") as connection:
            connection.execute("UPDATE alembic_version SET version_num = '9999'")
        new = one.run_process("up")
        assert (new.returncode, "install the newer Headgate" in new.stderr) == (2, True)
        with sqlite3.connect(tmp_path / "headgate.db") as connection:
            connection.execute("DROP TABLE alembic_version")
        foreign = one.run_process("up")
        assert (foreign.returncode, "an empty database" in foreign.stderr) == (2, True)


def test_a_key_file_that_others_can_read_is_refused(tmp_path: Path) -> None:
    with installed(tmp_path) as one:
        one.headgate("db", "upgrade")
        (tmp_path / "keys.json").write_text("{}")
        (tmp_path / "keys.json").chmod(0o644)
        done = one.run_process("up")
        assert done.returncode == 2
        assert "chmod 600" in done.stderr


@pytest.mark.parametrize("kind", ["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def test_a_revoke_holds_for_the_next_statement_on_every_process(
    tmp_path: Path, kind: str, request: pytest.FixtureRequest
) -> None:
    """Three server processes on one port; whichever answers, a revoke that was answered holds."""
    url = None if kind == "sqlite" else str(request.getfixturevalue("database_url_of_postgres"))
    with installed(tmp_path, url, HEADGATE_SERVER__PROCESSES="3") as one:
        one.fill()
        tess, bea = one.token("Tess"), one.token("Bea")
        address = one.up()
        change = {"to": "Bea", "resource": "table:service.revenue", "level": "viewer"}
        question = {"action": "execute", "resource": "table:service.revenue"}
        seen: set[bool] = set()
        for round_ in range(12):
            granted = bool(round_ % 2)
            body = {"change": "grant" if granted else "revoke", **change}
            answer = httpx.post(f"{address}/api/access/changes", json=body, headers=_bearer(tess))
            assert answer.status_code == 200, answer.text
            for _ in range(6):
                asked = httpx.post(f"{address}/api/access/explain", json=question, headers=_bearer(bea))
                allowed = asked.status_code == 200 and asked.json()["allowed"]
                assert allowed == granted
                seen.add(allowed)
        assert seen == {True, False}
        assert one.stop() == 0
        verified = one.headgate("audit", "verify")
        assert verified.returncode == 0, verified.stdout


def _bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def test_metrics_of_all_processes_come_together(tmp_path: Path) -> None:
    with installed(tmp_path, HEADGATE_SERVER__PROCESSES="2") as one:
        address = one.up()
        for _ in range(20):
            httpx.get(f"{address}/healthz")
        # A request is counted once it is answered.
        eventually(lambda: _answered(address) == 20)


def _answered(address: str) -> float:
    """How often all processes say that they answered whether they live."""
    text = httpx.get(f"{address}/metrics").text
    line = next(one for one in text.splitlines() if 'route="/healthz"' in one and "requests_total" in one)
    return float(line.split()[-1])


def test_the_log_is_json_when_asked_and_holds_no_token(tmp_path: Path) -> None:
    with installed(tmp_path, HEADGATE_LOG__FORMAT="json") as one:
        one.fill()
        token = one.token("Ben")
        address = one.up()
        httpx.get(f"{address}/api/resources?kind=data_mart", headers=_bearer(token))
        one.stop()
        lines = [json.loads(line) for line in one.log.read_text().splitlines() if line.startswith("{")]
        request = next(line for line in lines if line.get("route") == "/api/resources")
        assert request["status"] == 200
        assert request["member"].startswith("mbr_")
        assert token not in one.log.read_text()
