"""SQL as members run it, on a real Spark and through the catalog: rows, limits, cancellation, revocation, saved queries."""

from collections.abc import Iterator
from typing import Any

import pytest

from headgate.client import Headgate, StatementFailed
from headgate.kit.clock import now
from headgate.organization.tokens.service import revoke
from tests.lakehouse.sql.conftest import ENDLESS, Bench
from tests.lakehouse.sql.support import STATEMENTS
from tests.support.spark import within

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

SLOW = "SELECT id, 'late' AS what FROM range(0, 16000000, 1, 4) WHERE sha2(CAST(id AS STRING), 512) LIKE 'aaaaa%'"
SALES = "service.sales"


@pytest.fixture(scope="module")
def sales(bench: Bench) -> Iterator[Bench]:
    """A worker, and a table of 2,500 rows that Bea may read and Ben does not see."""
    with bench.worker():
        bench.rows("Tess", f"CREATE TABLE {SALES} (id BIGINT, amount DECIMAL(10,2), at TIMESTAMP)")
        values = "SELECT id, CAST(id AS DECIMAL(10,2)) / 4, timestamp_seconds(id) FROM range(2500)"
        bench.rows("Tess", f"INSERT INTO {SALES} {values}")
        bench.rows("Tess", "CREATE TABLE raw.log (id BIGINT, what STRING)")
        bench.change("Tess", "grant", to="Bea", resource=f"table:{SALES}", level="viewer")
        yield bench


def count(bench: Bench, table: str) -> int:
    return int(bench.rows("Tess", f"SELECT count(*) FROM {table}")[0][0])


def test_each_member_gets_what_they_may_read(sales: Bench) -> None:
    query = f"SELECT id, amount, at FROM {SALES} ORDER BY id LIMIT 3"
    expected = [
        [0, "0.00", "1970-01-01T00:00:00.000000Z"],
        [1, "0.25", "1970-01-01T00:00:01.000000Z"],
        [2, "0.50", "1970-01-01T00:00:02.000000Z"],
    ]
    assert sales.rows("Tess", query) == sales.rows("Bea", query) == expected
    hidden = sales.run("Ben", query)["error"]
    missing = sales.run("Ben", query.replace("sales", "sloes"))["error"]
    assert hidden["code"] == missing["code"] == "TABLE_OR_VIEW_NOT_FOUND"
    assert hidden["message"] == missing["message"].replace("sloes", "sales")


def test_what_a_statement_read_is_known_and_recorded(sales: Bench) -> None:
    found = sales.run("Bea", f"SELECT count(*) FROM {SALES}")
    table = sales.millrace.id("table", SALES)
    assert sales.millrace.rows(f"SELECT table_id FROM statement_reads WHERE statement_id = '{found['id']}'") == [
        (table,)
    ]


def test_a_viewer_writes_nothing(sales: Bench) -> None:
    before = count(sales, SALES)
    for sql, action, level, who in (
        (f"INSERT INTO {SALES} VALUES (1, 1, now())", "edit: write to and alter", "Editor", "Adam, Olga or Tess"),
        (f"DROP TABLE {SALES}", "delete", "Manager", "Adam or Olga"),
    ):
        failed = sales.run("Bea", sql)
        assert (failed["state"], failed["error"]["code"]) == ("failed", "FORBIDDEN")
        says = f"You may not {action} table {SALES}. Missing: {level} ({who} could grant"
        assert failed["error"]["message"].startswith(says), failed["error"]
    read_only = sales.millrace.as_("Tess", read_only=True)
    statement = read_only.post(STATEMENTS, {"sql": f"DELETE FROM {SALES}"}).json()["id"]
    assert sales.done("Tess", statement)["state"] == "failed"
    assert count(sales, SALES) == before


def test_refusals_and_errors_are_told_without_internals(sales: Bench) -> None:
    for sql, code in (
        ("SELECT * FROM parquet.`/etc/passwd`", None),
        ("SET spark.sql.ansi.enabled", "REFUSED"),
        ("SELEC 1", "PARSE_SYNTAX_ERROR"),
        ("SELECT nothing", "UNRESOLVED_COLUMN.WITHOUT_SUGGESTION"),
        ("SELECT 1/0", "DIVIDE_BY_ZERO"),
    ):
        error = sales.run("Bea", sql)["error"]
        assert code is None or error["code"] == code, error
        for inside in ("org.apache", "java.", "\tat ", "hgw_", "http://"):
            assert inside not in error["message"]


