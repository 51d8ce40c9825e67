"""Views in members' SQL: made, changed, shown and dropped, and read with the rights of whoever reads them."""

from collections.abc import Iterator

import pytest

from tests.lakehouse.sql.conftest import Bench

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

UNREADABLE = "You may see the view service.secretive, but not read it"


@pytest.fixture(scope="module")
def orders(bench: Bench) -> Iterator[Bench]:
    """Two tables; Bea may read the first alone, and both views over them."""
    with bench.worker():
        bench.rows("Tess", "CREATE TABLE service.orders (id BIGINT, shop STRING, amount DECIMAL(10,2))")
        bench.rows(
            "Tess", "INSERT INTO service.orders VALUES (1, 'north', 2.50), (2, 'south', 4.00), (3, 'north', 1.00)"
        )
        bench.rows("Tess", "CREATE TABLE service.salaries (id BIGINT, amount DECIMAL(10,2))")
        bench.rows("Tess", "INSERT INTO service.salaries VALUES (1, 1000.00)")
        bench.rows(
            "Tess",
            "CREATE VIEW service.north COMMENT 'Northern orders' AS SELECT id, amount FROM service.orders WHERE shop = 'north'",
        )
        bench.rows(
            "Tess",
            "CREATE VIEW service.secretive (shop, paid) AS SELECT o.shop, s.amount FROM service.orders o JOIN service.salaries s ON o.id = s.id",
        )
        for name in ("orders", "north", "secretive"):
            bench.change("Tess", "grant", to="Bea", resource=f"table:service.{name}", level="viewer")
        yield bench


def error(bench: Bench, member: str, sql: str) -> tuple[str, str]:
    found = bench.run(member, sql)
    assert found["state"] == "failed", found
    return found["error"]["code"], found["error"]["message"]


def test_a_view_gives_the_rows_of_its_query(orders: Bench) -> None:
    for member in ("Tess", "Bea"):
        assert orders.rows(member, "SELECT * FROM service.north ORDER BY id") == [[1, "2.50"], [3, "1.00"]]
    joined = "SELECT count(*) FROM service.north n JOIN lake.service.orders o ON n.id = o.id"
    assert orders.rows("Bea", joined) == [[2]]
    assert orders.rows("Tess", "SELECT * FROM service.secretive") == [["north", "1000.00"]]


def test_a_view_is_read_with_its_readers_own_rights(orders: Bench) -> None:
    code, message = error(orders, "Bea", "SELECT * FROM service.secretive")
    assert code == "FORBIDDEN"
    assert message.startswith(UNREADABLE)
    assert "salaries" not in message


def test_what_hides_a_view_from_its_reader_is_the_same_for_hidden_and_missing_tables(orders: Bench) -> None:
    orders.rows("Tess", "CREATE TABLE service.soon_gone (id BIGINT)")
    orders.rows("Tess", "CREATE VIEW service.orphan AS SELECT * FROM service.soon_gone")
    orders.change("Tess", "grant", to="Bea", resource="table:service.orphan", level="viewer")
    hidden = error(orders, "Bea", "SELECT * FROM service.orphan")
    orders.rows("Tess", "DROP TABLE service.soon_gone")
    assert error(orders, "Bea", "SELECT * FROM service.orphan") == hidden
    assert "soon_gone" not in hidden[1]


def test_a_hidden_view_answers_as_a_missing_one(orders: Bench) -> None:
    orders.rows("Tess", "CREATE VIEW service.private AS SELECT id FROM service.orders")
    code, hidden = error(orders, "Bea", "SELECT * FROM service.private")
    assert code == "TABLE_OR_VIEW_NOT_FOUND"
    assert hidden == error(orders, "Bea", "SELECT * FROM service.privata")[1].replace("privata", "private")
    for statement in (
        "DROP VIEW service.{}",
        "CREATE OR REPLACE VIEW service.{} AS SELECT 1 AS one",
        "ALTER VIEW service.{} RENAME TO service.mine",
    ):
        told = [error(orders, "Bea", statement.format(name)) for name in ("private", "privata")]
        assert told[0] == (told[1][0], told[1][1].replace("privata", "private")), statement


