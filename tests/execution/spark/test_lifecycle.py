"""Spark servers of this machine: started, found dead, started anew, and ended with nothing left behind."""

import json
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import IO

import pytest

from headgate.execution.sandbox import leftovers as left
from headgate.execution.sandbox import seccomp
from headgate.execution.sandbox.processes import descendants, java_below, started
from headgate.execution.spark import conf, jvm
from headgate.execution.spark.errors import TIME_LIMIT, SparkUnavailable
from headgate.execution.spark.member import MemberSpark, SqlFailed, StatementRefused
from headgate.settings.settings import Settings
from tests.execution.spark.conftest import Lakehouse
from tests.support.spark import SharedSpark, rows_of, within

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

needs_sandbox = pytest.mark.usefixtures("with_sandbox")
ENDLESS = "SELECT count(*) FROM range(1000000000000) WHERE id % 7 = 3"


@needs_sandbox
def test_it_runs_in_the_sandbox_and_says_so(shared_spark: SharedSpark) -> None:
    shared_spark.member.ensure()
    state = shared_spark.member.state()
    assert (state["up"], state["sandboxed"], state["memory"], state["error"]) == (True, True, "1g", None)
    assert state["resident_bytes"] > 100 << 20


def test_ensuring_a_server_that_is_up_changes_nothing(shared_spark: SharedSpark) -> None:
    shared_spark.member.ensure()
    pid = shared_spark.member.state()["pid"]
    began = time.monotonic()
    shared_spark.member.ensure()
    assert (shared_spark.member.state()["pid"], time.monotonic() - began < 30) == (pid, True)


@needs_sandbox
def test_only_the_owner_can_dial_it(shared_spark: SharedSpark) -> None:
    shared_spark.member.ensure()
    server = shared_spark.member._server
    assert server
    assert server.address.socket
    path = Path(server.address.socket)
    assert stat.S_IMODE(path.parents[1].stat().st_mode) == 0o700
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert not any(_listening(pid) for pid in _own(shared_spark))


@needs_sandbox
def test_what_it_is_told_shows_in_no_list_of_processes(shared_spark: SharedSpark) -> None:
    shared_spark.member.ensure()
    pid = shared_spark.member.state()["pid"]
    command = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    assert command[1:] == [b"@/scratch/java.args", b""]


def test_it_has_no_rights_of_whoever_started_it(shared_spark: SharedSpark) -> None:
    shared_spark.member.ensure()
    status = Path(f"/proc/{shared_spark.member.state()['pid']}/status").read_text(encoding="utf-8")
    told = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    user = os.getuid() or shared_spark.settings.spark.sandbox_uid
    assert told["Uid"].split() == [str(user)] * 4
    assert {told[name] for name in ("CapPrm", "CapEff", "CapBnd", "CapAmb")} == {"0" * 16}
    assert (told["NoNewPrivs"], told["Seccomp"]) == ("1", "2" if seccomp.program() else "0")


def test_after_it_was_killed_statements_fail_at_once_and_it_starts_anew(lakehouse: Lakehouse) -> None:
    member = lakehouse.spark.member
    session = lakehouse.session("Tess")
    running = threading.Event()
    failed: list[tuple[Exception, float]] = []

    def run() -> None:
        try:
            session.run(ENDLESS, lambda _: running.set())
        except Exception as error:  # noqa: BLE001 - whatever it is
            failed.append((error, time.monotonic()))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert running.wait(60)
    before = member.state()["pid"]
    killed = time.monotonic()
    os.kill(before, signal.SIGKILL)
    thread.join(60)
    [(error, when)] = failed
    assert isinstance(error, SparkUnavailable)
    assert when - killed < 60
    with pytest.raises(SparkUnavailable):
        session.run("SELECT 1")
    session.close()
    member.ensure()
    assert member.state()["pid"] not in (None, before)
    assert lakehouse.rows("Tess", "SELECT 1 AS a") == [{"a": 1}]


EVIL = "regexp_like(repeat('a', 50 + CAST(id AS INT)), '(.*a){20}c')"


