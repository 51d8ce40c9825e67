"""Expectations on a real Spark: what passes, what fails with which rows, and what cannot be checked."""

from datetime import UTC, datetime
from typing import Any

import pytest

from headgate.execution.spark.errors import SqlFailed
from headgate.execution.steps.context import StepFailed
from tests.execution.steps.support import Bench
from tests.support.steps import Workshop

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

ORDERS = "raw.orders"
ROWS = (
    "(1, 'anna@x.de', 1.50, 0.1, DATE '2026-05-01', TIMESTAMP '2026-05-01 23:00:00', map('a', 1))",
    "(1, 'ben\n', 100.00, 0.2, DATE '2026-04-01', NULL, NULL)",
    "(NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
    "(NULL, 'x', -1.00, float('nan'), NULL, NULL, NULL)",
)


@pytest.fixture(scope="module")
def bench(shop: Workshop) -> Bench:
    found = Bench(shop)
    columns = "id INT, `the name` STRING, amount DECIMAL(10, 2), f FLOAT, d DATE, at TIMESTAMP, m MAP<STRING, INT>"
    found.rows(f"CREATE TABLE {ORDERS} ({columns})")
    found.rows(f"INSERT INTO {ORDERS} VALUES {', '.join(ROWS)}")
    found.rows("CREATE TABLE raw.customers (key BIGINT, name STRING)")
    found.rows("INSERT INTO raw.customers VALUES (7, 'x'), (NULL, NULL), (7, 'x')")
    found.rows("CREATE TABLE raw.empty (id INT, at TIMESTAMP)")
    return found


PASSED: list[tuple[dict[str, Any], str]] = [
    ({"check": "not_null", "columns": ["id", "The Name"], "tolerance": 0.5}, "2 of 4 rows of raw.orders have no value"),
    ({"check": "unique", "columns": ["id", "the name"]}, "0 of 4 rows of raw.orders have the same id and the name"),
    ({"check": "accepted", "columns": ["d"], "values": ["2026-05-01", "2026-04-01"]}, "0 of 4 rows"),
    ({"check": "accepted", "columns": ["id"], "values": [1, "2", 1e30]}, "0 of 4 rows"),
    ({"check": "range", "columns": ["at"], "least": "2026-05-02T01:00:00+02:00"}, "0 of 4 rows"),
    ({"check": "pattern", "columns": ["the name"], "pattern": r"x|ben\n|anna@[a-z.]{4}"}, "0 of 4 rows"),
    ({"check": "rows", "least": 1, "most": 4}, "raw.orders has 4 rows; at least 1 and at most 4 are expected"),
    ({"check": "rows", "least": 5, "tolerance": 0.2}, "raw.orders has 4 rows"),
    ({"check": "freshness", "columns": ["d"], "within": "1 day"}, "The newest d of raw.orders is 2026-05-01; no older"),
    ({"check": "freshness", "columns": ["at"], "within": "3 hours"}, "is 2026-05-01 23:00:00; no older than 3 hours"),
    (
        {"check": "sql", "sql": f"SELECT * FROM {ORDERS} WHERE at > :run_time -- none"},
        "returns 0 rows; raw.orders has 4",
    ),
]


def test_what_is_as_expected_passes(bench: Bench) -> None:
    moment = datetime(2026, 5, 2, 1, 0, tzinfo=UTC)
    for fields, told in PASSED:
        found = bench.check(ORDERS, moment=moment, **fields)
        assert found.passed, (fields, found)
        assert told in found.message
        assert found.checked_rows == 4
        assert bool(found.sample) is bool(found.failed_rows and "columns" in fields)


FAILED: list[tuple[dict[str, Any], int, list[Any]]] = [
    ({"check": "not_null", "columns": ["id"]}, 2, ["nan", None]),
    ({"check": "accepted", "columns": ["f"], "values": [0.1, 0.2]}, 1, ["nan"]),
    ({"check": "accepted", "columns": ["the name"], "values": ["x", "ben"]}, 2, [0.1, 0.2]),
    ({"check": "range", "columns": ["amount"], "least": 0, "most": "99.99"}, 2, [0.2, "nan"]),
    ({"check": "range", "columns": ["f"], "most": 0.1}, 2, [0.2, "nan"]),
    ({"check": "pattern", "columns": ["the name"], "pattern": "ben|x|a"}, 2, [0.1, 0.2]),
    ({"check": "reference", "columns": ["id"], "other": "raw.customers", "other_columns": ["key"]}, 2, [0.1, 0.2]),
    (
        {"check": "reference", "columns": ["the name"], "other": "raw.customers", "other_columns": ["name"]},
        2,
        [0.1, 0.2],
    ),
]


