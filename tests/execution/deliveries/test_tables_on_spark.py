"""Tables of the lakehouse, delivered to real databases, files and addresses by a real Spark."""

import base64
import csv
import json
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headgate.contracts.external_systems.endpoints import Endpoint
from headgate.contracts.pipelines.definitions import DeliveryIn
from headgate.contracts.pipelines.steps import Deliver
from headgate.execution.steps import deliver
from headgate.execution.steps.context import Result, StepFailed
from headgate.kit.ids import new_id
from tests.execution.deliveries.support import asked, http, left_over, mysql, postgresql
from tests.support.api import Reply, serving
from tests.support.mariadb import MariaDb
from tests.support.steps import Running, Workshop

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
TEXTS = (
    r"""(1, '=1+1'), (2, '-2'), (3, '@x'), (4, '\tx'), (5, '\nx'), (6, 'a,b'), (7, 'say "x"'), (8, 'two\nlines')"""
    r""", (9, 'a\rb'), (10, ''), (11, NULL), (12, ' spaced '), (13, 'back\\slash'), (14, '\"')"""
)
READ = [
    "=1+1",
    "-2",
    "@x",
    "\tx",
    "\nx",
    "a,b",
    'say "x"',
    "two\nlines",
    "a\rb",
    "",
    "",
    " spaced ",
    "back\\slash",
    '"',
]
MOMENT = datetime(2026, 3, 29, 2, 30, 0, 123456, tzinfo=UTC)
FIRST = (1, False, 1, 0.25, 0.125, Decimal("142.8571"), 'größer "1" 🌊', b"b1", date(1, 1, 2))


@pytest.fixture(scope="module")
def shop(shared_shop: Workshop) -> Workshop:
    shared_shop.rows(f"CREATE TABLE raw.everything AS {EVERYTHING}")
    shared_shop.rows("CREATE TABLE raw.many AS SELECT id, id % 7 AS kind FROM range(0, 100000, 1, 6)")
    shared_shop.rows("CREATE TABLE raw.empty (id BIGINT, `=name` STRING)")
    shared_shop.rows(f"CREATE TABLE raw.texts AS SELECT * FROM VALUES {TEXTS} AS t(id, text)")
    return shared_shop


def delivered(shop: Workshop, endpoint: Endpoint, table: str, **sending: Any) -> tuple[Result, Running]:
    running = shop.run(reads=(table,), endpoints={endpoint.id: endpoint})
    step = Deliver(DeliveryIn(table=table, **{"target": "out.sent", **sending}), shop.item(table))
    # The token is of the one run that there is; each delivery has the id of another.
    running.context.job = replace(running.context.job, id=new_id("run"), steps=[step], pipeline="pip_x")
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
    step = Deliver(DeliveryIn(table="raw.everything", target="out.sent"), shop.item("raw.everything"))
    running.context.job = replace(running.context.job, steps=[step])
    with pytest.raises(StepFailed, match="does not exist yet"):
        deliver.run(step, running.context)


def test_a_table_without_rows_makes_and_empties_a_target(shop: Workshop, mariadb_server: MariaDb) -> None:
    endpoint = mysql(mariadb_server)
    result, _ = delivered(shop, endpoint, "raw.empty", write="overwrite")
    assert (result.rows_out, result.detail) == (0, {"snapshot": None})
    asked(endpoint, "INSERT INTO sent VALUES (1, 'x')")
    delivered(shop, endpoint, "raw.empty", write="overwrite")
    assert asked(endpoint, "SELECT COUNT(*) FROM sent") == [(0,)]


def written(shop: Workshop, table: str, **sending: Any) -> tuple[list[Path], Result]:
    """The files of a delivery to a folder, without what tells of them."""
    (root,) = shop.company.settings.deliveries.folders
    endpoint = Endpoint("dst_f", "folder", {"path": str(root)})
    result, _ = delivered(shop, endpoint, table, target="exports", write="overwrite", **sending)
    found = sorted((root / result.detail["place"]).iterdir())
    assert [one.name for one in found if one.name.startswith((".", "_"))] == ["_SUCCESS"]
    return [one for one in found if one.name != "_SUCCESS"], result


def cells(files: list[Path]) -> list[list[str]]:
    """The cells of CSV files, of which each has a header."""
    read = []
    for file in files:
        with file.open(newline="", encoding="utf-8") as opened:
            header, *more = csv.reader(opened)
            read += more
    return [header, *sorted(read, key=lambda row: int(row[0]))]


def test_csv_is_read_by_others_as_it_was_and_a_spreadsheet_runs_nothing(shop: Workshop) -> None:
    files, result = written(shop, "raw.texts", format="csv", formulas="keep")
    assert (result.rows_out, {one.suffix for one in files}) == (14, {".csv"})
    assert cells(files) == [["id", "text"], *([str(number), text] for number, text in enumerate(READ, 1))]
    escaped = [f"'{text}" if number <= 5 else text for number, text in enumerate(READ, 1)]
    assert [row[1] for row in cells(written(shop, "raw.texts")[0])[1:]] == escaped
    files, _ = written(shop, "raw.everything", format="csv")
    row = cells(files)[2]
    assert row[:7] == ["1", "false", "1", "0.25", "0.125", "142.8571", 'größer "1" 🌊']
    assert (base64.b64decode(row[7]), row[8]) == (b"b1", "0001-01-02")
    assert datetime.fromisoformat(row[9]) == MOMENT
    assert row[10] == "1890-01-01T02:03:04.000005"
    assert (json.loads(row[11]), json.loads(row[12]), row[13]) == ({"a": 1, "b": ["x", None]}, {"k": 1}, "")


def test_a_table_without_rows_is_a_file_with_a_header(shop: Workshop) -> None:
    files, result = written(shop, "raw.empty", format="csv")
    assert (result.rows_out, len(files)) == (0, 1)
    assert cells(files) == [["id", "'=name"]]


def test_json_and_parquet_hold_every_type(shop: Workshop) -> None:
    files, _ = written(shop, "raw.everything", format="json")
    lines = [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").splitlines()]
    (row,) = [one for one in lines if one["id"] == 1]
    assert len(lines) == 6
    assert (row["text"], row["amount"], row["parts"], row["pairs"]) == (
        'größer "1" 🌊', 142.8571, {"a": 1, "b": ["x", None]}, {"k": 1},
    )  # fmt: skip
    assert row['no "name" `'] is None
    files, _ = written(shop, "raw.everything", format="parquet")
    table = pa.concat_tables(pq.read_table(one) for one in files)
    assert table.schema.field("moment").type == pa.timestamp("us", tz="UTC")
    (found,) = [one for one in table.to_pylist() if one["id"] == 1]
    assert tuple(found.values())[:9] == FIRST
    assert found["moment"] == MOMENT
    assert (found["parts"], found["pairs"]) == ({"a": 1, "b": ["x", None]}, [("k", 1)])


def test_rows_are_in_the_same_batch_whenever_they_are_sent(shop: Workshop) -> None:
    with serving() as api:
        api.on("/rows", lambda _: Reply())
        for _ in range(2):
            result, running = delivered(shop, http(api.url), "raw.many", target="/rows", batch=10_000)
            assert (result.rows_out, result.detail["batches"]) == (100_000, 10)
        assert "at least once" in running.text
    assert [one.body for one in api.seen[:10]] == [one.body for one in api.seen[10:]]
    rows = [row for one in api.seen[:10] for row in json.loads(one.body)]
    assert sorted(row["id"] for row in rows) == list(range(100_000))
    assert rows[0].keys() == {"id", "kind"}