@pytest.mark.parametrize(
    "sql",
    [f"SELECT count(*) FROM range(2) WHERE {EVIL}", f"SELECT {EVIL.replace('CAST(id AS INT)', '1')}"],
    ids=["in a task", "in the driver"],
)
def test_a_statement_that_does_not_stop_is_ended_with_its_process(lakehouse: Lakehouse, sql: str) -> None:
    member = lakehouse.spark.member
    session = lakehouse.session("Tess")
    pid = member.state()["pid"]
    rows_of(session, "SELECT count(*) FROM range(2) WHERE regexp_like(CAST(id AS STRING), 'x')")
    began = time.monotonic()
    with pytest.raises(SqlFailed) as stopped:
        session.run(sql, seconds=5)
    assert (stopped.value.code, time.monotonic() - began < 60) == (TIME_LIMIT, True)
    session.close()
    within(60, lambda: started(pid) == 0)
    assert lakehouse.rows("Tess", "SELECT 1 AS a") == [{"a": 1}]


def test_java_gets_the_options_of_the_operator(lakehouse: Lakehouse) -> None:
    lakehouse.spark.member.ensure()
    server = lakehouse.spark.member._server
    assert server
    assert "-XX:+UseSerialGC" in server.settings.spark.java_options
    assert "Using Serial" in (server.scratch / "gc.log").read_text()


def test_no_member_can_say_that_a_task_does_not_stop(lakehouse: Lakehouse) -> None:
    member = lakehouse.spark.member
    words = "Killed task 1 could not be stopped within 1 ms; not killing JVM because we are running in local mode."
    with pytest.raises(SqlFailed):
        lakehouse.rows("Tess", f"SELECT raise_error(concat(id, '\\n{words}\\n')) FROM range(1)")
    server = member._server
    assert server
    assert words in (server.scratch / "server.log").read_text()
    assert not jvm.has_stuck_task(server.scratch)


def test_a_start_can_be_given_up(tmp_path: Path) -> None:
    member = MemberSpark(Settings(data_dir=tmp_path, spark={"memory": "512m"}), "http://127.0.0.1:64999/iceberg")
    failed = threading.Event()

    def start() -> None:
        try:
            member.ensure()
        except SparkUnavailable:
            failed.set()

    threading.Thread(target=start, daemon=True).start()
    within(60, lambda: member._starting is not None and member._starting.pid)
    server = member._starting
    assert server
    pid = server.pid
    assert pid
    began = time.monotonic()
    member.close()
    assert time.monotonic() - began < 30
    assert failed.wait(60)
    assert started(pid) == 0


