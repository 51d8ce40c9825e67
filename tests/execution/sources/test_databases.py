"""Tables of real databases: their types, in parts, since the last run."""

import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest

from headgate.execution.steps import land
from headgate.execution.steps.context import Result, RunStopped, StepFailed
from tests.execution.sources.support import Source
from tests.support.mariadb import PASSWORD, USER, MariaDb
from tests.support.spark import within
from tests.support.steps import Running, Workshop

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


class Postgres(Source):
    """A source of PostgreSQL's tables."""

    def __init__(self, shop: Workshop, url: str) -> None:
        parts = urlsplit(url)
        config: dict[str, Any] = {
            "host": parts.hostname,
            "port": parts.port,
            "database": parts.path[1:],
            "user": parts.username,
            "tls": "off",
            "tls_ca": None,
            "properties": {},
        }
        super().__init__(shop, "postgresql", config)
        self.url = url

    def run(self, *statements: str) -> None:
        """Execute statements there."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            for one in statements:
                connection.execute(one)


@pytest.fixture
def postgres(shop: Workshop, postgres_url: str) -> Iterator[Postgres]:
    found = Postgres(shop, postgres_url)
    found.run("DROP SCHEMA IF EXISTS shop CASCADE", "CREATE SCHEMA shop")
    yield found
    found.run("DROP SCHEMA IF EXISTS shop CASCADE")


class Maria(Source):
    """A source of MariaDB's tables."""

    def __init__(self, shop: Workshop, server: MariaDb) -> None:
        config: dict[str, Any] = {
            "host": "127.0.0.1",
            "port": server.port,
            "database": "shop",
            "user": USER,
            "tls": "off",
            "tls_ca": None,
            "properties": {},
        }
        super().__init__(shop, "mysql", config, password=PASSWORD)
        self.run = server.run


@pytest.fixture
def mariadb(shop: Workshop, mariadb_server: MariaDb) -> Iterator[Maria]:
    mariadb_server.run(
        "DROP DATABASE IF EXISTS shop", "CREATE DATABASE shop CHARACTER SET utf8mb4", "SET GLOBAL time_zone = '+05:00'"
    )
    yield Maria(shop, mariadb_server)
    mariadb_server.run("SET GLOBAL time_zone = 'SYSTEM'")


def said(source: Source) -> str:
    """The table's columns."""
    return "; ".join(f"{name} {kind}" for name, kind in source.types().items())


AT = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)


def test_types_of_postgresql(postgres: Postgres) -> None:
    postgres.run(
        "CREATE TYPE shop.mood AS ENUM ('sad', 'ok')",
        "CREATE DOMAIN shop.amount AS numeric(12, 2)",
        """CREATE TABLE shop."Odd Table" (
        id bigint PRIMARY KEY, small smallint, whole int, r real, d double precision, flag boolean,
        money numeric(12, 2), "any" numeric, huge numeric(60, 2), own shop.amount, mood shop.mood,
        t text, v varchar(10), c char(5), j json, jb jsonb, u uuid, b bytea,
        day date, at timestamptz, local timestamp, clock time, span interval, address inet,
        ints int[], texts text[], grid int[][], ids uuid[], "Größe" int, "a""b" int)""",
        """INSERT INTO shop."Odd Table" VALUES (1, 2, 3, 1.5, 2.5, true, 1.50, 123456789012.123456789, 99.50, 7.25, 'ok',
        'ü', 'v', 'c', '{"a": 1}', '{"b": [2]}', '00000000-0000-0000-0000-000000000001', '\\x00ff',
        '2026-01-02', '2026-01-02T04:04:05.678901+01', '2026-01-02T03:04:05.678901', '12:30', '1 day', '10.0.0.1',
        '{1,2,null}', '{a,"b c"}', '{{1,2},{3,4}}', '{00000000-0000-0000-0000-000000000002}', 8, 9)""",
        'INSERT INTO shop."Odd Table" (id) VALUES (2)',
        'INSERT INTO shop."Odd Table" (id, "any") VALUES (3, 1e30), (4, \'NaN\')',
    )
    found = postgres.land("shop.Odd Table")
    assert (found.rows_in, found.rows_out, found.rejected) == (4, 2, 2)
    assert found.bytes > 0
    assert said(postgres) == (
        "id bigint; small int; whole int; r float; d double; flag boolean; money decimal(12,2); any decimal(38,18); "
        "huge decimal(38,18); own decimal(12,2); mood string; t string; v string; c string; j string; jb string; "
        "u string; b binary; day date; at timestamp; local timestamp; clock string; span string; address string; "
        "ints array<int>; texts array<string>; grid array<array<int>>; ids array<string>; größe int; a_b int"
    )
    first, second = postgres.rows(order="id")
    assert list(first.values())[:10] == [
        *(
            1,
            2,
            3,
            1.5,
            2.5,
            True,
            Decimal("1.50"),
            Decimal("123456789012.123456789"),
            Decimal("99.5"),
            Decimal("7.25"),
        ),
    ]
    assert (first["mood"], first["j"], first["jb"]) == ("ok", '{"a": 1}', '{"b": [2]}')
    assert (first["u"], first["b"]) == ("00000000-0000-0000-0000-000000000001", b"\x00\xff")
    assert (first["day"], first["at"], first["local"]) == (date(2026, 1, 2), AT, AT)
    assert (first["clock"], first["span"], first["address"]) == ("12:30:00", "1 day", "10.0.0.1/32")
    assert (first["ints"], first["texts"], first["grid"]) == ([1, 2, None], ["a", "b c"], [[1, 2], [3, 4]])
    assert (first["größe"], first["a_b"]) == (8, 9)
    assert {value for name, value in second.items() if name != "id"} == {None}
    assert {row["reason"].partition(":")[0] for row in postgres.rejected()} == {"any"}


