"""Tables of the lakehouse, delivered to real databases by a real Spark."""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from headgate.pipelines.definitions import Sending
from headgate.pipelines.steps import Deliver
from headgate.worker.steps import deliver
from headgate.worker.steps.context import Endpoint, Result, StepFailed
from tests.support.mariadb import MariaDb
from tests.support.steps import Running, Workshop, workshop
from tests.worker.delivering.support import asked, left_over, mysql, postgresql

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

EVERYTHING = """
SELECT id, id % 2 = 0 AS yes, CAST(id AS INT) AS small, CAST(id / 4 AS FLOAT) AS single, id / 8D AS double,
  CAST(id * 1000 / 7 AS DECIMAL(20, 4)) AS amount, concat('größer "', id, '" 🌊') AS text,
  CAST(concat('b', id) AS BINARY) AS raw, DATE '0001-01-01' + CAST(id AS INT) AS day,
  TIMESTAMP '2026-03-29 01:30:00.123456' + make_interval(0, 0, 0, 0, CAST(id AS INT)) AS moment,
  TIMESTAMP_NTZ '1890-01-01 02:03:04.000005' AS wall, named_struct('a', id, 'b', array('x', NULL)) AS parts,
  map('k', id) AS pairs, CAST(NULL AS STRING) AS `no "name" \\`\\``
FROM range(5) UNION ALL SELECT 99, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
""".replace("\\`\\`", "``")
MOMENT = datetime(2026, 3, 29, 2, 30, 0, 123456, tzinfo=UTC)
FIRST = (1, False, 1, 0.25, 0.125, Decimal("142.8571"), 'größer "1" 🌊', b"b1", date(1, 1, 2))


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workshop]:
    with workshop(tmp_path_factory.mktemp("tables"), outgoing={"allow": ["127.0.0.1"]}) as found:
        found.rows(f"CREATE TABLE raw.everything AS {EVERYTHING}")
        found.rows("CREATE TABLE raw.many AS SELECT id, id % 7 AS kind FROM range(0, 100000, 1, 6)")
        yield found


def delivered(shop: Workshop, endpoint: Endpoint, table: str, **sending: Any) -> tuple[Result, Running]:
    running = shop.run(reads=(table,), endpoints={endpoint.id: endpoint})
    step = Deliver(Sending(table=table, **{"target": "out.sent", **sending}), shop.item(table))
    running.context.job = replace(running.context.job, steps=[step], pipeline="pip_x")
    return deliver.run(step, running.context), running


def test_every_type_gets_to_postgresql_as_it_was(shop: Workshop, postgres_url: str) -> None:
    endpoint = postgresql(postgres_url)
    result, running = delivered(shop, endpoint, "raw.everything")
    snapshot = shop.rows("SELECT snapshot_id FROM raw.everything.snapshots")[0]["snapshot_id"]
    assert (result.rows_out, result.detail) == (6, {"snapshot": str(snapshot)})
    assert "Delivered 6 rows to out.sent" in running.text
    rows = asked(endpoint, "SELECT * FROM out.sent ORDER BY id")
    wall = MOMENT.replace(tzinfo=None, year=1890, month=1, day=1, hour=2, minute=3, second=4, microsecond=5)
    assert rows[1] == (*FIRST, MOMENT, wall, {"a": 1, "b": ["x", None]}, {"k": 1}, None)
    assert rows[5] == (99, *[None] * 13)
    assert left_over(endpoint) == []


def test_every_type_gets_to_mysql_as_it_was(shop: Workshop, mariadb_server: MariaDb) -> None:
    endpoint = mysql(mariadb_server)
    assert delivered(shop, endpoint, "raw.everything")[0].rows_out == 6
    rows = asked(endpoint, "SELECT * FROM sent ORDER BY id")
    wall = MOMENT.replace(tzinfo=None, year=1890, month=1, day=1, hour=2, minute=3, second=4, microsecond=5)
    *plain, parts, pairs, nothing = rows[1]
    assert tuple(plain) == (*FIRST, MOMENT.replace(tzinfo=None), wall)
    assert (json.loads(parts), json.loads(pairs), nothing) == ({"a": 1, "b": ["x", None]}, {"k": 1}, None)
    assert rows[5] == (99, *[None] * 13)
    assert left_over(endpoint) == []


def test_what_a_driver_says_in_spark_is_told_in_words(shop: Workshop, postgres_url: str) -> None:
    endpoint = postgresql(postgres_url)
    shop.rows("CREATE TABLE raw.zero AS SELECT 'a' || char(0) AS text")
    with pytest.raises(StepFailed) as caught:
        delivered(shop, endpoint, "raw.zero")
    assert (caught.value.code, caught.value.passing) == ("VALUE", False)
    assert "0x00" in caught.value.message
    assert left_over(endpoint) == []


def test_a_table_that_may_not_be_read_is_not_there(shop: Workshop, postgres_url: str) -> None:
    """The run's token decides: it has no table that its pipeline did not declare."""
    endpoint = postgresql(postgres_url)
    running = shop.run(reads=("raw.many",), endpoints={endpoint.id: endpoint})
    step = Deliver(Sending(table="raw.everything", target="out.sent"), shop.item("raw.everything"))
    running.context.job = replace(running.context.job, steps=[step])
    with pytest.raises(StepFailed, match="does not exist yet"):
        deliver.run(step, running.context)
