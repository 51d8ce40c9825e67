"""A smoke of members' SQL on Spark with PostgreSQL beneath: rights, parallel writers, revocation, cancellation."""

import time
from collections.abc import Iterator

import pytest

from headgate.kit.database import Database
from headgate.schema import METADATA
from tests.lakehouse.sql.conftest import ENDLESS, Bench, opened
from tests.lakehouse.sql.support import STATEMENTS
from tests.support.spark import SharedSpark

pytestmark = [pytest.mark.spark, pytest.mark.postgres, pytest.mark.xdist_group("spark")]


@pytest.fixture(scope="module")
def bench(shared_spark: SharedSpark, postgres_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """The workbench on PostgreSQL, with a worker."""
    database = Database(postgres_url)
    METADATA.drop_all(database.engine)
    with opened(shared_spark, database, tmp_path_factory.mktemp("bench")) as found, found.worker():
        yield found


def test_members_read_and_write_as_they_may(bench: Bench) -> None:
    bench.rows("Tess", "CREATE TABLE service.takings AS SELECT id, id * 2 AS amount FROM range(100)")
    bench.change("Tess", "grant", to="Bea", resource="table:service.takings", level="viewer")
    query = "SELECT count(*), sum(amount) FROM service.takings"
    assert bench.rows("Bea", query) == [[100, 9900]]
    assert bench.run("Bea", "DELETE FROM service.takings")["state"] == "failed"
    assert bench.run("Ben", query)["error"]["code"] == "TABLE_OR_VIEW_NOT_FOUND"
    bench.change("Tess", "revoke", to="Bea", resource="table:service.takings", level="viewer")
    assert bench.run("Bea", query)["error"]["code"] == "TABLE_OR_VIEW_NOT_FOUND"
    assert bench.rows("Tess", query) == [[100, 9900]]


def test_parallel_writers_lose_and_double_nothing(bench: Bench) -> None:
    bench.rows("Tess", "CREATE TABLE raw.meter (n BIGINT)")
    asked = [bench.submit("Tess", f"INSERT INTO raw.meter SELECT id + {10 * n} FROM range(10)") for n in range(4)]
    done = [bench.done("Tess", one, 180) for one in asked]
    assert [one["state"] for one in done] == ["succeeded"] * 4, [one["error"] for one in done]
    assert bench.rows("Tess", "SELECT count(*), count(DISTINCT n), max(n) FROM raw.meter") == [[40, 40, 39]]


def test_a_statement_is_cancelled(bench: Bench) -> None:
    statement = bench.submit("Tess", ENDLESS)
    deadline = time.monotonic() + 60
    while bench.get("Tess", statement).json()["state"] == "queued":
        assert time.monotonic() < deadline
        time.sleep(0.1)
    bench.millrace.as_("Tess").post(f"{STATEMENTS}/{statement}/cancel", None)
    assert bench.done("Tess", statement)["state"] == "cancelled"
    assert bench.rows("Tess", "SELECT 1") == [[1]]
