"""Databases over TLS: the certificate is checked against the name, and against the authority that was given."""

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from headgate.contracts.external_systems.endpoints import Endpoint
from tests.execution.connection_checks.support import endpoint, failure_of, said
from tests.support import mariadb, secured
from tests.support.secured import HERE, Trust


def _check(kind: str, config: dict[str, object], password: str, trust: Trust) -> None:
    def place(**more: object) -> Endpoint:
        return endpoint(kind, {**config, **more}, password=password)

    assert "over TLS" in said(place(tls="verify", tls_ca=trust.known))
    assert "over TLS" in said(place(tls="require"))
    for wrong in (
        place(tls="verify", tls_ca=trust.stranger),
        place(tls="verify"),
        place(tls="verify", tls_ca=trust.known, host="localhost"),
    ):
        failure = failure_of(wrong)
        assert failure.code == "TLS", failure.message
        assert "certificate" in failure.message


@pytest.mark.postgres
def test_postgresql_over_tls(tmp_path: Path) -> None:
    trust = Trust(tmp_path)
    with secured.postgresql(trust) as url:
        config: dict[str, Any] = {"host": HERE, "port": urlsplit(url).port, "database": "postgres", "user": "headgate"}
        _check("postgresql", config, "no password is asked for", trust)


@pytest.mark.processes
def test_mariadb_over_tls(tmp_path: Path) -> None:
    trust = Trust(tmp_path)
    with secured.mysql(trust) as server:
        config: dict[str, Any] = {"host": HERE, "port": server.port, "database": "shop", "user": mariadb.USER}
        _check("mysql", config, mariadb.PASSWORD, trust)
