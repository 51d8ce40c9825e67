"""Statements that try to read, learn or change what their member may not: refused, logged, and nothing told."""

import re
from collections import Counter

import pytest

from tests.security import attacks
from tests.security.conftest import CANARY, World, none, refused
from tests.spark_guard import attacks as guard_attacks

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

VAULT = "service.vault"
MISSING = "TABLE_OR_VIEW_NOT_FOUND"
BARE = "TABLE_NAME_WITHOUT_LAYER"
FORBIDDEN = "FORBIDDEN"
TEXT = r"PARSE_\w+|INVALID_IDENTIFIER|UNCLOSED_BRACKETED_COMMENT|INVALID_STATEMENT_OR_CLAUSE|UNSUPPORTED_FEATURE[\w.]*"
NO_VALUE = "UNSUPPORTED_SUBQUERY_EXPRESSION_CATEGORY.SCALAR_SUBQUERY_IN_VALUES"
KIND = r"UNRESOLVED_COLUMN[\w.]*|INSERT_COLUMN_ARITY_MISMATCH[\w.]*|INVALID_LIMIT_LIKE_EXPRESSION[\w.]*|INVALID_SQL_SYNTAX[\w.]*"


def only(*codes: str) -> re.Pattern[str]:
    return re.compile("|".join(codes))


def fill(world: World, statements: tuple[str, ...], mine: str = "service.revenue", hidden: str = VAULT) -> list[str]:
    return attacks.filled(statements, mine=mine, hidden=hidden, root=str(world.root(hidden)))


def test_no_path_is_read_in_any_spelling_or_position(world: World) -> None:
    refused(world.attack("Bea", fill(world, attacks.PATHS)), only(TEXT, MISSING))
    refused(world.attack("Tom", fill(world, attacks.PATHS, "raw.orders")), only(TEXT, MISSING))


def test_settings_and_catalogs_are_neither_asked_for_nor_set(world: World) -> None:
    refused(world.attack("Bea", attacks.SETTINGS), only(TEXT))


def test_no_statement_is_made_of_values(world: World) -> None:
    """EXECUTE IMMEDIATE, IDENTIFIER, functions and views with bodies of their own, caches."""
    refused(world.attack("Bea", fill(world, attacks.DYNAMIC)), only(TEXT, MISSING))
    refused(world.attack("Tom", fill(world, attacks.DYNAMIC, "raw.orders")), only(TEXT, MISSING))


def test_nothing_tells_places_and_properties(world: World) -> None:
    refused(world.attack("Bea", fill(world, attacks.ABOUT)), only(TEXT, r"UNRESOLVED_COLUMN[\w.]*"))


@pytest.mark.parametrize(
    ("member", "mine", "hidden"),
    [
        ("Bea", "service.revenue", VAULT),
        ("Bea", "service.revenue", "raw.payments"),
        ("Ana", "trusted.orders", "raw.payments"),
        ("Tom", "raw.orders", VAULT),
    ],
)
def test_a_hidden_table_is_not_there_however_it_is_named(world: World, member: str, mine: str, hidden: str) -> None:
    before = len(world.denials())
    attempts = world.attack(member, fill(world, attacks.HIDDEN, mine, hidden))
    refused(attempts, only(MISSING, NO_VALUE))
    missing = [one for one in attempts if one.code == MISSING]
    assert len(missing) > len(attempts) * 0.9
    # The catalog wrote down that somebody asked.
    assert len(world.denials()) - before >= len(missing)
    asked = world.denials(world.millrace.id("table", hidden))
    assert world.millrace.id("member", member) in {row[0] for row in asked}
    assert world.rows("Tess", f"SELECT * FROM {hidden}") == [[1, CANARY]]


def test_a_viewer_changes_nothing(world: World) -> None:
    world.rows("Tess", "INSERT INTO service.revenue VALUES (99, 9.9)")
    world.rows("Tess", "DELETE FROM service.revenue WHERE id = 99")
    before = world.rows("Tess", "SELECT snapshot_id FROM service.revenue.snapshots ORDER BY committed_at")
    writes = [one.replace("{snapshot}", str(before[0][0])) for one in fill(world, attacks.WRITES)]
    refused(world.attack("Bea", writes), only(FORBIDDEN, r"SCHEMA_\w+"))
    assert world.rows("Tess", "SELECT snapshot_id FROM service.revenue.snapshots ORDER BY committed_at") == before
    assert sorted(world.rows("Tess", "SHOW TABLES IN service")) == [
        ["service", "revenue", False],
        ["service", "vault", False],
    ]
    assert world.rows("Bea", "SELECT count(*) FROM service.revenue") == [[3]]