def test_results_have_limits_of_rows_and_bytes(sales: Bench) -> None:
    few = sales.run("Bea", f"SELECT * FROM {SALES}", max_rows=7)
    assert (few["rows"], few["truncated"]) == (7, True)
    large = sales.run("Bea", "SELECT id, repeat('x', 100) FROM range(100000)")
    assert large["truncated"]
    assert large["bytes"] <= 400_000
    assert 1000 < large["rows"] < 100_000


def test_rows_are_judged_between_pages(sales: Bench) -> None:
    found = sales.run("Bea", f"SELECT id FROM {SALES} ORDER BY id")
    assert (found["rows"], found["pages"]) == (2500, 3)
    assert sales.get("Bea", found["id"], "/pages/1").json()["data"][0] == [1000]
    sales.change("Tess", "revoke", to="Bea", resource=f"table:{SALES}", level="viewer")
    try:
        assert sales.get("Bea", found["id"], "/pages/2").status_code == 404
        assert sales.get("Bea", found["id"]).json()["withheld"]
    finally:
        sales.change("Tess", "grant", to="Bea", resource=f"table:{SALES}", level="viewer")
    assert sales.get("Bea", found["id"], "/pages/2").json()["data"][-1] == [2499]


def test_who_loses_a_table_while_a_statement_waits_reads_nothing(sales: Bench) -> None:
    with sales.busy():
        waiting = sales.submit("Bea", f"SELECT * FROM {SALES}")
        sales.change("Tess", "revoke", to="Bea", resource=f"table:{SALES}", level="viewer")
    try:
        found = sales.done("Bea", waiting)
    finally:
        sales.change("Tess", "grant", to="Bea", resource=f"table:{SALES}", level="viewer")
    assert found["error"]["code"] == "TABLE_OR_VIEW_NOT_FOUND"


def test_who_loses_editor_during_a_write_commits_nothing(sales: Bench) -> None:
    before = count(sales, "raw.log")
    statement = sales.submit("Tom", f"INSERT INTO raw.log {SLOW}")
    sales.begun("Tom", statement)
    sales.change("Tess", "revoke", to="Tom", resource="layer:raw", level="editor")
    try:
        found = sales.done("Tom", statement)
    finally:
        sales.change("Tess", "grant", to="Tom", resource="layer:raw", level="editor")
    assert found["state"] == "failed"
    assert count(sales, "raw.log") == before


def test_a_token_that_is_revoked_takes_its_statement_with_it(sales: Bench) -> None:
    before = count(sales, "raw.log")
    token = sales.millrace.as_("Tom", only=[sales.millrace.id("layer", "raw")])
    statement = token.post(STATEMENTS, {"sql": f"INSERT INTO raw.log {SLOW}"}).json()["id"]
    sales.begun("Tom", statement)
    (row,) = sales.millrace.rows(f"SELECT token_id FROM statements WHERE id = '{statement}'")
    sales.millrace.database.write(lambda connection: revoke(connection, row[0], now(), by=None))
    assert sales.done("Tom", statement)["state"] == "failed"
    assert count(sales, "raw.log") == before


def test_cancel_stops_spark_and_nothing_is_committed(sales: Bench) -> None:
    before = count(sales, "raw.log")
    statement = sales.submit(
        "Tom", f"INSERT INTO raw.log SELECT id, 'x' FROM ({ENDLESS.replace('count(*)', 'count(*) AS id')})"
    )
    sales.begun("Tom", statement)
    sales.millrace.as_("Tom").post(f"{STATEMENTS}/{statement}/cancel", None)
    assert sales.done("Tom", statement)["state"] == "cancelled"
    within(60, sales.spark.is_calm)
    assert count(sales, "raw.log") == before


def test_the_time_limit_stops_a_statement(sales: Bench) -> None:
    limits = sales.millrace.settings.sql
    limits.statement_seconds, kept = 4, limits.statement_seconds
    try:
        found = sales.run("Tess", ENDLESS)
    finally:
        limits.statement_seconds = kept
    assert (found["state"], found["error"]["code"]) == ("failed", "TIME_LIMIT")


def test_forty_at_once_all_end(sales: Bench) -> None:
    made = [sales.submit("Tess", f"SELECT count(*) + {n} FROM {SALES}") for n in range(40)]
    assert [sales.done("Tess", one, 300)["data"] for one in made] == [[[2500 + n]] for n in range(40)]


def saved(bench: Bench, member: str, name: str, sql: str) -> Any:
    begun = bench.millrace.as_(member).post("/api/sql/saved", {"name": name, "sql": sql})
    assert begun.status_code == 200, begun.text
    return bench.done(member, begun.json()["statement"])