def test_an_idle_server_with_a_full_heap_is_started_anew(lakehouse: Lakehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    member = lakehouse.spark.member
    member.ensure()
    before = member.state()["pid"]
    monkeypatch.setattr("headgate.execution.spark.member.HEAP_MARK", 0.0)
    monkeypatch.setattr("headgate.execution.spark.member.FRESH_SECONDS", 24 * 3600)
    member.ensure()
    assert member.state()["pid"] == before, "it is fresh"
    monkeypatch.setattr("headgate.execution.spark.member.FRESH_SECONDS", 0)
    session = member.open(lakehouse.work("Tess"))
    member.ensure()
    assert member.state()["pid"] == before, "a session is open"
    session.close()
    member.ensure()
    assert member.state()["pid"] != before
    monkeypatch.undo()
    assert lakehouse.rows("Tess", "SELECT 1 AS a") == [{"a": 1}]


def test_without_a_sandbox_it_asks_for_a_key_and_leaves_nothing(tmp_path: Path) -> None:
    secret = "sesame-of-the-tests"
    os.environ["HEADGATE_TEST_SECRET"] = secret
    member = MemberSpark(
        Settings(data_dir=tmp_path, spark={"sandbox": "off", "memory": "512m"}), "http://127.0.0.1:64999/iceberg"
    )
    try:
        member.ensure()
        server = member._server
        assert server
        assert not server.sandboxed
        pid = server.pid
        assert pid
        assert secret not in Path(f"/proc/{pid}/environ").read_text()
        assert server.address.token
        assert server.address.token not in Path(f"/proc/{pid}/cmdline").read_text()
        assert set(_listening(pid)) == {"127.0.0.1"}
        with pytest.raises(SparkUnavailable):
            _canary_with_key(tmp_path, server.address.port, "wrong")
        sockets = server._sockets
        assert server._process
        family = {server._process.pid, *descendants(server._process.pid)}
        assert pid in family
    finally:
        del os.environ["HEADGATE_TEST_SECRET"]
        member.close()
    assert started(pid) == 0
    assert not sockets.exists()
    assert list((tmp_path / "spark" / "member-0" / "scratch").glob("local/*")) == []
    # Of its own: whatever else this process has started is not what is tried here.
    assert not family & _zombies()
    assert not member.state()["up"]
    with pytest.raises(SparkUnavailable):
        member.open("any")
    member.close()


def test_an_unguarded_server_gets_no_statement(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conf, "guarded", lambda: {"spark.sql.extensions": conf.ICEBERG})
    settings = Settings(data_dir=tmp_path, spark={"sandbox": "off", "memory": "512m"})
    member = MemberSpark(settings, "http://127.0.0.1:64999/iceberg")
    try:
        with pytest.raises(SparkUnavailable, match="has no guard"):
            member.ensure()
        assert not member.state()["up"]
        assert "has no guard" in member.state()["error"]
    finally:
        member.close()


def test_a_server_that_cannot_start_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = conf.guarded()
    swapped = {**found, "spark.sql.extensions": ",".join(reversed(found["spark.sql.extensions"].split(",")))}
    monkeypatch.setattr(conf, "guarded", lambda: swapped)
    member = MemberSpark(Settings(data_dir=tmp_path, spark={"memory": "512m"}), "http://127.0.0.1:64999/iceberg")
    try:
        with pytest.raises(SparkUnavailable, match="HEADGATE_GUARD"):
            member.ensure()
    finally:
        member.close()


OWNER = """
import sys, time
from headgate.settings.settings import Settings
from headgate.execution.spark.member import MemberSpark
member = MemberSpark(Settings(data_dir=sys.argv[1], spark={"memory": "512m"}), "http://127.0.0.1:64999/iceberg")
member.ensure()
print("pids", member.state()["pid"], member._server._process.pid, flush=True)
time.sleep(600)
"""


def test_a_server_ends_with_its_owner_and_what_is_left_is_ended(tmp_path: Path) -> None:
    owner = subprocess.Popen([sys.executable, "-c", OWNER, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert owner.stdout
    pid, launcher = _told(owner.stdout)
    place = tmp_path / "spark" / "member-0"
    told = json.loads((place / left.RECORD).read_text())
    # The launcher is held, so that it cannot see that its owner is gone: this is the worst predecessor.
    os.kill(launcher, signal.SIGSTOP)
    owner.kill()
    owner.wait()
    owner.stdout.close()
    assert started(pid)
    assert Path(told["sockets"]).exists()
    left.end_orphans(tmp_path / "spark")
    within(60, lambda: started(pid) == 0 and started(launcher) == 0)
    assert not Path(told["sockets"]).exists()
    assert not (place / left.RECORD).exists()


def test_a_server_ends_when_its_owner_is_killed(tmp_path: Path) -> None:
    owner = subprocess.Popen([sys.executable, "-c", OWNER, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert owner.stdout
    pid, launcher = _told(owner.stdout)
    assert java_below(launcher) == pid
    owner.kill()
    owner.wait()
    owner.stdout.close()
    within(60, lambda: started(pid) == 0 and started(launcher) == 0)


def _told(lines: IO[str]) -> list[int]:
    """The processes that an owner tells, among the lines of its log."""
    return next([int(pid) for pid in line.split()[1:]] for line in lines if line.startswith("pids"))


def _canary_with_key(folder: Path, port: int | None, key: str) -> None:
    url = f"sc://localhost:{port}/;token={key}"
    stranger = MemberSpark(Settings(data_dir=folder, spark={"member_url": url}), "http://127.0.0.1:64999/iceberg")
    try:
        stranger.ensure()
    except StatementRefused:
        raise AssertionError("a wrong key opened it") from None
    finally:
        stranger.close()


def _own(spark: SharedSpark) -> list[int]:
    """The processes of this Spark: its launcher, and all below."""
    java = spark.member.state()["pid"]
    tops = [child for child in descendants(os.getpid()) if java in descendants(child)]
    assert tops
    return [tops[0], *descendants(tops[0])]


def _listening(pid: int) -> list[str]:
    """The addresses that a process listens on, in this network."""
    sockets = set()
    for entry in Path(f"/proc/{pid}/fd").glob("*"):
        try:
            name = str(entry.readlink())
        except OSError:
            continue
        if name.startswith("socket:["):
            sockets.add(name[8:-1])
    found = []
    for name in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and fields[9] in sockets:
                found.append(_address(fields[1].partition(":")[0]))
    return found


def _address(text: str) -> str:
    return ".".join(str(int(text[n : n + 2], 16)) for n in (6, 4, 2, 0)) if len(text) == 8 else text


def _zombies() -> set[int]:
    found = set()
    for pid in descendants(os.getpid()):
        stat_line = Path(f"/proc/{pid}/stat")
        if stat_line.exists() and stat_line.read_text().rpartition(")")[2].split()[0] == "Z":
            found.add(pid)
    return found