def test_a_view_over_a_view_needs_rights_on_both_and_on_what_is_behind(orders: Bench) -> None:
    orders.rows("Tess", "CREATE VIEW service.totals AS SELECT sum(amount) AS total FROM service.north")
    orders.change("Tess", "grant", to="Bea", resource="table:service.totals", level="viewer")
    assert orders.rows("Bea", "SELECT total FROM service.totals") == [["3.50"]]
    orders.change("Tess", "revoke", to="Bea", resource="table:service.north", level="viewer")
    code, message = error(orders, "Bea", "SELECT total FROM service.totals")
    orders.change("Tess", "grant", to="Bea", resource="table:service.north", level="viewer")
    assert (code, "north" in message) == ("FORBIDDEN", False)


def test_a_revoked_table_makes_the_view_unreadable_at_once(orders: Bench) -> None:
    orders.change("Tess", "revoke", to="Bea", resource="table:service.orders", level="viewer")
    code, _ = error(orders, "Bea", "SELECT * FROM service.north")
    orders.change("Tess", "grant", to="Bea", resource="table:service.orders", level="viewer")
    assert code == "FORBIDDEN"
    assert len(orders.rows("Bea", "SELECT * FROM service.north")) == 2


def test_a_view_is_changed_and_keeps_its_grants(orders: Bench) -> None:
    orders.rows("Tess", "CREATE VIEW service.changing AS SELECT id FROM service.orders")
    orders.change("Tess", "grant", to="Bea", resource="table:service.changing", level="viewer")
    before = orders.millrace.id("table", "service.changing")
    orders.rows(
        "Tess",
        "CREATE OR REPLACE VIEW service.changing AS SELECT shop, count(*) AS n FROM service.orders GROUP BY shop",
    )
    assert orders.millrace.id("table", "service.changing") == before
    assert orders.rows("Bea", "SELECT * FROM service.changing ORDER BY shop") == [["north", 2], ["south", 1]]
    orders.rows("Tess", "ALTER VIEW service.changing SET TBLPROPERTIES ('custom.team' = 'sales')")
    shown = dict(orders.rows("Tess", "SHOW TBLPROPERTIES service.changing"))
    assert shown["custom.team"] == "sales"
    orders.rows("Tess", "ALTER VIEW service.changing UNSET TBLPROPERTIES ('custom.team')")
    orders.rows("Tess", "ALTER VIEW service.changing RENAME TO service.renamed")
    assert len(orders.rows("Bea", "SELECT * FROM service.renamed")) == 2
    assert error(orders, "Tess", "SELECT * FROM service.changing")[0] == "TABLE_OR_VIEW_NOT_FOUND"


def test_views_are_shown_and_described(orders: Bench) -> None:
    names = [row[1] for row in orders.rows("Bea", "SHOW VIEWS IN service")]
    assert {"north", "secretive"} <= set(names)
    assert "private" not in names
    assert [row[:2] for row in orders.rows("Bea", "DESCRIBE service.north")][:2] == [
        ["id", "bigint"],
        ["amount", "decimal(10,2)"],
    ]
    made = orders.rows("Bea", "SHOW CREATE TABLE service.north")[0][0]
    assert "SELECT id, amount FROM service.orders" in made
    assert "file:" not in made
    assert error(orders, "Bea", "SHOW CREATE TABLE service.secretive")[1].startswith(UNREADABLE)


def test_a_viewer_changes_and_drops_no_view(orders: Bench) -> None:
    for statement in (
        "CREATE OR REPLACE VIEW service.north AS SELECT 1 AS one",
        "ALTER VIEW service.north SET TBLPROPERTIES ('custom.a' = 'b')",
        "DROP VIEW service.north",
        "CREATE VIEW service.own AS SELECT 1 AS one",
    ):
        assert error(orders, "Bea", statement)[0] == "FORBIDDEN", statement
    assert len(orders.rows("Tess", "SELECT * FROM service.north")) == 2


def test_a_view_is_dropped_and_restored(orders: Bench) -> None:
    orders.rows("Tess", "CREATE VIEW service.passing AS SELECT id FROM service.orders")
    view = orders.millrace.id("table", "service.passing")
    orders.rows("Tess", "DROP VIEW service.passing")
    assert error(orders, "Tess", "SELECT * FROM service.passing")[0] == "TABLE_OR_VIEW_NOT_FOUND"
    assert orders.millrace.as_("Tess").post(f"/api/deleted/{view}/restore", {}).status_code == 200
    assert len(orders.rows("Tess", "SELECT * FROM service.passing")) == 3
    orders.rows("Tess", "DROP VIEW IF EXISTS service.passing")
    orders.rows("Tess", "DROP VIEW IF EXISTS service.passing")


