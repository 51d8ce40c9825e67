"""What members write works; what attackers write does not, and gives nothing away."""

import re
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

import pytest
from pyspark.sql.connect.session import SparkSession

from tests.spark_guard import attacks, dataframes, legitimate
from tests.spark_guard.server import VARIABLE, Server

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

REFUSED = "HEADGATE_REFUSED: "
# What Spark itself says where the guard need not: the statement is no SQL, or the thing does not exist.
NATIVE = re.compile(
    r"\[(PARSE_SYNTAX_ERROR|TABLE_OR_VIEW_NOT_FOUND|INVALID_STATEMENT_OR_CLAUSE|UNSUPPORTED_FEATURE[.A-Z_]*|UNBOUND_SQL_PARAMETER|"
    r"PARSE_EMPTY_STATEMENT|INVALID_SQL_SYNTAX[.A-Z_]*|_LEGACY_ERROR_TEMP_\d+)\]|Cannot find matching snapshot ID"
)


@pytest.fixture(scope="module")
def prepared(spark: Any) -> Any:
    """The session, after the statements that make tables."""
    for statement in (*legitimate.SETUP, "CREATE TABLE raw.t (id BIGINT)", "INSERT INTO raw.t VALUES (1)"):
        spark.sql(statement).collect()
    # Other sessions of this process came and went; functions without one of their own take the active one.
    type(spark)._set_default_and_active_session(spark)
    return spark


def _run(spark: Any, statement: str, args: Any = None) -> str:
    """The answer as text, or the error's; an error starts with an exclamation mark."""
    try:
        return str([row.asDict(recursive=True) for row in spark.sql(statement, args=args).collect()])
    except Exception as problem:  # noqa: BLE001
        return f"! {type(problem).__name__} {problem}"


def _failures(spark: Any, statements: Iterable[str]) -> list[str]:
    answers = ((statement, _run(spark, statement)) for statement in statements)
    return [f"{statement[:120]} -> {answer[:300]}" for statement, answer in answers if answer.startswith("!")]


def _none(wrong: list[str]) -> None:
    """Say all that is wrong at once: a server takes long to start."""
    if wrong:
        pytest.fail("\n".join(wrong), pytrace=False)


def test_what_members_write_works(prepared: Any) -> None:
    rest = [one for one in legitimate.ALL if one not in legitimate.SETUP]
    assert len(legitimate.ALL) >= 120
    _none(_failures(prepared, rest))


def test_parameters_are_values_only(prepared: Any) -> None:
    for statement, args in legitimate.PARAMETERS:
        answer = _run(prepared, statement, args)
        assert not answer.startswith("!"), answer


def test_a_table_goes_back_to_an_earlier_snapshot(prepared: Any) -> None:
    prepared.sql("CREATE TABLE raw.back AS SELECT 1 AS id").collect()
    first = prepared.sql("SELECT snapshot_id, committed_at FROM raw.back.snapshots").collect()[0]
    prepared.sql("INSERT INTO raw.back VALUES (2)").collect()
    second = prepared.sql("SELECT snapshot_id FROM raw.back.snapshots ORDER BY committed_at DESC").collect()[0][0]
    prepared.sql(f"CALL lake.system.rollback_to_snapshot('raw.back', {first[0]})").collect()
    assert prepared.sql("SELECT count(*) FROM raw.back").collect()[0][0] == 1
    prepared.sql(f"CALL lake.system.set_current_snapshot(table => 'lake.raw.back', snapshot_id => {second})").collect()
    assert prepared.sql("SELECT count(*) FROM raw.back").collect()[0][0] == 2
    between = f"TIMESTAMP '{first[1] + timedelta(milliseconds=1)} UTC'"
    prepared.sql(f"CALL lake.system.rollback_to_timestamp('raw.back', {between})").collect()
    assert prepared.sql("SELECT count(*) FROM raw.back").collect()[0][0] == 1


def test_settings_cannot_be_asked_for(prepared: Any) -> None:
    assert f"{REFUSED}SET; settings are fixed here" in _run(prepared, "SET")


def test_a_refused_function_is_answered_with_where_the_others_are(prepared: Any) -> None:
    answer = _run(prepared, "SELECT reflect('java.lang.System', 'getenv')")
    assert f"{REFUSED}the function reflect; use a built-in function that the reference lists" in answer
    assert "notebook" not in answer


