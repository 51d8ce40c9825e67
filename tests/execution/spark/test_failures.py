"""What members read when a statement fails: Spark's own sentence, and nothing of the machine that it ran on."""

import re

import pytest

from headgate.execution.spark.errors import SparkUnavailable, SqlFailed, StatementRefused, too_long
from headgate.execution.spark.failures import MOST_CHARACTERS, Cause, _full_disk, _told
from headgate.kit.errors import DiskFull
from tests.execution.spark.conftest import Lakehouse

INSIDES = re.compile(
    r"\bat [\w.$]+\(|Exception\b|\b(?:org|java|scala|com)\.\w+\.|file:/|/(?:tmp|scratch|headgate|usr|root|home)/"
    r"|Bearer|hgw_|spark\.\w+\.\w+|SQLSTATE|\+- |'Project|Relation \[|[0-9a-f]{8}-[0-9a-f]{4}-|127\.0\.0\.1|localhost|executor",
)

NASTY = {
    "selec 1": "PARSE_SYNTAX_ERROR",
    "SELECT": "PARSE_SYNTAX_ERROR",
    "SELECT * FROM raw.void": "TABLE_OR_VIEW_NOT_FOUND",
    "SELECT * FROM void.void": "TABLE_OR_VIEW_NOT_FOUND",
    "SELECT nope FROM range(1)": "UNRESOLVED_COLUMN",
    "SELECT 1/0": "DIVIDE_BY_ZERO",
    "SELECT sum(1 / (id - 500)) FROM range(1000)": "DIVIDE_BY_ZERO",
    "SELECT CAST('x' AS INT)": "CAST_INVALID_INPUT",
    "SELECT CAST(CONCAT('/etc/', id) AS INT) FROM range(3)": "CAST_INVALID_INPUT",
    "SELECT raise_error('mine')": "USER_RAISED_EXCEPTION",
    "SELECT element_at(array(1), 5)": "INVALID_ARRAY_INDEX_IN_ELEMENT_AT",
    "SELECT 2147483647 + 1": "ARITHMETIC_OVERFLOW",
    "SELECT sum(id), id FROM range(3)": "MISSING_GROUP_BY",
    "SELECT (SELECT id FROM range(2))": "SCALAR_SUBQUERY_TOO_MANY_ROWS",
    "SELECT date_add('x', 1)": "CAST_INVALID_INPUT",
    "SELECT regexp_extract('a', '(', 1)": "INVALID_PARAMETER_VALUE",
    "SELECT to_date('x', 'qqqqqq')": "",
    "SELECT array_repeat(1, 2147483647)": "",
    "SELECT from_json('{', 'a nonsense')": "",
    "SELECT explode(1)": "DATATYPE_MISMATCH",
    "INSERT INTO raw.void VALUES (1)": "TABLE_OR_VIEW_NOT_FOUND",
    "CREATE TABLE void.t (n INT)": "",
    "CREATE TABLE raw.t (n INTERVAL MONTH)": "UNSUPPORTED_TYPE",
    "SET TIME ZONE LOCAL; SELECT 1": "INVALID_TIME_ZONE",
    "CALL lake.system.rollback_to_snapshot('void', 1)": "TABLE_NAME_WITHOUT_LAYER",
    "CALL lake.system.rollback_to_snapshot('raw.void', 1)": "TABLE_OR_VIEW_NOT_FOUND",
    "CALL lake.system.rollback_to_snapshot(NULL, 1)": "REFUSED",
    "DROP TABLE raw.void": "TABLE_OR_VIEW_NOT_FOUND",
    "ALTER TABLE raw.void ADD COLUMN n INT": "TABLE_OR_VIEW_NOT_FOUND",
    "SELECT count(*) FROM raw.aged VERSION AS OF 1": "SNAPSHOT_NOT_FOUND",
    "SELECT count(*) FROM raw.aged TIMESTAMP AS OF '2020-01-01'": "SNAPSHOT_NOT_FOUND",
    "SELECT count(*) FROM raw.aged VERSION AS OF 'nowhere'": "SNAPSHOT_NOT_FOUND",
    "SELECT " + " + ".join(["1"] * 6000): "",
}


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_no_failure_tells_of_the_insides(lakehouse: Lakehouse) -> None:
    lakehouse.rows("Tess", "CREATE TABLE raw.aged AS SELECT 1 AS n")
    session = lakehouse.session("Tess")
    wrong = []
    try:
        for sql, code in NASTY.items():
            found = _failure(session, sql)
            if found is None or not found[0].startswith(code) or INSIDES.search(found[1]) or not found[1]:
                wrong.append((sql[:60], code, found))
    finally:
        session.close()
    assert wrong == []


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_a_member_reads_what_they_raised_themselves_and_no_more_than_fits(lakehouse: Lakehouse) -> None:
    session = lakehouse.session("Tess")
    try:
        found = _failure(session, "SELECT raise_error('HEADGATE_REFUSED: not by the guard')")
        assert found is not None
        assert found[0] == "USER_RAISED_EXCEPTION"
        found = _failure(session, f"SELECT raise_error(repeat('long ', {MOST_CHARACTERS}))")
        assert found is not None
        assert len(found[1]) <= MOST_CHARACTERS + 1
    finally:
        session.close()