def test_views_and_tables_share_their_names(orders: Bench) -> None:
    assert "already exists" in error(orders, "Tess", "CREATE VIEW service.orders AS SELECT 1 AS one")[1]
    assert "already exists" in error(orders, "Tess", "CREATE TABLE service.north (id BIGINT)")[1]
    assert error(orders, "Tess", "CREATE VIEW service.north AS SELECT 1 AS one")[0].endswith("ALREADY_EXISTS")
    orders.rows("Tess", "CREATE VIEW IF NOT EXISTS service.north AS SELECT 1 AS one")
    assert len(orders.rows("Tess", "SELECT * FROM service.north")) == 2
    assert error(orders, "Tess", "INSERT INTO service.north VALUES (9, 9.00)")[0] != "SPARK_FAILED"
    assert error(orders, "Tess", "DROP TABLE service.north")[0] != "SPARK_FAILED"


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("ALTER TABLE service.north RENAME TO service.south", "use ALTER VIEW"),
        ("ALTER VIEW service.orders RENAME TO service.south", "use ALTER TABLE"),
        ("SHOW COLUMNS IN service.north", "use DESCRIBE"),
        ("CREATE VIEW service.bad AS SELECT INTERVAL '1' MONTH AS m", "cast the value to STRING"),
        ("CREATE VIEW service.bad AS SELECT DATE'2026-03-01' - DATE'2026-01-01' AS d", "the type interval day"),
    ],
)
def test_what_no_view_can_is_refused_with_what_to_do(orders: Bench, statement: str, words: str) -> None:
    code, message = error(orders, "Tess", statement)
    assert (code != "SPARK_FAILED", words in message) == (True, True), message


def test_no_view_reads_itself(orders: Bench) -> None:
    orders.rows("Tess", "CREATE VIEW service.first AS SELECT id FROM service.orders")
    orders.rows("Tess", "CREATE VIEW service.second AS SELECT id FROM service.first")
    assert (
        error(orders, "Tess", "CREATE OR REPLACE VIEW service.first AS SELECT id FROM service.second")[0]
        == "VIEW_READS_ITSELF"
    )
    assert len(orders.rows("Tess", "SELECT * FROM service.second")) == 3


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id FROM service.own",
        "SELECT id FROM lake.service.own",
        "SELECT id FROM service.orders WHERE id IN (SELECT id FROM Service.OWN)",
        "WITH t AS (SELECT id FROM service.own) SELECT a.id FROM t a JOIN t b ON a.id = b.id",
    ],
)
def test_no_view_names_itself(orders: Bench, query: str) -> None:
    orders.rows("Tess", "CREATE OR REPLACE VIEW service.own AS SELECT id FROM service.orders")
    code, message = error(orders, "Tess", f"CREATE OR REPLACE VIEW service.own AS {query}")
    assert (code, "a view that reads itself" in message) == ("REFUSED", True)
    short = "USE service; CREATE OR REPLACE VIEW own AS SELECT id FROM own"
    assert error(orders, "Tess", short)[0] == "REFUSED"
    orders.rows("Tess", "CREATE OR REPLACE VIEW service.own AS SELECT own.id FROM service.orders AS own")
    assert len(orders.rows("Tess", "SELECT id FROM service.own")) == 3


def test_a_view_has_queries_with_names_and_hierarchies(orders: Bench) -> None:
    orders.rows(
        "Tess",
        "CREATE VIEW service.named AS WITH t AS (SELECT id FROM service.orders), u(top) AS (SELECT max(id) FROM t) "
        "SELECT t.id, u.top FROM t, u WHERE t.id IN (WITH w AS (SELECT 1 AS one) SELECT one FROM w)",
    )
    assert orders.rows("Tess", "SELECT * FROM service.named") == [[1, 3]]
    orders.rows(
        "Tess",
        "CREATE VIEW service.chain AS WITH RECURSIVE chain(id) AS (SELECT id FROM service.orders WHERE id = 1 "
        "UNION ALL SELECT o.id FROM chain JOIN service.orders o ON o.id = chain.id + 1) SELECT * FROM chain",
    )
    assert orders.rows("Tess", "SELECT * FROM service.chain ORDER BY id") == [[1], [2], [3]]
    assert error(orders, "Bea", "SELECT * FROM service.chain")[0] == "TABLE_OR_VIEW_NOT_FOUND"
    orders.change("Tess", "grant", to="Bea", resource="table:service.chain", level="viewer")
    assert orders.rows("Bea", "SELECT count(*) FROM service.chain") == [[3]]


