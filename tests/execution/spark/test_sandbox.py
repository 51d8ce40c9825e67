"""What a program sees in the sandbox that members' SQL runs in. The very command line of the server, with a shell in it."""

import json
import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from headgate.execution.sandbox import bubblewrap as sandbox
from headgate.execution.sandbox import relay
from headgate.execution.spark import conf, jars, jvm
from headgate.execution.spark.errors import SparkUnavailable
from headgate.execution.spark.local import local_server
from headgate.execution.spark.server import LocalServer
from headgate.settings.settings import Settings
from tests.support.cluster import free_port

pytestmark = pytest.mark.usefixtures("with_sandbox")


USER = Settings().spark.sandbox_uid


def _runs_as() -> tuple[int, int]:
    """Who programs in the sandbox are for the kernel."""
    return (os.getuid(), os.getgid()) if os.getuid() else (USER, USER)


@dataclass
class Inside:
    """The sandbox of a server, with a shell instead of Spark."""

    server: LocalServer
    command: list[str]
    folder: Path
    catalog: int
    other: int

    def run(self, script: str) -> "subprocess.CompletedProcess[str]":
        """Run a script inside, as Spark would run."""
        *before, plan = self.command
        told = {**json.loads(plan), "command": ["/bin/sh", "-c", script], "serve": ["/scratch/none", "127.0.0.1", 1]}
        return subprocess.run(
            [*before, json.dumps(told)], capture_output=True, text=True, timeout=60, check=False, env={"SECRET": "x"}
        )

    def says(self, script: str) -> str:
        """What it prints."""
        return self.run(script).stdout.strip()


@pytest.fixture(scope="module")
def inside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Inside]:
    folder = tmp_path_factory.mktemp("installation")
    (folder / "keys.json").write_text("the keys")
    (folder / "headgate.db").write_text("the database")
    for name in ("tables/tbl_1", "metadata/tbl_1", "volumes/vol_1", "results/st_1", "uploads/up_1"):
        (folder / "warehouse" / name).mkdir(parents=True)
        (folder / "warehouse" / name / "file").write_text(name)
    with socket.create_server(("127.0.0.1", 0)) as other:
        catalog = free_port()
        confs = conf.for_members(f"http://127.0.0.1:{catalog}/iceberg")
        server = LocalServer("member", Settings(data_dir=folder), jars.ensure(), confs, sandboxed=True)
        jvm.lay_out(server.scratch)
        yield Inside(server, server._sandboxed().command, folder, catalog, other.getsockname()[1])
        server.stop()


def test_keys_database_and_the_rest_of_the_disk_are_not_there(inside: Inside) -> None:
    for name in ("keys.json", "headgate.db", "spark/member-0/lock", "spark/member-0/plan.json"):
        assert inside.run(f"cat {inside.folder}/{name}").returncode != 0, name
    for name in ("volumes", "results", "uploads"):
        assert inside.run(f"ls {inside.folder}/warehouse/{name}").returncode != 0, name
    assert inside.says("ls /") == "\n".join(
        sorted({"bin", "dev", "etc", "headgate", "proc", "scratch", "tmp", "usr", *_other_tops(inside)})
    )
    assert set(inside.says("ls -A /tmp").split()) <= set(inside.folder.parts)
    assert set(inside.says("ls /etc").split()) <= {"group", "hosts", "passwd", "ld.so.cache", "ssl", "pki"} | {
        folder.name for folder in Path("/etc").glob("java-*-openjdk")
    }


def _other_tops(inside: Inside) -> set[str]:
    """Folders on the way to what is bound: links of the system, the warehouse, Python and Java."""
    found = {name[1:] for name in ("/sbin", "/lib", "/lib32", "/lib64", "/libx32") if Path(name).exists()}
    return found | {path.parts[1] for path in (inside.folder, Path(sys.base_prefix).resolve())}


def test_of_a_home_only_the_way_to_what_is_bound_is_there(inside: Inside) -> None:
    home = Path.home()
    for name in (".ssh", ".bashrc", ".cache", ".config", ".profile"):
        assert inside.run(f"ls -d {home}/{name}").returncode != 0, name
    assert inside.run(f"ls {Path(__file__).resolve()}").returncode != 0


def test_tables_can_be_written_and_metadata_only_read(inside: Inside) -> None:
    warehouse = inside.folder / "warehouse"
    assert (
        inside.says(f"cat {warehouse}/tables/tbl_1/file {warehouse}/metadata/tbl_1/file")
        == "tables/tbl_1metadata/tbl_1"
    )
    assert inside.run(f"echo new > {warehouse}/tables/tbl_1/new").returncode == 0
    written = (warehouse / "tables" / "tbl_1" / "new").stat()
    assert (written.st_uid, written.st_gid) == _runs_as()
    (warehouse / "tables" / "tbl_1" / "new").unlink()
    for name in ("metadata/new", "metadata/tbl_1/new", "metadata/tbl_1/file"):
        assert inside.run(f"echo new > {warehouse}/{name}").returncode != 0, name
    # Where the sandbox has a folder of its own, nothing of it reaches the disk.
    inside.run(f"echo new > {warehouse}/elsewhere; mkdir -p {warehouse}/volumes/new")
    assert not (warehouse / "elsewhere").exists()
    assert not (warehouse / "volumes" / "new").exists()