def test_types_of_mariadb(mariadb: Maria) -> None:
    mariadb.run(
        """CREATE TABLE shop.`odd ``table` (id bigint unsigned PRIMARY KEY, tiny tinyint(1), flag bit(1), bits bit(8),
        u int unsigned, m mediumint, f float, d double, price decimal(12,2), huge decimal(60,2), y year,
        t text, v varchar(20), e enum('a','b'), s set('x','y'), j json, b varbinary(10),
        day date, at timestamp(6) NULL, local datetime(6), clock time, p point, u2 uuid)""",
        "SET time_zone = '+00:00'",
        """INSERT INTO shop.`odd ``table` VALUES (18446744073709551615, 5, b'1', b'101', 4294967295, -5, 1.5, 2.5, 9.99,
        1234567890.5, 2026, 'ü€😀', 'v', 'b', 'x,y', '{"a": 1}', X'00FF', '2026-01-02', FROM_UNIXTIME(1767323045.678901),
        '2026-01-02 03:04:05.678901', '12:30:00', POINT(1, 2), '00000000-0000-0000-0000-000000000001')""",
        "INSERT INTO shop.`odd ``table` (id) VALUES (1)",
    )
    found = mariadb.land("shop.odd `table")
    assert (found.rows_in, found.rows_out, found.rejected) == (2, 2, 0)
    second, first = mariadb.rows(order="id")
    assert said(mariadb) == (
        "id decimal(20,0); tiny int; flag boolean; bits bigint; u bigint; m int; f float; d double; "
        "price decimal(12,2); huge decimal(38,2); y int; t string; v string; e string; s string; j string; b binary; "
        "day date; at timestamp; local timestamp; clock string; p string; u2 string"
    )
    assert (int(first["id"]), first["tiny"], first["flag"], int(first["bits"])) == (2**64 - 1, 5, True, 5)
    assert (first["u"], first["m"], float(first["f"]), first["d"]) == (4294967295, -5, 1.5, 2.5)
    assert (first["price"], first["huge"], first["y"]) == (Decimal("9.99"), Decimal("1234567890.50"), 2026)
    assert (first["t"], first["e"], first["s"], first["j"]) == ("ü€😀", "b", "x,y", '{"a": 1}')
    assert (first["b"], first["day"], first["local"]) == (b"\x00\xff", date(2026, 1, 2), AT)
    assert (first["at"], first["clock"], first["p"]) == (AT, "12:30:00", "POINT(1 2)")
    assert {value for name, value in second.items() if name != "id"} == {None}


@pytest.fixture(params=["postgres", "mariadb"])
def source(request: pytest.FixtureRequest) -> Any:
    """Each of the databases in turn."""
    return request.getfixturevalue(request.param)