@pytest.mark.parametrize("of", ["id FROM service.kept WHERE id = 1", "* FROM service.kept"])
@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM service.part",
        "DELETE FROM lake.service.part AS p WHERE p.id = 2",
        "UPDATE service.part SET id = 7",
        "MERGE INTO service.part p USING service.orders o ON p.id = o.id WHEN MATCHED THEN DELETE",
        "EXPLAIN DELETE FROM service.part",
    ],
)
def test_no_rows_are_changed_by_way_of_a_view(orders: Bench, statement: str, of: str) -> None:
    orders.rows("Tess", "CREATE TABLE IF NOT EXISTS service.kept AS SELECT id FROM service.orders")
    orders.rows("Tess", f"CREATE OR REPLACE VIEW service.part AS SELECT {of}")
    code, message = error(orders, "Tess", statement)
    assert (code, "changing the rows of a view" in message) == ("REFUSED", True)
    assert orders.rows("Tess", "SELECT count(*) FROM service.kept") == [[3]]


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE VIEW service.bad AS WITH x AS (SELECT * FROM csv.`/etc/passwd`) SELECT * FROM x",
        "CREATE VIEW service.bad AS WITH x AS (SELECT reflect('java.lang.System', 'getenv')) SELECT * FROM x",
        "CREATE VIEW service.bad AS SELECT * FROM csv.`/etc/passwd`",
        "CREATE VIEW service.bad AS SELECT reflect('java.lang.System', 'getenv')",
        "CREATE VIEW service.bad AS SELECT input_file_name() FROM service.orders",
        "CREATE VIEW spark_catalog.default.bad AS SELECT 1 AS one",
        "CREATE TEMPORARY VIEW bad AS SELECT 1 AS one",
        "CREATE GLOBAL TEMPORARY VIEW bad AS SELECT 1 AS one",
        "CREATE VIEW service.bad TBLPROPERTIES ('location' = '/tmp/x') AS SELECT 1 AS one",
        "ALTER VIEW service.north SET TBLPROPERTIES ('location' = '/tmp/x')",
        "ALTER VIEW service.north AS SELECT 1 AS one",
        "CREATE VIEW service.bad AS SELECT * FROM service.orders.files",
        "SHOW VIEWS IN spark_catalog.default",
    ],
)
def test_hostile_views_are_refused(orders: Bench, statement: str) -> None:
    assert error(orders, "Tess", statement)[0] in {"REFUSED", "UNSUPPORTED_FEATURE.SET_TABLE_PROPERTY"}, statement


def test_what_a_statement_reads_by_a_view_is_known(orders: Bench) -> None:
    found = orders.run("Bea", "SELECT count(*) FROM service.north")
    read = {
        row[0]
        for row in orders.millrace.rows(f"SELECT table_id FROM statement_reads WHERE statement_id = '{found['id']}'")
    }
    assert read == {orders.millrace.id("table", f"service.{name}") for name in ("north", "orders")}


def test_a_view_is_described_over_http(orders: Bench) -> None:
    view = orders.millrace.id("table", "service.secretive")
    facts = {member: orders.millrace.as_(member).get(f"/api/tables/{view}").json() for member in ("Tess", "Bea")}
    assert [column["name"] for column in facts["Bea"]["columns"]] == ["shop", "paid"]
    assert "service.salaries" in facts["Tess"]["view"]["sql"]
    assert facts["Bea"]["view"]["sql"] is None
    assert "salaries" not in str(facts["Bea"])
    told = orders.millrace.as_("Tess").get(f"/api/tables/{view}/preview")
    assert (told.status_code, "This is a view" in told.json()["detail"]) == (409, True)


def test_pipelines_read_views_by_sql_alone_and_write_into_none(orders: Bench) -> None:
    tess = orders.millrace.as_("Tess")
    query = {"kind": "query", "sql": "SELECT id FROM service.north", "output": "service.copied"}
    saved = tess.post("/api/pipelines", {"name": "Copy", "definition": query}).json()
    assert orders.done("Tess", saved["statement"])["state"] == "succeeded"
    for definition, told in (
        (
            {"kind": "history", "table": "service.north", "output": "service.versions", "keys": ["id"]},
            "service.north is a view",
        ),
        (
            {"kind": "history", "table": "service.orders", "output": "service.north", "keys": ["id"]},
            "service.north is a view",
        ),
    ):
        answer = tess.post("/api/pipelines", {"name": "Keep", "definition": definition})
        assert (answer.status_code, told in answer.json()["detail"]) == (422, True), answer.text
