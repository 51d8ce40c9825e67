"""PostgreSQL and MariaDB, asked by a worker: what it finds there, and what it says when something is wrong."""

import socket
import threading
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest

from headgate.contracts.external_systems.endpoints import Endpoint
from headgate.outgoing import sockets
from tests.execution.connection_checks.support import LOCAL, endpoint, failure_of, said, settings, streams_of
from tests.support.mariadb import PASSWORD, USER, MariaDb

TABLES = """
DROP SCHEMA IF EXISTS shop CASCADE; CREATE SCHEMA shop;
CREATE TABLE shop.orders (id bigint, line smallint, "at" timestamptz NOT NULL, amount numeric(10,2), PRIMARY KEY (line, id));
CREATE VIEW shop.large AS SELECT id FROM shop.orders;
CREATE TABLE shop."Odd name" (x text);
CREATE TABLE shop.hidden (x text);
CREATE TABLE shop.parts (x int) PARTITION BY RANGE (x);
CREATE TABLE shop.parts_1 PARTITION OF shop.parts FOR VALUES FROM (0) TO (10);
DROP ROLE IF EXISTS reader; CREATE ROLE reader LOGIN; GRANT USAGE ON SCHEMA shop TO reader;
GRANT SELECT ON shop.orders, shop.large, shop."Odd name", shop.parts TO reader;
"""


@pytest.fixture
def postgres(postgres_url: str) -> Iterator[Endpoint]:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(TABLES)
        yield _postgres(postgres_url)
        connection.execute("DROP SCHEMA shop CASCADE")


def _postgres(url: str, **more: object) -> Endpoint:
    port = urlsplit(url).port
    config = {"host": "127.0.0.1", "port": port, "database": "postgres", "user": "reader", "tls": "off", **more}
    return endpoint("postgresql", config)


@pytest.mark.postgres
def test_postgresql_tells_its_version_and_the_tables_that_its_user_may_read(postgres: Endpoint) -> None:
    assert said(postgres).endswith(", as reader, without TLS")
    assert said(postgres).startswith("PostgreSQL 1")
    found = streams_of(postgres, pattern="shop.*")
    assert set(found) == {"shop.orders", "shop.large", "shop.Odd name", "shop.parts"}
    assert found["shop.large"]["sort"] == "view"
    assert found["shop.orders"]["keys"] == ["line", "id"]
    assert found["shop.orders"]["columns"] == [
        {"name": "id", "type": "bigint", "nullable": False},
        {"name": "line", "type": "smallint", "nullable": False},
        {"name": "at", "type": "timestamp with time zone", "nullable": False},
        {"name": "amount", "type": "numeric(10,2)", "nullable": True},
    ]


@pytest.mark.postgres
def test_no_more_streams_are_told_than_were_asked_for(postgres: Endpoint) -> None:
    assert len(streams_of(postgres, pattern="shop.*", limit=2)) == 2
    assert list(streams_of(postgres, pattern="shop.o*")) == ["shop.orders"]


@pytest.mark.postgres
def test_what_is_wrong_with_postgresql_is_said_with_what_to_do(postgres_url: str, postgres: Endpoint) -> None:
    assert postgres.kind == "postgresql"
    wrong: dict[str, dict[str, Any]] = {
        "NO_SUCH_DATABASE": {"database": "nowhere"},
        "WRONG_CREDENTIALS": {"user": "nobody"},
        "TLS": {"tls": "verify"},
        "UNREACHABLE": {"port": _closed_port()},
    }
    for code, change in wrong.items():
        failure = failure_of(_postgres(postgres_url, **change))
        assert failure.code == code, failure.message
        assert "check" in failure.message


@pytest.mark.postgres
def test_postgresql_is_not_reached_by_an_address_that_is_not_allowed(postgres_url: str, postgres: Endpoint) -> None:
    failure = failure_of(postgres, settings())
    assert failure.code == "ADDRESS_REFUSED"
    assert "outgoing.allow" in failure.message
    by_name = _postgres(postgres_url, host="localhost")
    assert failure_of(by_name, settings()).code == "ADDRESS_REFUSED"
    assert "PostgreSQL" in said(by_name, settings("localhost"))


@pytest.mark.postgres
def test_a_database_that_does_not_answer_is_given_up_in_time() -> None:
    with Silent() as port:
        place = endpoint("postgresql", {"host": "127.0.0.1", "port": port, "database": "d", "user": "u", "tls": "off"})
        failure = failure_of(place, seconds=2)
        assert (failure.code, failure.passing) == ("TIMEOUT", True)