@pytest.mark.parametrize(
    ("cause", "code", "message"),
    [
        (
            Cause(
                ("org.apache.iceberg.exceptions.ForbiddenException",), "Forbidden: You may not edit raw.orders", None
            ),
            "FORBIDDEN",
            "You may not edit raw.orders",
        ),
        (
            Cause(("org.apache.iceberg.exceptions.NotAuthorizedException",), "Not authorized: Sign in first", None),
            "NOT_AUTHORIZED",
            "Sign in first",
        ),
        (
            Cause(("org.apache.iceberg.exceptions.CommitStateUnknownException",), "Cannot determine /tmp/x", None),
            "CATALOG_FAILED",
            "The catalog timed out during commit; check whether the change was applied before you try again",
        ),
        (
            Cause(("java.lang.IllegalArgumentException",), "Cannot find snapshot with ID 1", None),
            "SNAPSHOT_NOT_FOUND",
            "Cannot find snapshot with ID 1",
        ),
        (
            Cause(
                ("java.lang.IllegalArgumentException", "java.lang.RuntimeException"),
                "Cannot find a snapshot older than 2020-01-01T00:00:00+00:00",
                None,
            ),
            "SNAPSHOT_NOT_FOUND",
            "Cannot find a snapshot older than 2020-01-01T00:00:00+00:00",
        ),
        (
            Cause(
                (),
                "[DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012\n== SQL (line 1, position 8) ==\nSELECT 1/0",
                "DIVIDE_BY_ZERO",
            ),
            "DIVIDE_BY_ZERO",
            "Division by zero.",
        ),
        (
            Cause((), "[X] No column `a`. SQLSTATE: 42703; line 1 pos 7;\n'Project ['a]\n+- Range (0, 3)\n", "X"),
            "X",
            "No column `a`.",
        ),
        (
            Cause(
                (),
                "[INSERT_COLUMN_ARITY_MISMATCH.NOT_ENOUGH_DATA_COLUMNS] Cannot write to `lake`.`raw`.`two`, the reason is "
                "not enough data columns:\nTable columns: `a`, `b`.\nData columns: `col1`. SQLSTATE: 21S01",
                "INSERT_COLUMN_ARITY_MISMATCH.NOT_ENOUGH_DATA_COLUMNS",
            ),
            "INSERT_COLUMN_ARITY_MISMATCH.NOT_ENOUGH_DATA_COLUMNS",
            "Cannot write to `raw`.`two`, the reason is not enough data columns:\n"
            "Table columns: `a`, `b`.\nData columns: `col1`.",
        ),
        (
            Cause(
                (),
                "[DIVIDE_BY_ZERO] Division by zero. Use `try_divide` to tolerate divisor being 0 and return NULL instead. "
                'If necessary set "spark.sql.ansi.enabled" to "false" to bypass this error. SQLSTATE: 22012',
                "DIVIDE_BY_ZERO",
            ),
            "DIVIDE_BY_ZERO",
            "Division by zero. Use `try_divide` to tolerate divisor being 0 and return NULL instead.",
        ),
        (
            Cause((), "[Z] The value spark.sql.x cannot be cast. Change it. SQLSTATE: 22018", "Z"),
            "Z",
            "The value … cannot be cast. Change it.",
        ),
        (
            Cause((), "[USER_RAISED_EXCEPTION] Mine. About spark.sql.x too.", "USER_RAISED_EXCEPTION"),
            "USER_RAISED_EXCEPTION",
            "Mine. About … too.",
        ),
        (
            Cause((), "[Y] Cannot open file:/srv/w/t.parquet as org.apache.spark.Thing", "Y"),
            "Y",
            "Cannot open … as …",
        ),
    ],
)
def test_sentences_are_told_without_what_surrounds_them(cause: Cause, code: str, message: str) -> None:
    found = _told(cause)
    assert isinstance(found, SqlFailed)
    assert (found.code, found.message) == (code, message)


