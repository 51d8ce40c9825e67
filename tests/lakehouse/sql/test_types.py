"""Every type that a result may have, with NULL and extreme values, over every way out: pages, downloads, client, commands."""

import csv
import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headgate.client import Headgate
from headgate.client.statements import Rows
from headgate.kit.database import Database
from headgate.lakehouse.sql.results import plain
from tests.lakehouse.sql.conftest import Bench, opened
from tests.support.spark import SharedSpark

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

CASES: tuple[tuple[str, Any], ...] = (
    ("true", True),
    ("-128Y", -128),
    ("32767S", 32767),
    ("-2147483648", -2147483648),
    ("9223372036854775807", 9223372036854775807),
    ("-9223372036854775808L", -9223372036854775808),
    ("float('-Infinity')", "-Infinity"),
    ("double('NaN')", "NaN"),
    ("-1.5e300D", -1.5e300),
    ("CAST(0 AS DECIMAL(38, 18))", "0.000000000000000000"),
    ("CAST('-99999999999999999999999999999999999999' AS DECIMAL(38, 0))", "-" + "9" * 38),
    ("''", ""),
    ("'a,\"b' || chr(10) || chr(0) || '😀'", 'a,"b\n\x00😀'),
    ("'x' COLLATE UTF8_LCASE", "x"),
    ("CAST('a' AS CHAR(3))", "a"),
    ("X'00ff'", "AP8="),
    ("DATE '2026-02-28'", "2026-02-28"),
    ("DATE '-0001-01-01'", "-0001-01-01"),
    ("date_from_unix_date(2147483647)", "+5881580-07-11"),
    ("date_from_unix_date(-2147483648)", "-5877641-06-23"),
    ("TIMESTAMP '2026-02-28 12:00:00.5'", "2026-02-28T12:00:00.500000Z"),
    ("timestamp_micros(9223372036854775807)", "+294247-01-10T04:00:54.775807Z"),
    ("timestamp_micros(-9223372036854775808)", "-290308-12-21T19:59:05.224192Z"),
    ("TIMESTAMP_NTZ '0001-01-01 00:00:00'", "0001-01-01T00:00:00.000000"),
    ("TIMESTAMP_NTZ '294247-01-10 04:00:54.775807'", "+294247-01-10T04:00:54.775807"),
    ("INTERVAL '1-2' YEAR TO MONTH", "INTERVAL '1-2' YEAR TO MONTH"),
    ("INTERVAL '-3' MONTH", "INTERVAL '-3' MONTH"),
    ("make_ym_interval(-178956970, -8)", "INTERVAL '-178956970-8' YEAR TO MONTH"),
    ("INTERVAL '5' DAY", "INTERVAL '5' DAY"),
    ("INTERVAL '1 02:03:04.5' DAY TO SECOND", "INTERVAL '1 02:03:04.5' DAY TO SECOND"),
    ("make_dt_interval(-106751991, -4, 0, -54.775808)", "INTERVAL '-106751991 04:00:54.775808' DAY TO SECOND"),
    ("make_interval(1, 2, 3, 4, 5, 6, 7.8)", "1 years 2 months 25 days 5 hours 6 minutes 7.8 seconds"),
    ("""parse_json('{"a": [1, "x", null, 1.5]}')""", '{"a":[1,"x",null,1.5]}'),
    ("parse_json('null')", "null"),
    ("""parse_json('"x"')""", '"x"'),
    ("CAST(X'00' AS VARIANT)", '"AA=="'),
    ("array()", []),
    ("map()", []),
    ("struct()", {}),
    ("array(NULL)", [None]),
    ("array(array(1), NULL, array())", [[1], None, []]),
    ("map('k', 1.50BD, 'l', NULL)", [["k", "1.50"], ["l", None]]),
    ("array(INTERVAL '1' MONTH, NULL)", ["INTERVAL '1' MONTH", None]),
    ("map(INTERVAL '1' MONTH, INTERVAL '2' DAY)", [["INTERVAL '1' MONTH", "INTERVAL '2' DAY"]]),
    ("map('v', parse_json('[1]'), 'n', NULL)", [["v", "[1]"], ["n", None]]),
    (
        "named_struct('i', INTERVAL '1' MONTH, 's', named_struct('v', parse_json('1')), 'b', X'00', 'n', NULL)",
        {"i": "INTERVAL '1' MONTH", "s": {"v": "1"}, "b": "AA==", "n": None},
    ),
    ("array(map(1, named_struct('v', parse_json('1'), 'e', struct())))", [[[1, {"v": "1", "e": {}}]]]),
)
NULLS = (
    "VOID", "BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(38, 38)", "STRING", "CHAR(3)",
    "VARCHAR(3)", "BINARY", "DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "INTERVAL YEAR TO MONTH", "INTERVAL DAY TO SECOND",
    "INTERVAL", "VARIANT", "ARRAY<VARIANT>", "MAP<STRING, INTERVAL MONTH>", "STRUCT<v: VARIANT, i: INTERVAL DAY>",
)  # fmt: skip
NOT_UTF8 = ("CAST(X'61ff' AS STRING)", "a\ufffd")
"""Bytes in a text: JSON and CSV cannot hold them, Arrow and Parquet give them as they are."""
TABLE = (*CASES, *((f"CAST(NULL AS {one})", None) for one in NULLS))
SQL = "SELECT " + ", ".join(f"{sql} AS c{n}" for n, (sql, _) in enumerate(TABLE)) + " FROM range(1100)"
ROW = [value for _, value in TABLE]