@pytest.fixture
def mariadb(mariadb_server: MariaDb) -> Endpoint:
    mariadb_server.run(
        "CREATE OR REPLACE DATABASE shop",
        "CREATE TABLE shop.orders (id BIGINT, line SMALLINT, at DATETIME NOT NULL, PRIMARY KEY (line, id))",
        "CREATE VIEW shop.large AS SELECT id FROM shop.orders",
        "CREATE OR REPLACE DATABASE other",
        "CREATE TABLE other.t (x INT)",
    )
    return _mariadb(mariadb_server)


def _mariadb(server: MariaDb, password: str = PASSWORD, **more: object) -> Endpoint:
    config = {"host": "127.0.0.1", "port": server.port, "database": "shop", "user": USER, "tls": "off", **more}
    return endpoint("mysql", config, password=password)


def test_mariadb_tells_its_version_and_its_tables(mariadb: Endpoint) -> None:
    assert said(mariadb).startswith("MariaDB 1")
    found = streams_of(mariadb)
    assert set(found) == {"shop.orders", "shop.large"}
    assert found["shop.large"]["sort"] == "view"
    assert found["shop.orders"]["keys"] == ["line", "id"]
    assert found["shop.orders"]["columns"][0] == {"name": "id", "type": "bigint(20)", "nullable": False}
    assert list(streams_of(mariadb, pattern="shop.o*")) == ["shop.orders"]


def test_what_is_wrong_with_mariadb_is_said_with_what_to_do(mariadb_server: MariaDb, mariadb: Endpoint) -> None:
    assert failure_of(_mariadb(mariadb_server, "not the password")).code == "WRONG_CREDENTIALS"
    assert failure_of(_mariadb(mariadb_server, database="nowhere")).code == "NO_SUCH_DATABASE"
    assert failure_of(_mariadb(mariadb_server, port=_closed_port())).code == "UNREACHABLE"
    assert failure_of(_mariadb(mariadb_server, tls="verify")).code == "TLS"
    assert failure_of(mariadb, settings()).code == "ADDRESS_REFUSED"


def test_a_name_is_looked_up_once_and_each_of_its_addresses_is_judged(
    mariadb_server: MariaDb, mariadb: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert mariadb.kind == "mysql"
    answers = iter([["93.184.215.14", "127.0.0.1"], ["127.0.0.1"]])
    asked: list[str] = []

    def resolver(name: str) -> list[str]:
        asked.append(name)
        return next(answers)

    monkeypatch.setattr(sockets, "system_resolver", resolver)
    place = _mariadb(mariadb_server, host="db.test")
    assert failure_of(place, settings()).code == "ADDRESS_REFUSED"
    assert said(place, settings("db.test")).startswith("MariaDB")
    assert asked == ["db.test", "db.test"]


def test_a_server_that_speaks_another_language_is_told_apart() -> None:
    with Silent(b"HTTP/1.1 400 Bad Request\r\n\r\n") as port:
        config = {"host": "127.0.0.1", "port": port, "database": "d", "user": "u", "tls": "off"}
        assert failure_of(endpoint("mysql", config)).code in {"UNREACHABLE", "FAILED_THERE"}
        assert failure_of(endpoint("postgresql", config)).code in {"UNREACHABLE", "FAILED_THERE"}


def test_nothing_is_dialled_that_leads_nowhere() -> None:
    config = {"host": "no-such-host.invalid", "database": "d", "user": "u"}
    failure = failure_of(endpoint("postgresql", config), LOCAL)
    assert failure.code == "UNREACHABLE"
    assert "no address" in failure.message


def _closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


class Silent:
    """A port that takes connections, says a few bytes or nothing, and then keeps still."""

    def __init__(self, says: bytes = b"") -> None:
        self.says, self.held = says, []  # type: ignore[var-annotated]

    def __enter__(self) -> int:
        self.listener = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._serve, daemon=True).start()
        return int(self.listener.getsockname()[1])

    def _serve(self) -> None:
        while True:
            try:
                found, _ = self.listener.accept()
            except OSError:
                return
            if self.says:
                found.sendall(self.says)
                found.close()
            self.held.append(found)

    def __exit__(self, *_: object) -> None:
        self.listener.close()
        for one in self.held:
            one.close()