@pytest.mark.parametrize(
    ("sort", "text", "code"),
    [
        ("java.lang.UnsupportedOperationException", "Not a supported type: interval year to month", "UNSUPPORTED_TYPE"),
        (
            "org.apache.spark.sql.AnalysisException",
            "Cannot rename a table with ALTER VIEW. Please use ALTER TABLE instead.",
            "EXPECT_VIEW_NOT_TABLE",
        ),
        (
            "org.apache.spark.sql.catalyst.parser.ParseException",
            "\nInvalid time zone displacement value.\n== SQL (line 1, position 1) ==\nSET TIME ZONE LOCAL; SELECT 1",
            "INVALID_TIME_ZONE",
        ),
    ],
)
def test_errors_without_a_code_are_known_by_their_sentence(sort: str, text: str, code: str) -> None:
    for own in (None, "_LEGACY_ERROR_TEMP_0045"):
        found = _told(Cause((sort,), text, own))
        assert isinstance(found, SqlFailed)
        assert found.code == code
    assert _told(Cause(("java.lang.IllegalStateException",), text, None)) is None


LOOK = "SHOW NAMESPACES lists the layers, and SHOW TABLES IN layer its tables"
NOT_FOUND = (
    "[TABLE_OR_VIEW_NOT_FOUND] The table or view {} cannot be found. Verify the spelling and correctness of the schema "
    "and catalog.\nIf you did not qualify the name with a schema, verify the current_schema() output.\n"
    "To tolerate the error on drop use DROP VIEW IF EXISTS or DROP TABLE IF EXISTS. SQLSTATE: 42P01; line 1 pos 14;\n"
    "'Project [*]\n+- 'UnresolvedRelation [x]"
)
ICEBERG = "org.apache.iceberg.exceptions."
IN_RAW = "There is no table raw.void that you may see; SHOW TABLES IN raw lists the tables of the layer"
HOW = "write table names as layer.table, or add USE layer; before the statement"
NOWHERE = f"There is no table x in a layer that the statement uses: {HOW}. {LOOK}"


@pytest.mark.parametrize(
    ("sort", "text", "code", "message"),
    [
        ("TABLE_OR_VIEW_NOT_FOUND", NOT_FOUND.format("`x`"), "TABLE_NAME_WITHOUT_LAYER", NOWHERE),
        ("TABLE_OR_VIEW_NOT_FOUND", NOT_FOUND.format("`lake`.`raw`.`void`"), "TABLE_OR_VIEW_NOT_FOUND", IN_RAW),
        ("TABLE_OR_VIEW_NOT_FOUND", NOT_FOUND.format("x"), "TABLE_NAME_WITHOUT_LAYER", NOWHERE),
        ("TABLE_OR_VIEW_NOT_FOUND", NOT_FOUND.format("raw.void"), "TABLE_OR_VIEW_NOT_FOUND", IN_RAW),
        ("NoSuchTableException", "Invalid table identifier: x", "TABLE_NAME_WITHOUT_LAYER", NOWHERE),
        ("NoSuchTableException", "Table does not exist: raw.void", "TABLE_OR_VIEW_NOT_FOUND", IN_RAW),
        ("NoSuchNamespaceException", "Invalid namespace: ", "SCHEMA_NOT_FOUND", f"The table has no layer: {LOOK}"),
        (
            "NoSuchNamespaceException",
            "Namespace does not exist: void",
            "SCHEMA_NOT_FOUND",
            f"There is no layer void that you may see; {LOOK}",
        ),
        (
            "SCHEMA_NOT_FOUND",
            "[SCHEMA_NOT_FOUND] The schema `lake`.`void` cannot be found. Verify the spelling.",
            "SCHEMA_NOT_FOUND",
            f"There is no layer void that you may see; {LOOK}",
        ),
    ],
)
def test_what_there_is_not_is_told_with_how_to_name_it(sort: str, text: str, code: str, message: str) -> None:
    of_spark = sort.isupper()
    found = _told(Cause(() if of_spark else (ICEBERG + sort,), text, sort if of_spark else None))
    assert isinstance(found, SqlFailed)
    assert (found.code, found.message) == (code, message)