def test_an_editor_is_no_manager(world: World) -> None:
    """What drops a table or takes its history away is for Managers."""
    (first,) = world.rows("Tess", "SELECT min_by(snapshot_id, committed_at) FROM raw.payments.snapshots")
    world.rows("Tom", "INSERT INTO raw.orders VALUES (2, 'another')")
    (old,) = world.rows("Tess", "SELECT min_by(snapshot_id, committed_at) FROM raw.orders.snapshots")
    refused(
        world.attack(
            "Tom",
            [
                "DROP TABLE raw.orders",
                "DROP TABLE IF EXISTS raw.payments",
                f"CALL lake.system.rollback_to_snapshot('raw.orders', {old[0]})",
                f"CALL lake.system.set_current_snapshot('raw.orders', {old[0]})",
                f"CALL lake.system.cherrypick_snapshot('raw.orders', {first[0]})",
                "DROP NAMESPACE raw",
                "CREATE NAMESPACE toms",
                "CREATE TABLE service.toms AS SELECT * FROM raw.payments",
                "CREATE TABLE trusted.toms (id INT)",
                f"INSERT INTO {VAULT} SELECT * FROM raw.payments",
            ],
        ),
        only(FORBIDDEN, MISSING, r"SCHEMA_\w+", "INVALID"),
    )
    assert world.rows("Tom", "SELECT count(*) FROM raw.orders") == [[2]]


def test_several_statements_and_comments_that_hide(world: World) -> None:
    refused(world.attack("Bea", fill(world, attacks.TEXTS)), only(TEXT, MISSING))
    assert world.rows("Bea", "/*! x */ SELECT 1 -- ; SET") == [[1]]


def test_no_other_spelling_of_a_name_is_a_way_in(world: World) -> None:
    refused(world.attack("Bea", attacks.NAMES), only(TEXT, MISSING, BARE, "REQUIRES_SINGLE_PART_NAMESPACE"))
    for name in ("SERVICE.REVENUE", "`service`.`Revenue`", "lake.service.revenue"):
        assert world.rows("Bea", f"SELECT count(*) FROM {name}") == [[3]]


def test_what_the_guard_refuses_alone_is_refused_here_too(world: World) -> None:
    """The guard's own attacks, sent by a member with a real catalog behind them."""
    texts = [
        one.replace("{file}", "/etc/passwd").replace("{folder}", str(world.folder)).replace("{env}", "PATH")
        for one in guard_attacks.ALL
    ]
    attempts = world.attack("Bea", [re.sub(r"\braw\.t\b", "service.revenue", one) for one in texts])
    refused(attempts, only(TEXT, KIND, MISSING, BARE, "SPARK_FAILED"))
    codes = Counter(one.code for one in attempts)
    assert codes["REFUSED"] > 400
    assert codes["SPARK_FAILED"] <= 2


CTES = (
    ("WITH vault AS (SELECT 7 AS id) SELECT * FROM vault", [[7]]),
    ("WITH payments AS (SELECT 7 AS id), vault AS (SELECT * FROM payments) SELECT * FROM vault", [[7]]),
    ("WITH revenue AS (SELECT 7 AS id) SELECT (SELECT max(id) FROM revenue), count(*) FROM service.revenue", [[7, 3]]),
    ("SELECT * FROM (WITH vault AS (SELECT 7 AS id) SELECT * FROM vault)", [[7]]),
)


@pytest.mark.parametrize(("sql", "rows"), CTES)
def test_a_query_may_call_its_parts_like_a_hidden_table(world: World, sql: str, rows: list[list[int]]) -> None:
    """And gets its own part, not the table."""
    assert world.rows("Bea", sql) == rows


def test_a_part_of_a_query_is_gone_outside_it(world: World) -> None:
    refused(
        world.attack(
            "Bea",
            [
                "SELECT * FROM (WITH inner_one AS (SELECT 7 AS id) SELECT * FROM inner_one), inner_one",
                "WITH a AS (WITH b AS (SELECT 1 AS x) SELECT * FROM b) SELECT * FROM b",
                "WITH vault AS (SELECT * FROM vault) SELECT * FROM vault",
            ],
        ),
        only(MISSING, BARE),
    )