def fill(source: Any, count: int, begin: int = 1) -> None:
    source.run("CREATE TABLE IF NOT EXISTS shop.orders (id int, at timestamp(6) NULL, day date NULL, name varchar(40))")
    rows = ", ".join(
        f"({n}, '2026-01-01 {n // 3600 % 24:02}:{n // 60 % 60:02}:{n % 60:02}', '2026-01-{1 + n % 28:02}', 'n{n}')"
        for n in range(begin, begin + count)
    )
    # The times are meant as UTC, whatever the server's own zone.
    zone = () if isinstance(source, Postgres) else ("SET time_zone = '+00:00'",)
    source.run(*zone, f"INSERT INTO shop.orders VALUES {rows}")


def test_the_cursor_is_that_of_the_rows_read_and_not_of_older_rows_of_the_table(source: Any) -> None:
    stream = {"read": "incremental", "write": "append", "cursor": "id"}
    fill(source, 100)
    assert source.land("shop.orders", **stream).state == {"cursor": "100", "type": "bigint"}
    source.run("DELETE FROM shop.orders WHERE id > 60")
    source.states = {}
    found = source.land("shop.orders", **stream)
    assert (found.rows_in, found.rows_out, found.state) == (60, 60, {"cursor": "60", "type": "bigint"})
    found = source.land("shop.orders", full_refresh=True, **stream)
    assert (found.rows_in, found.rows_out, found.state) == (60, 60, {"cursor": "60", "type": "bigint"})


@pytest.mark.parametrize("column", ["id", "at", "day"])
def test_it_is_read_in_parts(source: Any, column: str) -> None:
    fill(source, 1000)
    source.run("INSERT INTO shop.orders VALUES (NULL, NULL, NULL, 'none')")
    found = source.land("shop.orders", in_parts={"column": column, "parts": 4})
    assert found.rows_out == 1001
    assert "with 4 connections" in source.log
    assert source.values("count(*), count(distinct id), sum(id)") == [(1001, 1000, 500_500)]


def test_what_cannot_be_divided_is_said(postgres: Postgres) -> None:
    fill(postgres, 2)
    with pytest.raises(StepFailed, match="in_parts: name is character varying"):
        postgres.land("shop.orders", in_parts={"column": "name", "parts": 4})
    with pytest.raises(StepFailed, match="has no column 'nothing'; it has id, at, day, name"):
        postgres.land("shop.orders", in_parts={"column": "nothing", "parts": 4})


@pytest.mark.parametrize("cursor", ["id", "at", "name"])
def test_only_what_is_new_is_read(source: Any, cursor: str) -> None:
    stream = {"read": "incremental", "write": "append", "cursor": cursor.upper()}
    fill(source, 9)
    assert source.land("shop.orders", **stream).rows_out == 9
    state = next(iter(source.states.values()))
    assert state["cursor"] == {"id": "9", "at": "2026-01-01T00:00:09.000000Z", "name": "n9"}[cursor]
    source.run("INSERT INTO shop.orders SELECT id, at, day, name FROM shop.orders WHERE id = 9")
    if cursor != "name":
        fill(source, 3, 10)
    found = source.land("shop.orders", **stream)
    more = 0 if cursor == "name" else 3
    assert (found.rows_in, found.rows_out) == (2 + more, 1 + more)
    assert source.values("count(*)") == [(10 + more,)]
    found = source.land("shop.orders", **stream)
    assert found.rows_out == 0
    source.run("DELETE FROM shop.orders WHERE id > 5")
    found = source.land("shop.orders", **stream)
    assert found.rows_in == 0
    assert next(iter(source.states.values())) == found.state
    found = source.land("shop.orders", full_refresh=True, **stream)
    assert source.values("count(*)") == [(5,)]


def test_a_look_back_reads_late_changes_again(source: Any) -> None:
    stream = {"read": "incremental", "write": "merge", "keys": ["id"], "cursor": "at", "look_back": "5 seconds"}
    fill(source, 20)
    assert source.land("shop.orders", **stream).rows_out == 20
    source.run(
        "UPDATE shop.orders SET name = 'late' WHERE id = 16",
        "UPDATE shop.orders SET name = 'too late' WHERE id = 2",
    )
    fill(source, 1, 21)
    found = source.land("shop.orders", **stream)
    assert found.rows_in == 7
    assert source.values("count(*)") == [(21,)]
    assert source.values("name", "1") == sorted([(f"n{n}",) for n in range(1, 22) if n != 16] + [("late",)])