def test_attacks_are_refused_and_give_nothing_away(prepared: Any, guarded: Server) -> None:
    assert len(attacks.ALL) >= 270
    before = sorted(guarded.secret_file.parent.rglob("*"))
    secrets = (guarded.file_secret, guarded.env_secret, guarded.warehouse.name)
    folder = str(guarded.secret_file.parent)
    wrong = []
    for pattern in attacks.ALL:
        statement = pattern.replace("{file}", str(guarded.secret_file)).replace("{folder}", folder)
        answer = _run(prepared, statement.replace("{env}", VARIABLE))
        if not answer.startswith("!") or not (REFUSED in answer or NATIVE.search(answer)):
            wrong.append(f"not refused: {pattern} -> {answer[:300]}")
        # An error of Spark may repeat the statement; it is searched without it.
        if any(secret in answer.replace(statement, "") for secret in secrets):
            wrong.append(f"gave something away: {pattern} -> {answer[:300]}")
        if REFUSED in answer and folder in answer:
            wrong.append(f"named a path: {pattern} -> {answer[:300]}")
    _none(wrong)
    assert prepared.sql("SELECT * FROM raw.t").collect()[0].asDict() == {"id": 1}
    made = [path for path in guarded.secret_file.parent.rglob("*") if path not in before]
    assert [path for path in made if guarded.warehouse not in path.parents and path.name != "spark-warehouse"] == []
    assert guarded.secret_file.read_text() == f"{guarded.file_secret}\n"


def test_explain_shows_a_refusal_and_no_more(prepared: Any, guarded: Server) -> None:
    answer = _run(prepared, "EXPLAIN EXTENDED SELECT file_path FROM raw.t.files")
    assert REFUSED in answer
    assert guarded.warehouse.name not in answer


def _act(act: dataframes.Act, spark: Any, server: Server) -> str:
    try:
        return str(act(spark, server))
    except Exception as problem:  # noqa: BLE001
        return f"! {type(problem).__name__} {problem}"


def test_plans_that_no_sql_makes_are_refused(prepared: Any, guarded: Server) -> None:
    answers = {name: _act(act, prepared, guarded) for name, act in dataframes.refused().items()}
    secrets = (guarded.file_secret, guarded.env_secret)
    unknown = ("TABLE_OR_VIEW_NOT_FOUND", "Couldn't find a catalog")
    safe = {name for name, answer in answers.items() if any(word in answer for word in (REFUSED, *unknown))}
    _none([f"{name} -> {answer[:300]}" for name, answer in answers.items() if name not in safe])
    assert sum(REFUSED in answer for answer in answers.values()) >= 45
    _none([name for name, answer in answers.items() if any(secret in answer for secret in secrets)])
    assert not (guarded.secret_file.parent / "out").exists()


def test_plans_that_sql_could_make_pass(prepared: Any, guarded: Server) -> None:
    answers = {name: _act(act, prepared, guarded) for name, act in dataframes.allowed().items()}
    _none([f"{name} -> {answer[:300]}" for name, answer in answers.items() if answer.startswith("!")])


def test_a_session_whose_settings_were_changed_is_refused(guarded: Server) -> None:
    for key, value in (
        ("spark.sql.runSQLOnFiles", "true"),
        ("spark.sql.variable.substitute", "true"),
        ("spark.sql.catalog.lake.cache-enabled", "true"),
        ("spark.sql.analyzer.singlePassResolver.enabled", "true"),
    ):
        session = SparkSession.builder.remote(guarded.url).create()
        try:
            session.conf.set(key, value)
            assert f"{REFUSED}this session" in _run(session, "SELECT 1"), key
        finally:
            session.stop()


def test_a_session_cannot_leave_its_catalog(guarded: Server) -> None:
    session = SparkSession.builder.remote(guarded.url).create()
    try:
        with pytest.raises(Exception, match=f"{REFUSED}this session"):
            session.catalog.setCurrentCatalog("spark_catalog")
        assert f"{REFUSED}this session" in _run(session, "SELECT 1")
    finally:
        session.stop()


def test_answers_for_members_name_no_paths(prepared: Any, guarded: Server) -> None:
    shown = [one for one in legitimate.METADATA if "raw." in one]
    assert [one for one in shown if guarded.warehouse.name in _run(prepared, one)] == []


def test_deep_statements_pass_or_fail_but_break_nothing(prepared: Any) -> None:
    for statement in (
        f"SELECT {'(' * 200}1{')' * 200}",
        f"SELECT {' + '.join(['1'] * 400)}",
        f"SELECT * FROM raw.t WHERE {' OR '.join(f'id = {n}' for n in range(1000))}",
        " UNION ALL ".join(["SELECT 1"] * 100),
        f"{'SELECT * FROM (' * 40}SELECT 1{')' * 40}",
    ):
        answer = _run(prepared, statement)
        assert REFUSED not in answer, answer[:300]
    assert REFUSED in _run(prepared, f"{'SELECT * FROM (' * 40}SELECT reflect('x', 'y'){')' * 40}")
