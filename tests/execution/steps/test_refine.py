"""Queries into tables, on a real Spark: every way to write, what happens to columns, and SQL that means harm."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from headgate.execution.spark.errors import SqlFailed, StatementRefused
from headgate.execution.steps.context import StepFailed
from tests.execution.steps.support import Bench
from tests.support.steps import Workshop

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


@pytest.fixture(scope="module")
def bench(shop: Workshop) -> Bench:
    return Bench(shop)


def test_a_new_table_is_made_then_overwritten_and_appended_to_by_name(bench: Bench) -> None:
    made = bench.refine("SELECT id, 'n' || id AS Name FROM range(3);", "raw.people")
    assert (made.rows_in, made.rows_out) == (3, 3)
    assert made.bytes > 0
    bench.refine("SELECT id, 'm' || id AS Name FROM range(2) -- again", "raw.people")
    found = bench.refine("SELECT 'x' AS NAME, 7L AS ID, 1.5D AS extra", "raw.people", write="append")
    assert found.rows_out == 1
    assert "ADD COLUMNS (`extra` DOUBLE)" in bench.last.text
    assert bench.rows("SELECT * FROM raw.people ORDER BY id") == [(0, "m0", None), (1, "m1", None), (7, "x", 1.5)]
    # The table may read itself, and may come to be empty.
    bench.refine("SELECT * FROM raw.people WHERE id = 7", "raw.people")
    assert bench.refine("SELECT * FROM raw.people WHERE id < 0", "raw.people").rows_out == 0
    assert bench.rows("SELECT count(*) FROM raw.people") == [(0,)]


def test_merge_needs_unique_keys_and_leaves_other_columns_alone(bench: Bench) -> None:
    columns = "AS v(`select`, part, what, `n`, deep)"
    bench.refine(
        f"SELECT * FROM VALUES (1, NULL, 'a', 10, named_struct('p', 1)), (2, 'x', 'b', 20, NULL) {columns}",
        "raw.merged",
        write="merge",
        keys=["SELECT", "part"],
    )
    found = bench.refine(
        "SELECT * FROM VALUES (NULL, 1, 'A', named_struct('q', 'new', 'p', 2L)), ('y', 3, 'c', NULL) "
        "AS v(PART, `Select`, what, deep)",
        "raw.merged",
        write="merge",
        keys=["select", "part"],
    )
    assert (found.rows_in, found.rows_out) == (2, 2)
    expected = [
        (1, None, "A", 10, {"p": 2, "q": "new"}),
        (2, "x", "b", 20, None),
        (3, "y", "c", None, None),
    ]
    assert bench.rows("SELECT * FROM raw.merged ORDER BY 1") == expected
    with pytest.raises(StepFailed) as failed:
        bench.refine(
            "SELECT * FROM VALUES (9, 'z'), (9, 'z') AS v(`select`, part)",
            "raw.merged",
            write="merge",
            keys=["select", "part"],
        )
    assert failed.value.code == "KEYS"
    assert "such as select = 9, part = 'z'" in failed.value.message
    assert bench.rows("SELECT * FROM raw.merged ORDER BY 1") == expected
    with pytest.raises(StepFailed, match="Unknown column nope in keys; the query returns"):
        bench.refine("SELECT 1 AS a", "raw.merged", write="merge", keys=["nope"])
    full = bench.refine(
        "SELECT 5 AS `select`, 'k' AS part", "raw.merged", write="merge", keys=["select", "part"], full_refresh=True
    )
    assert full.rows_out == 1
    assert bench.rows("SELECT `select` FROM raw.merged") == [(5,)]


def test_a_window_is_written_anew_and_the_rest_stays(bench: Bench) -> None:
    moment = datetime(2026, 3, 30, 10, 0, tzinfo=UTC)
    hours = "SELECT id, timestamp '2026-03-27 12:00:00' + make_interval(0, 0, 0, 0, id) AS at FROM range(100)"

    def write(value: str, where: str = "TRUE", **more: Any) -> int:
        more = {"window": "2 days", "time_column": "AT", "time_zone": "Europe/Berlin", "moment": moment, **more}
        sql = f"SELECT *, '{value}' AS v FROM ({hours}) WHERE {where}"
        return bench.refine(sql, "raw.hours", write="window", **more).rows_out

    def counts() -> list[tuple[object, ...]]:
        return bench.rows("SELECT v, count(*), min(at) FROM raw.hours GROUP BY v ORDER BY v")

    start = datetime(2026, 3, 28, 11, tzinfo=UTC)
    assert write("a") == 47
    assert write("b", moment=moment + timedelta(hours=10)) == 47
    assert counts() == [("a", 10, start), ("b", 47, start + timedelta(hours=10))]
    within = "at >= :window_start AND at < :window_end AND :run_time = :window_end"
    assert write("c", within, moment=moment + timedelta(hours=10)) == 47
    assert write("c", "FALSE", moment=moment + timedelta(hours=10)) == 0
    assert counts() == [("a", 10, start)]
    assert write("d", full_refresh=True) == 71
    assert counts() == [("d", 71, datetime(2026, 3, 27, 11, tzinfo=UTC))]
    with pytest.raises(StepFailed, match="time_column must be a date or a timestamp; at is STRING"):
        bench.refine("SELECT 'x' AS at", "raw.hours", write="window", time_column="at", window="1 day")
    with pytest.raises(StepFailed, match="the parameters are :run_time and, with write window"):
        bench.refine("SELECT :window_start AS at", "raw.hours")


def test_columns_change_as_the_definition_says(bench: Bench) -> None:
    bench.refine("SELECT 1 AS id, 'a' AS name", "raw.strict")
    before = bench.rows("SELECT * FROM raw.strict.snapshots")
    with pytest.raises(StepFailed) as failed:
        bench.refine("SELECT 1L AS id, 2 AS more", "raw.strict", schema_changes="strict")
    assert "id is BIGINT, and the table has INT; more (INT) is new; name is missing" in failed.value.message
    with pytest.raises(StepFailed, match="id is STRING, and the table has INT"):
        bench.refine("SELECT 'x' AS id", "raw.strict", write="append")
    assert bench.rows("SELECT * FROM raw.strict.snapshots") == before
    bench.refine("SELECT 'b' AS NAME, 2 AS ID", "raw.strict", write="append", schema_changes="strict")
    bench.refine("SELECT 3L AS id, CAST(1.5 AS DECIMAL(5, 2)) AS d", "raw.strict", write="append")
    bench.refine("SELECT 4 AS id, CAST(1.5 AS DECIMAL(9, 2)) AS d", "raw.strict", write="append")
    assert [one[1] for one in bench.rows("DESCRIBE TABLE raw.strict")] == ["bigint", "string", "decimal(9,2)"]
    assert [one[0] for one in bench.rows("SELECT id FROM raw.strict ORDER BY id")] == [1, 2, 3, 4]
    item = bench.shop.item("raw.strict").id
    bench.refine("SELECT 'other' AS id, array(1) AS list", "raw.strict", schema_changes="overwrite")
    assert bench.rows("SELECT * FROM raw.strict") == [("other", [1])]
    assert bench.shop.item("raw.strict").id == item


def test_partitions_and_order_follow_the_definition(bench: Bench) -> None:
    sql = "SELECT id, CAST(id AS STRING) AS `we``ird (x).y`, timestamp_seconds(id * 86400) AS at FROM range(4)"

    def parts() -> list[object]:
        return [row[1] for row in bench.rows("DESCRIBE TABLE raw.laid")][5:]

    bench.refine(sql, "raw.laid", partition_by=["bucket(4, id)", "day(AT)"], sort_by=["we`ird (x).y"])
    assert parts() == ["bucket(4, id)", "days(at)"]
    bench.refine(sql, "raw.laid", partition_by=["bucket(4, id)", "month(at)"], write="append")
    assert parts() == ["bucket(4, id)", "months(at)"]
    versions = bench.shop.company.rows("SELECT version FROM table_pointers ORDER BY committed_at DESC LIMIT 1")
    bench.refine(sql, "raw.laid", partition_by=["bucket(4, id)", "month(at)"], write="append")
    assert bench.shop.company.rows("SELECT version FROM table_pointers ORDER BY committed_at DESC LIMIT 1") == [
        (versions[0][0] + 1,)
    ]
    bench.refine(sql, "raw.laid", write="append")
    assert parts() == []
    assert bench.rows("SELECT count(*) FROM raw.laid") == [(16,)]
    wrong: dict[str, dict[str, Any]] = {
        "is invalid: id is BIGINT": {"partition_by": ["day(id)"]},
        "Unknown column nope in sort_by": {"sort_by": ["nope"]},
    }
    for told, more in wrong.items():
        with pytest.raises(StepFailed, match=told):
            bench.refine(sql, "raw.laid", **more)


@pytest.mark.parametrize(
    ("sql", "error", "told"),
    [
        ("SELECT 1 AS a) UNION ALL (SELECT 2 AS a", SqlFailed, "Syntax error at or near '\\)'. \\(line 1, pos 13\\)"),
        ("SELECT 1 AS a)) UNION SELECT 2 --", SqlFailed, "Syntax error"),
        ("SELECT (1 AS a", SqlFailed, "Syntax error"),
        ("SELECT 1 AS a /* ", SqlFailed, "unclosed bracketed comment"),
        ("SELECT 'a AS a", SqlFailed, "Syntax error"),
        ("SELECT 1 AS a; DROP TABLE raw.safe", SqlFailed, "Syntax error at or near 'DROP'"),
        ("DROP TABLE raw.safe", StepFailed, "not one query"),
        ("INSERT INTO raw.safe VALUES (2)", StepFailed, "not one query"),
        ("DELETE FROM raw.safe", StepFailed, "not one query"),
        ("SHOW TABLES IN raw", StepFailed, "not one query"),
        ("SELECT 1 AS a; -- the end", StepFailed, "not one query"),
        ("SET x = )", StatementRefused, "settings"),
        ("SELECT * FROM raw.hidden", StepFailed, "raw.hidden that you may see.* first run the pipeline that writes it"),
        ("SELECT 1 AS _file", StatementRefused, "_file"),
        ("SELECT NULL AS a", StepFailed, "CAST\\(NULL AS STRING\\)"),
        ("SELECT interval 2 months AS a", StepFailed, "column a has a type that tables do not support"),
        ("SELECT 1 a, 2 A", StepFailed, "Two columns have the name a"),
        ("-- nothing", SqlFailed, "Syntax error"),
    ],
)
def test_what_is_no_query_writes_nothing(bench: Bench, sql: str, error: type[Exception], told: str) -> None:
    if not bench.shop.company.rows("SELECT 1 FROM resources WHERE name = 'safe'"):
        bench.refine("SELECT 1 AS a", "raw.safe")
        bench.rows("CREATE TABLE raw.hidden AS SELECT 1 AS a")
    with pytest.raises(error, match=told):
        bench.refine(sql, "raw.safe")
    assert bench.rows("SELECT a FROM raw.safe") == [(1,)]


def test_names_within_a_query_meet_none_of_ours(bench: Bench) -> None:
    sql = (
        "WITH q AS (SELECT 5 AS n), s AS (SELECT 6 AS n), t AS (SELECT 7 AS n) "
        "SELECT n, n AS t, n AS s, n AS q FROM (TABLE q UNION ALL TABLE s UNION ALL TABLE t) -- )"
    )
    for _ in range(2):
        assert bench.refine(sql, "raw.names", write="merge", keys=["n"]).rows_out == 3
    assert bench.rows("SELECT * FROM raw.names ORDER BY n") == [(n, n, n, n) for n in (5, 6, 7)]
    bench.refine("SELECT count(*), sum(n) + 1 FROM raw.names", "raw.sums", reads=("raw.names",))
    assert bench.rows("SELECT `count(1)`, `(sum(n) + 1)` FROM raw.sums") == [(3, 19)]
