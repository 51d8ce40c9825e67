"""A PostgreSQL server of our own, on a free port, for as long as it is needed."""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from tests.support.memory import folder_in


def _binaries() -> Path:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: path.parts[-3])
    initdb = found[-1] if found else Path(shutil.which("initdb") or "")
    if not initdb.is_file():
        raise RuntimeError("PostgreSQL is not installed; `make test` installs it as root: apt-get install postgresql")
    return initdb.parent


def _as_other_user() -> list[str]:
    """PostgreSQL refuses to run as root; the package brings a user of its own."""
    if os.geteuid() != 0:
        return []
    return ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def server(*, durable: bool = False, place: Path | None = None) -> Iterator[str]:
    """Start a server, with its files in this place, and give the URL of an empty database on it; stop it afterwards."""
    binaries, prefix = _binaries(), _as_other_user()
    with folder_in(place, "headgate-postgres-") as folder:
        if prefix:
            user = pwd.getpwnam("postgres")
            os.chown(folder, user.pw_uid, user.pw_gid)
        data = folder / "data"
        initdb = [binaries / "initdb", "-D", data, "-U", "headgate", "-A", "trust", "-E", "UTF8", "--no-sync"]
        subprocess.run([*prefix, *map(str, initdb), "--locale=C.UTF-8"], check=True, capture_output=True, cwd=folder)
        options = [] if durable else ["-c", "fsync=off", "-c", "full_page_writes=off", "-c", "synchronous_commit=off"]
        port = _free_port()
        command = [binaries / "postgres", "-D", data, "-p", port, "-k", folder, "-h", "127.0.0.1"]
        memory = ["-c", "shared_buffers=512MB", "-c", "max_connections=60"]
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(
                [*prefix, *map(str, command), *options, *memory], stdout=log, stderr=log, cwd=folder
            )
        try:
            _wait(port, process, folder / "log")
            yield f"postgresql://headgate@127.0.0.1:{port}/postgres"
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(timeout=60)


def _wait(port: int, process: "subprocess.Popen[bytes]", log: Path) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        if process.poll() is not None:
            break
        try:
            psycopg.connect(f"postgresql://headgate@127.0.0.1:{port}/postgres", connect_timeout=2).close()
        except psycopg.OperationalError:
            time.sleep(0.05)
        else:
            return
    raise RuntimeError("PostgreSQL did not start:\n" + log.read_text(errors="replace"))
