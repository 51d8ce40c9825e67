"""The texts that steps send: members' SQL stays within its brackets, names and values within their quotes."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.contracts.pipelines.expectations import Expectation
from headgate.contracts.tables.types import Column, PrimitiveType
from headgate.execution.statements import checks, history_by_snapshot, history_by_time
from headgate.execution.statements import query_output as refine
from headgate.execution.statements.checks import BadCheck, Table, expectation_query
from headgate.execution.statements.history_by_snapshot import Shape

HOSTILE = "x` = 1) OR TRUE; DROP TABLE `y"
INT, TEXT, TIME = PrimitiveType("INT"), PrimitiveType("STRING"), PrimitiveType("TIMESTAMP")
COLUMNS = (Column(HOSTILE, INT), Column("name", TEXT), Column("at", TIME))
AT = datetime(2026, 5, 1, tzinfo=UTC)
TABLE = Table("raw.t", "`raw`.`t`", COLUMNS)


def without_quoted(sql: str) -> str:
    """A statement without its quoted names and texts."""
    found, at = "", 0
    while at < len(sql):
        mark = sql[at]
        if mark not in "`'":
            found, at = found + mark, at + 1
            continue
        at += 1
        while sql[at] != mark or sql[at + 1 : at + 2] == "`" == mark:
            at += 2 if sql[at] in ("\\" if mark == "'" else "`") else 1
        at += 1
    return found


@given(st.text(" ;\n-'a", max_size=8))
def test_only_semicolons_and_space_are_taken_from_the_end_of_a_query(end: str) -> None:
    text = "SELECT 1 AS a" + end
    assert text.startswith(refine.query(text))
    assert set(text[len(refine.query(text)) :]) <= set("; \n")


def test_a_query_stands_on_lines_of_its_own() -> None:
    text = "SELECT 1 AS id, 'a' AS name -- the end"
    given_ = (Column("ID", INT), Column("name", TEXT))
    for sql in (
        refine.insert("`l`.`t`", text, given_, given_, overwrite=True, where="q.`ID` > 1"),
        refine.merge("`l`.`t`", text, given_, given_, ["id"]),
        refine.duplicate_keys(text, ["id"]),
    ):
        assert f"(\n{text}\n)" in sql


@pytest.mark.parametrize("write", [history_by_snapshot.by_snapshot, history_by_time.by_time])
@pytest.mark.parametrize("closes", [True, False])
def test_names_of_columns_stay_in_their_quotes(write: object, closes: bool) -> None:
    time = "at" if write is history_by_time.by_time else None
    shape = Shape("`l`.`h`", "`l`.`s` VERSION AS OF 5", COLUMNS, COLUMNS, (HOSTILE,), ("name",), time, closes)
    sql = write(shape, AT)  # type: ignore[operator]
    assert "`" + HOSTILE.replace("`", "``") + "`" in sql
    bare = without_quoted(sql)
    assert ";" not in bare
    assert "DROP" not in bare
    assert bare.count("(") == bare.count(")")


def test_columns_with_names_like_ours_do_not_meet_them() -> None:
    names = ("c0", "v0", "n", "given", "kept", "t", "r", "k0", "begins", "e", "h", "s")
    columns = tuple(Column(name, INT) for name in names)
    shape = Shape("`l`.`h`", "`l`.`s`", columns, columns, ("c0",))
    bare = without_quoted(history_by_snapshot.by_snapshot(shape, AT))
    assert "c11" in bare
    merged = refine.merge("`l`.`t`", "SELECT 1", columns, columns, ["c0"])
    assert "AS `n_`" in merged


@pytest.mark.parametrize(
    "fields",
    [
        {"check": "not_null", "columns": [HOSTILE, "name"]},
        {"check": "unique", "columns": [HOSTILE]},
        {"check": "accepted", "columns": ["name"], "values": ["a'); DROP TABLE t; --", "\\"]},
        {"check": "range", "columns": [HOSTILE], "least": 1, "most": "2"},
        {"check": "pattern", "columns": ["name"], "pattern": "'; DROP TABLE t; --\\"},
        {"check": "rows", "least": 1},
        {"check": "freshness", "columns": ["at"], "within": "1 day"},
        {"check": "reference", "columns": [HOSTILE], "other": "raw.t", "other_columns": [HOSTILE]},
    ],
)
def test_checks_quote_names_and_values(fields: dict[str, object]) -> None:
    asked = expectation_query(Expectation(table="raw.t", **fields), TABLE, TABLE, AT, ZoneInfo("UTC"))
    for sql in filter(None, (asked.counts, asked.sample)):
        bare = without_quoted(sql)
        assert ";" not in bare
        assert "DROP" not in bare
        assert bare.count("(") == bare.count(")")


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"check": "not_null", "columns": ["nope"]}, "raw.t has no column nope; it has x"),
        ({"check": "accepted", "columns": ["at"], "values": [5]}, "5 is not a valid value of at"),
        ({"check": "range", "columns": ["name"], "least": 5}, "5 is not a valid value of name"),
        ({"check": "pattern", "columns": ["at"], "pattern": "x"}, "patterns require a text column"),
        ({"check": "freshness", "columns": ["name"], "within": "1 day"}, "freshness requires a date or a timestamp"),
        (
            {"check": "reference", "columns": ["name"], "other": "raw.t", "other_columns": ["at"]},
            "columns of compatible types",
        ),
    ],
)
def test_what_cannot_be_checked_is_said(fields: dict[str, object], told: str) -> None:
    with pytest.raises(BadCheck, match=told):
        expectation_query(Expectation(table="raw.t", **fields), TABLE, TABLE, AT, ZoneInfo("UTC"))


def test_freshness_is_counted_back_from_the_moment_in_the_zone() -> None:
    for kind, bound in (
        ("DATE", "DATE '2026-04-30'"),
        ("TIMESTAMP_NTZ", "TIMESTAMP_NTZ '2026-04-30 02:00:00'"),
        ("TIMESTAMP", "TIMESTAMP '2026-04-30 00:00:00+00:00'"),
    ):
        table = Table("raw.t", "`raw`.`t`", (Column("at", PrimitiveType(kind)),))
        one = Expectation(table="raw.t", check="freshness", columns=("at",), within="1 day")
        assert bound in expectation_query(one, table, None, AT, ZoneInfo("Europe/Berlin")).counts
    assert checks.SAMPLE == 20