def names_of_saved(bench: Bench, member: str) -> list[str]:
    return [one["name"] for one in bench.millrace.as_(member).get("/api/sql/saved").json()["items"]]


def test_a_query_is_saved_with_what_it_reads(sales: Bench) -> None:
    before = names_of_saved(sales, "Bea")
    found = saved(sales, "Bea", "Totals", f"WITH t AS (SELECT * FROM {SALES}) SELECT sum(amount) FROM t")
    assert found["state"] == "succeeded", found["error"]
    place = f"/api/sql/saved/{found['saved_query']}"
    shown = sales.millrace.as_("Bea").get(place).json()
    assert (shown["name"], shown["reads"], shown["allowed"]) == ("Totals", [SALES], ["see", "edit"])
    for other in ("Olga", "Tess"):
        assert sales.millrace.as_(other).get(place).status_code == 404
        assert sales.millrace.as_(other).request("DELETE", place).status_code == 404
    assert sorted(names_of_saved(sales, "Bea")) == sorted([*before, "Totals"])
    taken = sales.millrace.as_("Bea").post("/api/sql/saved", {"name": "totals", "sql": "SELECT 1"})
    assert taken.status_code == 409
    assert saved(sales, "Tess", "Totals", "SELECT 1")["state"] == "succeeded"
    # Delete needs Editor on all that it reads.
    assert sales.millrace.as_("Bea").request("DELETE", place).status_code == 403
    sales.change("Tess", "grant", to="Bea", resource=f"table:{SALES}", level="editor")
    assert sales.millrace.as_("Bea").request("DELETE", place).json()["name"] == "Totals"
    sales.change("Tess", "revoke", to="Bea", resource=f"table:{SALES}", level="editor")
    assert names_of_saved(sales, "Bea") == before


def test_what_cannot_be_analysed_is_not_saved(sales: Bench) -> None:
    for sql, member in ((f"SELECT * FROM {SALES}", "Ben"), ("SELEC", "Bea")):
        found = saved(sales, member, "Bad", sql)
        assert (found["state"], found["saved_query"]) == ("failed", None), sql
        assert "Bad" not in names_of_saved(sales, member)


def test_saving_runs_nothing(sales: Bench) -> None:
    before = count(sales, "raw.log")
    found = saved(sales, "Tom", "Add one", "INSERT INTO raw.log VALUES (1, 'x')")
    assert found["state"] == "succeeded"
    assert sales.millrace.as_("Tom").get(f"/api/sql/saved/{found['saved_query']}").json()["reads"] == ["raw.log"]
    assert count(sales, "raw.log") == before


def test_a_saved_query_changes_its_name_at_once_and_its_text_after_analysis(sales: Bench) -> None:
    place = f"/api/sql/saved/{saved(sales, 'Bea', 'First', 'SELECT 1')['saved_query']}"
    bea = sales.millrace.as_("Bea")
    assert bea.request("PATCH", place, json={"name": "Second"}).json() == {"statement": None, "state": "succeeded"}
    begun = bea.request("PATCH", place, json={"sql": f"SELECT id FROM {SALES}"}).json()
    assert sales.done("Bea", begun["statement"])["state"] == "succeeded"
    shown = bea.get(place).json()
    assert (shown["name"], shown["sql"], shown["reads"]) == ("Second", f"SELECT id FROM {SALES}", [SALES])
    begun = bea.request("PATCH", place, json={"sql": "SELECT * FROM raw.log"}).json()
    assert sales.done("Bea", begun["statement"])["error"]["code"] == "TABLE_OR_VIEW_NOT_FOUND"
    assert bea.get(place).json()["reads"] == [SALES]


def test_python_runs_sql_too(sales: Bench) -> None:
    with Headgate(sales.address, sales.millrace.token("Bea")) as headgate:
        rows = headgate.sql(f"SELECT id, amount FROM {SALES} ORDER BY id")
        assert (len(rows), rows.columns, rows.truncated) == (2500, ["id", "amount"], False)
        assert list(rows)[2499] == (2499, "624.75")
        assert rows.arrow().column("id").to_pylist() == list(range(2500))
        with pytest.raises(StatementFailed, match="PARSE_SYNTAX_ERROR"):
            headgate.sql("SELEC")
        with pytest.raises(TimeoutError):
            headgate.sql(ENDLESS, seconds=3)
    last = sales.millrace.as_("Bea").get(STATEMENTS, limit=1).json()["items"][0]
    assert sales.done("Bea", last["id"])["state"] == "cancelled"
