"""A MariaDB server of our own, on a free port, for as long as it is needed."""

import os
import pwd
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pymysql

from tests.support.memory import folder_in

USER, PASSWORD = "headgate", "a slow river bends"


@dataclass(frozen=True)
class MariaDb:
    """A running server: its port, and the socket by which its root can be reached."""

    port: int
    socket: str

    def run(self, *statements: str) -> None:
        """Execute statements as root."""
        with pymysql.connect(unix_socket=self.socket, user="root", autocommit=True) as connection:
            for one in statements:
                with connection.cursor() as cursor:
                    cursor.execute(one)


def _program(name: str) -> str:
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/bin")
    if not found:
        raise RuntimeError("MariaDB is not installed; `make test` installs it as root: apt-get install mariadb-server")
    return found


def _user() -> list[str]:
    """MariaDB refuses to run as root; the package brings a user of its own."""
    return ["--user=mysql"] if os.geteuid() == 0 else []


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def server(*options: str, place: Path | None = None) -> Iterator[MariaDb]:
    """Start a server with a user who may do everything, and these options of its own; stop it afterwards.

    Its files are in this place.
    """
    with folder_in(place, "headgate-mariadb-") as folder:
        if os.geteuid() == 0:
            user = pwd.getpwnam("mysql")
            os.chown(folder, user.pw_uid, user.pw_gid)
        data = folder / "data"
        root = pwd.getpwuid(os.geteuid()).pw_name
        install = [_program("mariadb-install-db"), "--no-defaults", f"--datadir={data}", "--skip-test-db", *_user()]
        subprocess.run([*install, f"--auth-root-socket-user={root}"], check=True, capture_output=True)
        port = _free_port()
        command = [_program("mariadbd"), "--no-defaults", f"--datadir={data}", f"--socket={folder}/s", *_user()]
        small = ["--innodb-buffer-pool-size=32M", "--innodb-flush-log-at-trx-commit=0", f"--pid-file={folder}/pid"]
        listen = [f"--port={port}", "--bind-address=127.0.0.1", "--skip-name-resolve"]
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen([*command, *small, *listen, *options], stdout=log, stderr=log, cwd=folder)
        try:
            found = MariaDb(port, f"{folder}/s")
            _wait(found, process, folder / "log")
            found.run(
                f"CREATE USER {USER}@'127.0.0.1' IDENTIFIED BY '{PASSWORD}'",
                f"GRANT ALL ON *.* TO {USER}@'127.0.0.1'",
            )
            yield found
        finally:
            process.terminate()
            process.wait(timeout=60)


def _wait(found: MariaDb, process: "subprocess.Popen[bytes]", log: Path) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and process.poll() is None:
        with suppress(OSError), socket.socket(socket.AF_UNIX) as probe:
            probe.connect(found.socket)
            return
        time.sleep(0.05)
    raise RuntimeError("MariaDB did not start:\n" + log.read_text(errors="replace"))
