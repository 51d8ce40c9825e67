"""The door of Spark: a Unix socket for its owner alone, and no port that anybody else could dial."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from headgate.execution.sandbox import bubblewrap as sandbox
from headgate.execution.sandbox.processes import descendants
from tests.security.conftest import World

pytestmark = [
    pytest.mark.spark,
    pytest.mark.xdist_group("spark"),
]
NOBODY = 65534
_DIAL = "import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); print('open')"


def socket_of(world: World) -> Path:
    world.spark.member.ensure()
    server = world.spark.member._server
    assert server
    assert server.address.socket
    return Path(server.address.socket)


def test_nobody_else_opens_the_socket(world: World) -> None:
    path = socket_of(world)
    inner, outer = path.parents[:2]
    for folder in (inner, outer):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700, folder
    # As root, Spark runs as a user without rights, who owns the folder of its socket; only root enters the one around it.
    assert inner.stat().st_uid == (sandbox.user(world.spark.settings.spark.sandbox_uid) or os.getuid())
    assert outer.stat().st_uid == os.getuid()
    assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0
    own = subprocess.run([sys.executable, "-c", _DIAL, str(path)], capture_output=True, text=True, check=False)
    assert own.stdout.strip() == "open", own.stderr
    if os.getuid() != 0:
        pytest.skip("only root can try as another user")
    as_nobody = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--no-new-privs"]
    sandboxed = sandbox.user(world.spark.settings.spark.sandbox_uid)
    as_sandboxed = ["setpriv", f"--reuid={sandboxed}", f"--regid={sandboxed}", "--clear-groups", "--no-new-privs"]
    for become in (as_nobody, as_sandboxed):
        dial = [*become, "/usr/bin/python3", "-c", _DIAL, str(path)]
        other = subprocess.run(dial, capture_output=True, text=True, check=False)
        assert other.returncode != 0
        assert "PermissionError" in other.stderr


def test_nobody_else_reads_its_files(world: World) -> None:
    """Its plan, its arguments and its scratch folder are its owner's."""
    socket_of(world)
    for file in (world.spark.settings.data_dir / "spark").rglob("*"):
        if file.name in {"plan.json", "java.args"}:
            assert stat.S_IMODE(file.stat().st_mode) & 0o077 == 0, file
            assert "hgw_" not in file.read_text(encoding="utf-8")


def listening(tcp: Path) -> set[str]:
    """The addresses on which something listens, as the kernel writes them."""
    try:
        lines = tcp.read_text().splitlines()[1:]
    except OSError:
        return set()
    return {line.split()[1] for line in lines if line.split()[3] == "0A"}


def test_spark_listens_on_loopback_of_a_network_of_its_own_alone(world: World) -> None:
    (pid,) = world.spark.pids()
    assert Path(f"/proc/{pid}/ns/net").readlink() != Path("/proc/self/ns/net").readlink()
    found = set()
    for name, loopback in (("tcp", "0100007F:"), ("tcp6", None)):
        for address in listening(Path(f"/proc/{pid}/net/{name}")):
            # ::1, and 127.0.0.1 as IPv6 writes it.
            six = ("00000000000000000000000001000000:", "0000000000000000FFFF00000100007F:")
            assert address.startswith(loopback if loopback else six), address
            found.add(address.rpartition(":")[2])
    assert f"{15002:04X}" in found
    devices = Path(f"/proc/{pid}/net/dev").read_text()
    assert [line.split(":")[0].strip() for line in devices.splitlines()[2:]] == ["lo"]


def test_no_process_of_ours_listens_for_spark_outside(world: World) -> None:
    """In the network of the server itself, only this test's own server and doorway listen, on loopback."""
    socket_of(world)
    inodes = {_target(handle) for pid in descendants(os.getpid()) for handle in Path(f"/proc/{pid}/fd").glob("*")}
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        if fields[3] == "0A" and f"socket:[{fields[9]}]" in inodes:
            assert fields[1].startswith("0100007F:"), line


def _target(handle: Path) -> str:
    try:
        return str(handle.readlink())
    except OSError:
        return ""


def test_the_environment_of_spark_holds_nothing(world: World) -> None:
    (pid,) = world.spark.pids()
    told = dict(one.split("=", 1) for one in Path(f"/proc/{pid}/environ").read_text().split("\0") if "=" in one)
    assert set(told) <= {"LANG", "TZ", "PATH", "PWD", "HOME", "SPARK_LOCAL_IP"}, sorted(told)
    command = Path(f"/proc/{pid}/cmdline").read_text()
    assert "hgw_" not in command
    assert "Bearer" not in command