def test_a_cursor_is_needed_and_must_be_one(postgres: Postgres) -> None:
    fill(postgres, 3)
    with pytest.raises(StepFailed, match="requires a cursor"):
        postgres.land("shop.orders", read="incremental", write="append")
    merge: dict[str, Any] = {
        "read": "incremental",
        "write": "merge",
        "keys": ["id"],
        "cursor": "id",
        "look_back": "1 day",
    }
    postgres.land("shop.orders", **merge)
    with pytest.raises(StepFailed, match="look_back is a duration"):
        postgres.land("shop.orders", **merge)
    postgres.run("ALTER TABLE shop.orders ALTER COLUMN id TYPE text")
    with pytest.raises(StepFailed, match="The cursor column id was bigint and is now text; run a full refresh"):
        postgres.land("shop.orders", read="incremental", write="append", cursor="id")
    postgres.run("ALTER TABLE shop.orders ADD flag boolean")
    postgres.states = {}
    with pytest.raises(StepFailed, match="flag is boolean, which cannot be a cursor"):
        postgres.land("shop.orders", read="incremental", write="append", cursor="flag")


def test_an_empty_table_lands_as_an_empty_table(source: Any) -> None:
    source.run("CREATE TABLE shop.nothing (id int, name varchar(10))")
    found = source.land("shop.nothing", read="incremental", write="append", cursor="id")
    assert (found.rows_in, found.rows_out, found.state) == (0, 0, None)
    assert source.types() == {"id": "int", "name": "string"}
    source.run("INSERT INTO shop.nothing VALUES (1, 'one')")
    assert source.land("shop.nothing", read="incremental", write="append", cursor="id").rows_out == 1


def test_drift_of_a_database(postgres: Postgres) -> None:
    fill(postgres, 2)
    postgres.land("shop.orders", write="append")
    postgres.run(
        "ALTER TABLE shop.orders ALTER COLUMN id TYPE bigint, DROP COLUMN day, ADD COLUMN new numeric(5, 1)",
        "UPDATE shop.orders SET id = id + 3000000000, new = 1.5",
    )
    postgres.land("shop.orders", write="append")
    assert postgres.types()["id"] == "bigint"
    assert postgres.values("id, day IS NULL, new") == [
        (1, False, None),
        (2, False, None),
        (3000000001, True, Decimal("1.5")),
        (3000000002, True, Decimal("1.5")),
    ]
    postgres.run(
        "ALTER TABLE shop.orders ALTER COLUMN id TYPE text", "UPDATE shop.orders SET id = 'x' WHERE id = '3000000001'"
    )
    found = postgres.land("shop.orders", write="append")
    assert (found.rows_out, found.rejected) == (1, 1)


def test_what_the_database_refuses_is_told(source: Any, postgres: Postgres) -> None:
    with pytest.raises(StepFailed, match=r"There is no table shop\.none that the connection's user can see"):
        source.land("shop.none")
    good = dict(source.endpoint.config)
    source.endpoint.config["user"] = "nobody_here"
    with pytest.raises(StepFailed, match="rejected the login") as failed:
        source.land("shop.none")
    assert (failed.value.code, failed.value.passing) == ("WRONG_CREDENTIALS", False)
    assert PASSWORD not in failed.value.message
    source.endpoint.config.update({"user": good["user"], "database": "nowhere"})
    with pytest.raises(StepFailed, match="no such database") as failed:
        source.land("shop.none")
    assert failed.value.code == "NO_SUCH_DATABASE"
    source.endpoint.config.update({"database": good["database"], "tls": "verify"})
    with pytest.raises(StepFailed, match="The TLS connection failed") as failed:
        source.land("shop.none")
    assert failed.value.code == "TLS"
    source.endpoint.config.update({"tls": "off", "port": 1})
    with pytest.raises(StepFailed, match=r"127\.0\.0\.1:1 cannot be reached: Connection refused") as failed:
        source.land("shop.none")
    assert (failed.value.code, failed.value.passing) == ("UNREACHABLE", True)
    source.endpoint.config["host"] = "10.255.255.1"
    with pytest.raises(StepFailed, match=r"outgoing\.allow") as failed:
        source.land("shop.none")
    assert failed.value.code == "ADDRESS_REFUSED"


