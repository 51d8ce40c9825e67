"""Databases over TLS: the certificate is checked against the name, and against the authority that was given."""

import os
import pwd
import shutil
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from headgate.worker.steps.context import Endpoint
from tests.outgoing import Authority
from tests.support import mariadb, postgres
from tests.worker.answers.support import endpoint, failure_of, said

HERE = "127.0.0.1"


def _given_to(user: str, file: Path) -> Path:
    """A key that only its server may read."""
    file.chmod(0o600)
    if os.geteuid() == 0:
        found = pwd.getpwnam(user)
        os.chown(file, found.pw_uid, found.pw_gid)
    return file


def _pem(authority: Authority) -> str:
    return authority.certificate.public_bytes(Encoding.PEM).decode()


def _check(kind: str, config: dict[str, object], password: str, authority: Authority, stranger: Authority) -> None:
    def place(**more: object) -> Endpoint:
        return endpoint(kind, {**config, **more}, password=password)

    assert "over TLS" in said(place(tls="verify", tls_ca=_pem(authority)))
    assert "over TLS" in said(place(tls="require"))
    for wrong in (
        place(tls="verify", tls_ca=_pem(stranger)),
        place(tls="verify"),
        place(tls="verify", tls_ca=_pem(authority), host="localhost"),
    ):
        failure = failure_of(wrong)
        assert failure.code == "TLS", failure.message
        assert "certificate" in failure.message


@pytest.fixture
def authorities(tmp_path: Path) -> tuple[Authority, Authority]:
    found = []
    for name in ("known", "stranger"):
        (tmp_path / name).mkdir()
        found.append(Authority(tmp_path / name))
    found[0].server(HERE)
    return found[0], found[1]


@pytest.mark.postgres
def test_postgresql_over_tls(tmp_path: Path, authorities: tuple[Authority, Authority]) -> None:
    with postgres.server() as url, psycopg.connect(url, autocommit=True) as connection:
        [data] = connection.execute("SHOW data_directory").fetchone() or [""]
        shutil.copy(tmp_path / "known" / f"{HERE}.pem", f"{data}/server.pem")
        _given_to("postgres", Path(data, "server.pem"))
        for setting in ("ssl_cert_file = 'server.pem'", "ssl_key_file = 'server.pem'", "ssl = on"):
            connection.execute(f"ALTER SYSTEM SET {setting}")
        connection.execute("SELECT pg_reload_conf()")
        config = {"host": HERE, "port": urlsplit(url).port, "database": "postgres", "user": "headgate"}
        _check("postgresql", config, "no password is asked for", *authorities)


def test_mariadb_over_tls(tmp_path: Path, authorities: tuple[Authority, Authority]) -> None:
    folder = tmp_path / "for-mariadb"
    folder.mkdir()
    folder.chmod(0o755)
    # However deep it lies: its server runs as a user of its own.
    for one in (tmp_path, *tmp_path.parents):
        if one.name.startswith(("pytest-", "popen-")) or one == tmp_path:
            one.chmod(one.stat().st_mode | 0o055)
    shutil.copy(tmp_path / "known" / f"{HERE}.pem", folder / "server.pem")
    key = _given_to("mysql", folder / "server.pem")
    with mariadb.server(f"--ssl-cert={key}", f"--ssl-key={key}") as server:
        server.run("CREATE DATABASE shop")
        config = {"host": HERE, "port": server.port, "database": "shop", "user": mariadb.USER}
        _check("mysql", config, mariadb.PASSWORD, *authorities)