@dataclass
class Made:
    """The statement that has it all, and who ran it."""

    bench: Bench
    statement: dict[str, Any]

    def get(self, path: str, **more: Any) -> Any:
        return self.bench.get("Bea", self.statement["id"], path, **more)

    def command(self, *arguments: str) -> bytes:
        given = {"HEADGATE_SERVER_URL": self.bench.address, "HEADGATE_TOKEN": self.bench.millrace.token("Bea")}
        program = str(Path(sys.executable).with_name("headgate"))
        found = subprocess.run(
            [program, "statement", "results", self.statement["id"], *arguments],
            env={**os.environ, **given},
            capture_output=True,
            check=False,
        )
        assert found.returncode == 0, found.stderr
        return found.stdout


@pytest.fixture(scope="module")
def made(shared_spark: SharedSpark, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Made]:
    folder = tmp_path_factory.mktemp("types")
    database = Database(f"sqlite:///{folder}/headgate.db")
    with opened(shared_spark, database, folder, sql={"max_bytes": 8_000_000}) as bench, bench.worker():
        found = bench.run("Bea", SQL)
        assert found["state"] == "succeeded", found["error"]
        assert (found["rows"], found["truncated"]) == (1100, False)
        assert found["pages"] > 1
        yield Made(bench, found)


def as_cells(row: list[str]) -> list[Any]:
    """Cells of CSV as the values that JSON has: texts are themselves, what is nested or a number is JSON."""
    return [one if isinstance(value, str) else json.loads(one or "null") for one, value in zip(row, ROW, strict=True)]


def same(column: Any, value: Any, whole: Any) -> bool:
    """Whether a column of Parquet is that of Arrow; or JSON text, where Parquet has no such type."""
    if column.type != whole.type and pa.types.is_string(column.type):
        return all(json.loads(one) == value for one in column.to_pylist())
    read, given = column.combine_chunks(), whole.combine_chunks()
    return read.null_count == given.null_count and plain(read.cast(given.type)) == plain(given)


def test_pages_give_every_type_as_json(made: Made) -> None:
    assert made.statement["data"][0] == ROW
    assert [one["name"] for one in made.statement["columns"]] == [f"c{n}" for n in range(len(ROW))]
    last = made.get(f"/pages/{made.statement['pages'] - 1}")
    assert last.status_code == 200
    assert last.json()["data"][-1] == ROW