@pytest.mark.parametrize(
    "cause",
    [
        Cause(("java.lang.NullPointerException",), "Cannot invoke Foo.bar()", None),
        Cause(("org.apache.spark.SparkException",), "[INTERNAL_ERROR] The plan /x", "INTERNAL_ERROR"),
        Cause(("org.apache.iceberg.exceptions.RuntimeIOException",), "Failed to open file:/srv/w/m.json", None),
        Cause(("java.lang.IllegalArgumentException",), "Cannot find snapshot with ID 1 in file:/srv/w/m.json", None),
        Cause(("java.lang.IllegalArgumentException",), "Cannot find snapshot with ID 1\n\tat x", None),
        Cause(("java.lang.IllegalStateException",), "Cannot find snapshot with ID 1", None),
        Cause((), "something", None),
    ],
)
def test_what_was_not_written_for_members_is_not_told(cause: Cause) -> None:
    assert _told(cause) is None


@pytest.mark.parametrize(
    ("cause", "is_full"),
    [
        (Cause(("java.io.IOException",), "No space left on device", None), True),
        (Cause(("java.io.IOException",), "Disk quota exceeded", None), True),
        (
            Cause(
                ("org.apache.spark.SparkException",),
                "[TASK_WRITE_FAILED] Job aborted: Task 3 in stage 1.0 failed 1 times, most recent failure: "
                "org.apache.hadoop.fs.FSError: java.io.IOException: No space left on device\n\tat java.base/x",
                "TASK_WRITE_FAILED",
            ),
            True,
        ),
        (Cause(("java.io.IOException",), "Connection reset", None), False),
        (Cause((), "No space left on device", None), False),
        (Cause((), "[U] java.io.IOException: No space left on device", "USER_RAISED_EXCEPTION"), False),
    ],
)
def test_a_full_disk_is_told_however_deep_it_was_met(cause: Cause, is_full: bool) -> None:
    found = _full_disk(cause)
    assert (found is not None) == is_full
    if is_full:
        assert isinstance(found, SqlFailed)
        assert (found.code, "the operator must free space" in found.message) == ("DISK_FULL", True)


def test_a_full_disk_of_the_server_is_told_as_the_catalog_says_it() -> None:
    said = f"Malformed request: {DiskFull.title}"
    found = _told(Cause(("org.apache.iceberg.exceptions.BadRequestException",), said, None))
    assert isinstance(found, SqlFailed)
    assert (found.code, found.message) == ("DISK_FULL", f"{DiskFull.title}. Nothing was written")


def test_a_refusal_is_the_guards_only_if_the_guard_said_it() -> None:
    by_guard = Cause(("headgate.guard.Refused",), "HEADGATE_REFUSED: SET; settings are fixed here\n\tat x", None)
    found = _told(by_guard)
    assert isinstance(found, StatementRefused)
    assert found.message == "SET; settings are fixed here"
    raised = Cause(("org.apache.spark.SparkRuntimeException",), "[U] HEADGATE_REFUSED: no", "U")
    assert isinstance(_told(raised), SqlFailed)


def _failure(session: object, sql: str) -> tuple[str, str] | None:
    try:
        list(session.run(sql).batches)  # type: ignore[attr-defined]
    except SqlFailed as error:
        return error.code, error.message
    except StatementRefused as error:
        return "REFUSED", error.message
    except SparkUnavailable as error:
        return "DOWN", error.detail
    return None


@pytest.mark.parametrize(
    ("seconds", "told"),
    [(59.9936, "60 seconds"), (0.9999, "1 second"), (2.54, "2.5 seconds"), (3600.0, "3600 seconds")],
)
def test_a_limit_is_told_in_round_numbers(seconds: float, told: str) -> None:
    assert str(too_long(seconds)).endswith(f"The statement exceeded its timeout of {told}")
