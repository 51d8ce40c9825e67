"""What a worker tells of a query that it has analysed."""

import pyarrow as pa

from headgate.execution.spark.session import Analysed
from headgate.execution.worker.statement_execution import told

FOUND = Analysed(pa.schema([("a", pa.int64()), ("b", pa.string())]), ((("raw.t", "x"), ("raw.t", "y")), ()))


def test_columns_and_what_they_are_made_of_are_told() -> None:
    found = told(FOUND, 10_000)
    assert [(one["name"], one["type"]) for one in found["columns"]] == [("a", "long"), ("b", "string")]
    assert found["origins"] == [("a", (("raw.t", "x"), ("raw.t", "y"))), ("b", ())]


def test_what_no_table_holds_is_told_with_what_to_do() -> None:
    found = told(Analysed(pa.schema([("a", pa.null())]), ((),)), 10_000)
    assert (found["columns"], "CAST(NULL AS STRING)" in found["problem"]) == (None, True)


def test_a_statement_that_gives_no_columns_is_no_query() -> None:
    assert told(Analysed(pa.schema([]), ()), 10_000)["problem"].startswith("The SQL gives no columns to write")


def test_what_does_not_fit_a_request_is_left_out() -> None:
    assert set(told(FOUND, 190)) == {"columns"}
    assert told(FOUND, 10) == {}