def test_a_download_as_csv_is_whole(made: Made) -> None:
    answer = made.get("/download", format="csv")
    _, *rows = csv.reader(io.StringIO(answer.text, newline=""))
    assert len(rows) == 1100
    assert as_cells(rows[-1]) == ROW


def test_a_download_as_parquet_is_whole_and_typed(made: Made) -> None:
    found = pq.read_table(io.BytesIO(made.get("/download", format="parquet").content))
    with Headgate(made.bench.address, made.bench.millrace.token("Bea")) as headgate:
        whole = Rows(headgate, made.statement).arrow()
    assert found.num_rows == whole.num_rows == 1100
    for number, (sql, value) in enumerate(TABLE):
        assert same(found.column(number), value, whole.column(number)), sql


def test_python_gets_every_type(made: Made) -> None:
    with Headgate(made.bench.address, made.bench.millrace.token("Bea")) as headgate:
        rows = headgate.sql(f"{SQL} LIMIT 2")
        assert [list(row) for row in rows] == [ROW, ROW]
        assert rows.arrow().num_rows == 2


def test_commands_print_and_save_every_type(made: Made, tmp_path: Path) -> None:
    assert json.loads(made.command("--format", "json"))["rows"][-1] == ROW
    assert b"INTERVAL '1-2' YEAR TO MONTH" in made.command("--format", "table")
    _, *rows = csv.reader(io.StringIO(made.command("--format", "csv").decode(), newline=""))
    assert as_cells(rows[-1]) == ROW
    for kind in ("arrow", "parquet"):
        target = tmp_path / f"rows.{kind}"
        made.command("--format", kind, "-o", str(target))
        read = pq.read_table if kind == "parquet" else lambda path: pa.ipc.open_stream(path.read_bytes()).read_all()
        assert read(target).num_rows == 1100


def test_bytes_that_are_no_text_break_nothing(made: Made) -> None:
    sql, value = NOT_UTF8
    found = made.bench.run("Bea", f"SELECT {sql} AS v, array({sql}) AS w, map({sql}, struct({sql} AS f)) AS x")
    assert found["data"] == [[value, [value], [[value, {"f": value}]]]]
    text = made.bench.get("Bea", found["id"], "/download", format="csv")
    assert list(csv.reader(io.StringIO(text.text)))[1][0] == value
    parquet = made.bench.get("Bea", found["id"], "/download", format="parquet")
    assert pq.read_table(io.BytesIO(parquet.content)).column("v").cast(pa.binary()).to_pylist() == [b"a\xff"]


def test_the_type_in_sql_stays_what_it_is(made: Made) -> None:
    found = made.bench.rows("Bea", "DESCRIBE QUERY SELECT INTERVAL '1' MONTH AS i, array(parse_json('1')) AS v")
    assert [row[:2] for row in found] == [["i", "interval month"], ["v", "array<variant>"]]
    sql = "SELECT typeof(i), i + INTERVAL '1' MONTH, max(i) OVER () FROM VALUES (INTERVAL '1' MONTH) AS t(i)"
    assert made.bench.rows("Bea", sql) == [["interval month", "INTERVAL '2' MONTH", "INTERVAL '1' MONTH"]]


def test_no_table_holds_an_interval_or_a_variant(made: Made) -> None:
    for sql in (
        "INTERVAL '1' MONTH",
        "INTERVAL '1' DAY",
        "make_interval(1)",
        "parse_json('1')",
        "array(parse_json('1'))",
    ):
        failed = made.bench.run("Tess", f"CREATE TABLE raw.of_no_type AS SELECT {sql} AS v")
        assert failed["state"] == "failed", sql
        assert failed["error"]["code"] not in {"INTERNAL", "INTERNAL_ERROR", "STUCK"}, failed["error"]
    assert made.bench.run("Tess", "SELECT * FROM raw.of_no_type")["error"]["code"] == "TABLE_OR_VIEW_NOT_FOUND"