def test_what_another_engine_made_for_a_table_can_be_added_to(inside: Inside) -> None:
    folder = inside.folder / "warehouse" / "tables" / "tbl_2" / "data"
    folder.mkdir(parents=True)
    assert inside.run(f"echo new > {folder}/new && rm {folder}/new && rmdir {folder}").returncode == 0


def test_nothing_of_the_system_can_be_written(inside: Inside) -> None:
    for place in ("/", "/etc", "/usr", "/headgate", "/headgate/jars", "/headgate/spark", "/headgate/out", "/proc/sys"):
        assert inside.run(f"touch {place}/new").returncode != 0, place
    assert inside.run("echo x >> /headgate/relay.py").returncode != 0


def test_the_environment_and_other_processes_are_not_seen(inside: Inside) -> None:
    names = {line.partition("=")[0] for line in inside.says("env").splitlines()}
    assert names <= {"HOME", "LANG", "TZ", "PATH", "SPARK_LOCAL_IP", "PWD", "OLDPWD", "_", "SHLVL"}
    seen = [pid for pid in inside.says("ls /proc").split() if pid.isdigit()]
    assert len(seen) <= 5
    assert inside.run(f"ls /proc/{os.getpid()}/environ").returncode != 0 or os.getpid() < 10
    assert inside.says("id -u; id -g; hostname") == "1000\n1000\nlocalhost"
    assert "0000000000000000" in inside.says("grep CapEff /proc/self/status")
    assert inside.run("unshare -r true && mount -t tmpfs none /usr").returncode != 0


def test_there_is_no_network_but_the_way_to_the_catalog(inside: Inside) -> None:
    dial = "python3 - <<'E'\nimport socket\nsocket.create_connection(('{}', {}), 3).close()\nprint('open')\nE"
    python = sandbox.python()
    for host, port in (("127.0.0.1", inside.other), ("127.0.0.1", 5432), ("192.0.2.1", 80), ("169.254.169.254", 80)):
        assert "open" not in inside.says(dial.format(host, port).replace("python3", python)), (host, port)
    assert inside.says(dial.format("127.0.0.1", inside.catalog).replace("python3", python)) == "open"
    interfaces = inside.says("cat /proc/net/dev")
    assert re.findall(r"^\s*(\w+):", interfaces, re.MULTILINE) == ["lo"]
    assert inside.says("cat /proc/net/unix | wc -l") == "1"


def test_the_way_to_the_catalog_leads_there_alone(inside: Inside) -> None:
    said: list[bytes] = []

    def answer(listener: socket.socket) -> None:
        peer, _ = listener.accept()
        with peer:
            said.append(peer.recv(100))
            peer.sendall(b"from the catalog")

    out = inside.server._sockets / "out" / "0"
    with socket.create_server(("127.0.0.1", inside.catalog)) as catalog, relay.listen_unix(str(out)) as listener:
        relay.relay(listener, relay.address("127.0.0.1", inside.catalog))
        threading.Thread(target=answer, args=(catalog,), daemon=True).start()
        script = (
            f"{sandbox.python()} - <<'E'\nimport socket\ns = socket.create_connection(('127.0.0.1', {inside.catalog}), 3)\n"
            "s.sendall(b'from inside')\nprint(s.recv(100).decode())\nE"
        )
        assert inside.says(script) == "from the catalog"
    assert said == [b"from inside"]


def test_a_low_port_of_a_named_host_can_be_reached(tmp_path: Path) -> None:
    confs = conf.for_members("http://lake.example/iceberg")
    server = LocalServer("member", Settings(data_dir=tmp_path), jars.ensure(), confs, sandboxed=True)
    jvm.lay_out(server.scratch)
    launch = server._sandboxed()
    assert launch.network == [("127.0.0.2", 80)]
    *before, plan = launch.command
    script = (
        f"{sandbox.python()} - <<'E'\nimport socket\nsocket.create_connection(('lake.example', 80), 3).close()\n"
        "print('open')\nE\nid -u; grep CapEff /proc/self/status; grep -c : /proc/net/dev"
    )
    told = {**json.loads(plan), "command": ["/bin/sh", "-c", script], "serve": ["/scratch/none", "127.0.0.1", 1]}
    # In a process of its own, as a launcher is: this one may hold the very handles that are handed in.
    enter = (
        "import json, os, sys\nfrom headgate.execution.sandbox import network\n"
        "addresses, user, command = json.loads(sys.argv[1])\n"
        "network.enter([tuple(one) for one in addresses], user)\nos.execvp(command[0], command)"
    )
    given = json.dumps([launch.network, sandbox.user(USER), [*before, json.dumps(told)]])
    started = [sys.executable, "-c", enter, given]
    done = subprocess.run(started, capture_output=True, text=True, timeout=60, check=False)
    server.stop()
    assert done.stdout.split() == ["open", "1000", "CapEff:", "0000000000000000", "1"], done.stderr


def test_java_is_there_and_works(inside: Inside) -> None:
    java = json.loads(inside.command[-1])["command"][0]
    assert "version" in inside.run(f"{java} -version 2>&1").stdout


def test_where_a_sandbox_is_required_and_there_can_be_none_nothing_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    settings = Settings(data_dir=tmp_path, spark={"sandbox": "required"})
    with pytest.raises(SparkUnavailable, match="bubblewrap is not installed"):
        local_server("member", settings, conf.for_members("http://127.0.0.1:64999/iceberg"))