MODES = ("", "EXTENDED", "FORMATTED", "COST", "CODEGEN")
TELLING = (
    *(f"EXPLAIN {mode} SELECT * FROM service.revenue WHERE id > 1" for mode in MODES),
    *(f"EXPLAIN {mode} SELECT * FROM service.revenue.snapshots" for mode in MODES),
    "EXPLAIN EXTENDED INSERT INTO service.revenue SELECT * FROM service.revenue",
    "EXPLAIN EXTENDED DELETE FROM service.revenue WHERE id = 1",
    "EXPLAIN EXTENDED MERGE INTO service.revenue t USING service.revenue s ON t.id = s.id WHEN MATCHED THEN DELETE",
    "EXPLAIN EXTENDED CREATE TABLE service.x AS SELECT * FROM service.revenue",
    "EXPLAIN CALL lake.system.rollback_to_snapshot('service.revenue', 1)",
    "EXPLAIN EXPLAIN EXTENDED SELECT * FROM service.revenue",
    "DESCRIBE service.revenue", "DESCRIBE service.revenue amount", "SHOW COLUMNS IN service.revenue", "SHOW TABLES IN service", "SHOW TABLES IN service LIKE '*'", "SHOW NAMESPACES", "SHOW DATABASES",
    "SHOW TABLES IN service LIKE 'vault'", "SHOW NAMESPACES LIKE 'raw'",
    "SELECT * FROM service.revenue.snapshots", "SELECT manifest_list FROM service.revenue.snapshots", "SELECT max(manifest_list) FROM service.revenue.snapshots",
    "SELECT * FROM service.revenue WHERE id < (SELECT length(max(manifest_list)) FROM service.revenue.snapshots)",
    "WITH s AS (SELECT * FROM service.revenue.snapshots) SELECT a.manifest_list || b.manifest_list FROM s a CROSS JOIN s b",
    "SELECT manifest_list FROM service.revenue.snapshots UNION ALL SELECT manifest_list FROM service.revenue.snapshots",
    "SELECT * FROM service.revenue.history", "SELECT * FROM service.revenue.refs", "SELECT * FROM service.revenue.partitions",
    "SELECT '${env:PATH}', '${system:user.dir}', '${spark.sql.catalog.lake.header.Authorization}', '${hiveconf:x}', '${sparkconf:spark.app.id}'",
    "DESCRIBE FUNCTION EXTENDED abs", "SELECT uuid() IS NOT NULL, spark_partition_id(), monotonically_increasing_id()",
    "DROP TABLE IF EXISTS service.vault", "CREATE NAMESPACE IF NOT EXISTS service",
)  # fmt: skip


def test_what_members_may_ask_tells_no_place_token_or_hidden_name(world: World) -> None:
    attempts = world.attack("Bea", TELLING)
    none(f"{one.sql}: {one.found['error']}" for one in attempts if one.found["state"] != "succeeded")
    none(leak for one in attempts for leak in one.leaks())
    by_sql = {one.sql: one.found["data"] for one in attempts}
    assert by_sql["SELECT max(manifest_list) FROM service.revenue.snapshots"] == [[None]]
    assert by_sql["SHOW TABLES IN service LIKE '*'"] == [["service", "revenue", False]]
    assert by_sql["SHOW NAMESPACES"] == [["service"]]
    assert world.rows("Tess", f"SELECT * FROM {VAULT}") == [[1, CANARY]]


def test_explaining_a_procedure_does_not_call_it(world: World) -> None:
    world.rows("Tess", "CREATE TABLE trusted.kept AS SELECT 1 AS id")
    world.rows("Tess", "INSERT INTO trusted.kept VALUES (2)")
    (first,) = world.rows("Tess", "SELECT min_by(snapshot_id, committed_at) FROM trusted.kept.snapshots")
    for mode in ("", "EXTENDED", "EXPLAIN"):
        world.rows("Tess", f"EXPLAIN {mode} CALL lake.system.rollback_to_snapshot('trusted.kept', {first[0]})")
    assert world.rows("Tess", "SELECT count(*) FROM trusted.kept") == [[2]]


def test_the_history_tells_no_more_than_the_statement(world: World) -> None:
    world.attack("Bea", fill(world, attacks.HIDDEN[:5] + attacks.SETTINGS[:5]))
    listed = world.millrace.as_("Bea").get("/api/sql/statements", limit=50).text
    for secret in (CANARY, str(world.warehouse), "hgw_"):
        assert secret not in listed
    assert world.millrace.as_("Ana").get("/api/sql/statements").text.count("service.vault") == 0
    told = world.millrace.as_("Olga").get("/api/audit", limit=100).text
    for secret in (CANARY, str(world.warehouse), "hgw_"):
        assert secret not in told
