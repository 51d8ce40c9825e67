"""Databases that speak TLS, with a certificate of an authority that only a test knows."""

import os
import pwd
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from cryptography.hazmat.primitives.serialization import Encoding

from tests.outgoing import Authority
from tests.support import mariadb, postgres

HERE = "127.0.0.1"
"""Whom the certificate is for."""


class Trust:
    """Two authorities, as text: one that has signed the server's certificate, and one that has not."""

    def __init__(self, folder: Path) -> None:
        found = []
        for name in ("known", "stranger"):
            (folder / name).mkdir()
            found.append(Authority(folder / name))
        found[0].server(HERE)
        self.folder = folder
        self.known, self.stranger = (one.certificate.public_bytes(Encoding.PEM).decode() for one in found)

    def give(self, user: str, file: Path) -> Path:
        """The server's certificate and key as a file that only its server may read."""
        shutil.copy(self.folder / "known" / f"{HERE}.pem", file)
        file.chmod(0o600)
        if os.geteuid() == 0:
            found = pwd.getpwnam(user)
            os.chown(file, found.pw_uid, found.pw_gid)
        return file


@contextmanager
def postgresql(trust: Trust) -> Iterator[str]:
    """A PostgreSQL that speaks TLS to those who ask for it."""
    with postgres.server() as url, psycopg.connect(url, autocommit=True) as connection:
        [data] = connection.execute("SHOW data_directory").fetchone() or [""]
        trust.give("postgres", Path(data, "server.pem"))
        for setting in ("ssl_cert_file = 'server.pem'", "ssl_key_file = 'server.pem'", "ssl = on"):
            connection.execute(f"ALTER SYSTEM SET {setting}")
        connection.execute("SELECT pg_reload_conf()")
        yield url


@contextmanager
def mysql(trust: Trust) -> Iterator[mariadb.MariaDb]:
    """A MariaDB that speaks TLS to those who ask for it, with a database `shop`."""
    folder = trust.folder / "for-mariadb"
    folder.mkdir()
    folder.chmod(0o755)
    # However deep it lies: its server runs as a user of its own.
    for one in (trust.folder, *trust.folder.parents):
        if one.name.startswith(("pytest-", "popen-")) or one == trust.folder:
            one.chmod(one.stat().st_mode | 0o055)
    key = trust.give("mysql", folder / "server.pem")
    with mariadb.server(f"--ssl-cert={key}", f"--ssl-key={key}") as server:
        server.run("CREATE DATABASE shop")
        yield server