def test_what_is_not_fails_with_the_rows(bench: Bench) -> None:
    for fields, failed, sample in FAILED:
        found = bench.check(ORDERS, **fields)
        assert (found.passed, found.failed_rows, found.checked_rows) == (False, failed, 4), (fields, found)
        shown = [row["f"] if isinstance(row["f"], str | None) else round(row["f"], 3) for row in found.sample]
        assert sorted(shown, key=str) == sorted(sample, key=str), fields
    again = bench.check(ORDERS, check="unique", columns=["id"])
    assert (again.passed, again.failed_rows, again.sample) == (False, 2, [{"id": 1, "rows": 2}])
    own = bench.check(ORDERS, check="sql", sql=f"SELECT id, m, d, amount FROM {ORDERS} WHERE amount = 1.5;")
    assert own.sample == [{"id": 1, "m": {"a": 1}, "d": "2026-05-01", "amount": "1.50"}]
    assert own.message == "The query of the check returns 1 row; raw.orders has 4"
    few = bench.check(ORDERS, check="rows", least=5)
    assert (few.passed, few.failed_rows, few.message) == (False, 1, "raw.orders has 4 rows; at least 5 are expected")
    many = bench.check("raw.orders", check="sql", sql="SELECT id FROM range(50)")
    assert (many.failed_rows, len(many.sample)) == (50, 20)


def test_freshness_looks_at_the_newest_row_and_needs_one(bench: Bench) -> None:
    late = bench.check(
        ORDERS, moment=datetime(2026, 5, 3, tzinfo=UTC), check="freshness", columns=["at"], within="1 day"
    )
    assert not late.passed
    none = bench.check("raw.empty", check="freshness", columns=["at"], within="1 day", tolerance=1.0)
    assert not none.passed
    assert "The newest at of raw.empty is missing" in none.message
    assert bench.check("raw.empty", check="unique", columns=["id"]).passed
    assert bench.check("raw.empty", check="not_null", columns=["id"]).passed


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"check": "not_null", "columns": ["nope"]}, "raw.orders has no column nope; it has id, the name"),
        ({"check": "accepted", "columns": ["d"], "values": ["2026-13-01"]}, "'2026-13-01' is not a valid value of d"),
        ({"check": "accepted", "columns": ["the name"], "values": [5]}, "write a text, in quotes"),
        ({"check": "unique", "columns": ["m"]}, "cannot be a key"),
        ({"check": "pattern", "columns": ["the name"], "pattern": "a)|(b"}, "not a valid regular expression"),
        ({"check": "pattern", "columns": ["the name"], "pattern": "("}, "not a valid regular expression"),
        ({"check": "pattern", "columns": ["the name"], "pattern": r"\Qben"}, "not a valid regular expression"),
        ({"check": "sql", "sql": f"DELETE FROM {ORDERS}"}, "not one query"),
        (
            {"check": "reference", "columns": ["id"], "other": "raw.customers", "other_columns": ["name"]},
            "columns of compatible types",
        ),
    ],
)
def test_what_cannot_be_checked_says_what_to_do(bench: Bench, fields: dict[str, Any], told: str) -> None:
    with pytest.raises(StepFailed) as failed:
        bench.check(ORDERS, **fields)
    assert told in failed.value.message
    assert bench.rows(f"SELECT count(*) FROM {ORDERS}") == [(4,)]


def test_a_check_of_ones_own_reads_what_was_declared_and_stays_in_its_place(bench: Bench) -> None:
    with pytest.raises(StepFailed) as failed:
        bench.check(ORDERS, check="sql", sql="SELECT * FROM raw.customers")
    assert "customers" in failed.value.message
    assert "then save it with the check" in failed.value.message
    with pytest.raises(SqlFailed, match="Syntax error"):
        bench.check(ORDERS, check="sql", sql="SELECT 1) UNION ALL (SELECT 2")