def test_hostile_names_are_names(source: Any) -> None:
    odd = "o'; DROP TABLE orders; -- \\' \"x` y"
    quote = (
        (lambda name: '"' + name.replace('"', '""') + '"')
        if isinstance(source, Postgres)
        else (lambda name: "`" + name.replace("`", "``") + "`")
    )
    fill(source, 1)
    source.run(f"CREATE TABLE shop.{quote(odd)} ({quote(odd)} int)", f"INSERT INTO shop.{quote(odd)} VALUES (7)")
    assert source.land(f"shop.{odd}", read="incremental", write="append", cursor=odd).rows_out == 1
    source.run(f"INSERT INTO shop.{quote(odd)} VALUES (8)")
    parts = {"column": odd, "parts": 2}
    assert source.land(f"shop.{odd}", read="incremental", write="append", cursor=odd, in_parts=parts).rows_out == 1
    assert source.values() == [(7,), (8,)]


def begin(source: Source, name: str, **stream: Any) -> tuple[Running, "Future[Result]"]:
    """Land in another thread, unpublished."""
    running, found = source.start(), Future()  # type: ignore[var-annotated]

    def work() -> None:
        try:
            found.set_result(land.run(source.step(name, **stream), running.context))
        except BaseException as error:  # noqa: BLE001 - the test looks at it
            found.set_exception(error)

    threading.Thread(target=work, daemon=True).start()
    return running, found


def slow(postgres: Postgres) -> None:
    """A table that takes many minutes to read: a moment for each few thousand rows."""
    postgres.run(
        """CREATE FUNCTION shop.slow(n int) RETURNS int LANGUAGE plpgsql VOLATILE AS
        'BEGIN IF n % 5000 = 0 THEN PERFORM pg_sleep(0.5); END IF; RETURN n; END'""",
        "CREATE VIEW shop.slowly AS SELECT shop.slow(n) AS id FROM generate_series(1, 10000000) n",
    )


def active(postgres: Postgres) -> int:
    with psycopg.connect(postgres.url) as connection:
        query = "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE '%slowly%' AND pid <> pg_backend_pid()"
        row = connection.execute(query).fetchone()
        assert row
        return int(row[0])


def test_a_step_that_is_killed_is_done_again_as_if_it_had_not_been(postgres: Postgres) -> None:
    slow(postgres)
    running, found = begin(postgres, "shop.slowly")
    within(60, lambda: active(postgres))
    child = next(iter(running.context.platform._children))
    os.kill(child.pid, signal.SIGKILL)
    with pytest.raises(StepFailed) as failed:
        found.result(60)
    assert failed.value.passing
    within(60, lambda: not active(postgres))
    postgres.run("CREATE OR REPLACE VIEW shop.slowly AS SELECT n AS id FROM generate_series(1, 3000) n")
    result = land.run(postgres.step("shop.slowly"), postgres.start().context)
    assert postgres.running
    postgres.running.publish()
    assert result.rows_out == 3000
    assert postgres.values("count(*), count(distinct id)") == [(3000, 3000)]


def test_a_run_that_is_stopped_stops_in_the_database_too(postgres: Postgres) -> None:
    slow(postgres)
    running, found = begin(postgres, "shop.slowly")
    within(60, lambda: active(postgres))
    running.context.stop()
    with pytest.raises(RunStopped):
        found.result(60)
    within(60, lambda: not active(postgres))


def test_progress_and_stages_are_told(postgres: Postgres) -> None:
    fill(postgres, 200)
    # Slow rows: Spark reports progress every two seconds.
    postgres.run("CREATE VIEW shop.slow AS SELECT * FROM shop.orders WHERE pg_sleep(0.03) IS NOT NULL")
    postgres.land("shop.slow", in_parts={"column": "id", "parts": 2})
    assert postgres.running
    assert postgres.running.told
    assert postgres.running.told[-1].tasks_total >= 1
    assert [line for _, line in postgres.running.lines] == [
        "Reading shop.slow with 2 connections",
        f"Creating `raw`.`{postgres.table}` with 4 columns",
        f"Replacing the rows of `raw`.`{postgres.table}`",
    ]
