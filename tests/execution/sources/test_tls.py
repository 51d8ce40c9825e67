"""Tables of databases over TLS: Spark's drivers check certificates as our own do."""

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest

from headgate.execution.steps.context import StepFailed
from tests.execution.sources.support import Source
from tests.support import secured
from tests.support.mariadb import PASSWORD, USER
from tests.support.secured import HERE, Trust
from tests.support.steps import Workshop

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


def _check(shop: Workshop, kind: str, config: dict[str, Any], trust: Trust, name: str) -> None:
    def source(**tls: Any) -> Source:
        return Source(
            shop, kind, {**config, "tls": "verify", "tls_ca": None, "properties": {}, **tls}, password=PASSWORD
        )

    for sound in (source(tls_ca=trust.known), source(tls="require")):
        sound.land(name)
        assert sound.values() == [(1, "one")]
    for wrong in (
        source(tls_ca=trust.stranger),
        source(),
        source(tls_ca=trust.known, host="localhost"),
    ):
        with pytest.raises(StepFailed, match="check `tls`, and that the certificate is valid for this host"):
            wrong.land(name)


def test_postgresql(shop: Workshop, tmp_path: Path) -> None:
    trust = Trust(tmp_path)
    with secured.postgresql(trust) as url:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("CREATE TABLE things AS SELECT 1 AS id, 'one' AS name")
            connection.execute(f"CREATE ROLE visitor LOGIN PASSWORD '{PASSWORD}'")
            connection.execute("GRANT SELECT ON things TO visitor")
        config = {"host": HERE, "port": urlsplit(url).port, "database": "postgres", "user": "visitor"}
        _check(shop, "postgresql", config, trust, "public.things")


def test_mysql(shop: Workshop, tmp_path: Path) -> None:
    trust = Trust(tmp_path)
    with secured.mysql(trust) as server:
        server.run("CREATE TABLE shop.things AS SELECT 1 AS id, 'one' AS name")
        config = {"host": HERE, "port": server.port, "database": "shop", "user": USER}
        _check(shop, "mysql", config, trust, "shop.things")
