"""Members' SQL on a running Spark: this machine's own, or with `make cluster-test` that of a cluster."""

import threading
import time
from decimal import Decimal

import pytest

from headgate.execution.spark.errors import CANCELED, TIME_LIMIT
from headgate.execution.spark.member import SqlFailed, StatementProgress, StatementRefused
from tests.execution.spark.conftest import Lakehouse
from tests.support.spark import rows_of, within

pytestmark = [pytest.mark.spark, pytest.mark.cluster, pytest.mark.xdist_group("spark")]

ENDLESS = "SELECT count(*) FROM range(1000000000000) WHERE id % 7 = 3"


def test_a_statement_answers_with_its_columns_and_rows(lakehouse: Lakehouse) -> None:
    session = lakehouse.session("Tess")
    try:
        answer = session.run("SELECT 1 AS a, 'x' AS b, CAST(2.5 AS DECIMAL(4,1)) AS c, CAST(NULL AS DATE) AS d")
        assert answer.schema.names == ["a", "b", "c", "d"]
        assert [row for batch in answer.batches for row in batch.to_pylist()] == [
            {"a": 1, "b": "x", "c": Decimal("2.5"), "d": None}
        ]
        assert session.schema("SELECT 1 AS a, 'x' AS b").names == ["a", "b"]
    finally:
        session.close()


def test_the_guard_refuses_and_says_why(lakehouse: Lakehouse) -> None:
    with pytest.raises(StatementRefused, match="SET"):
        lakehouse.rows("Tess", "SET spark.sql.ansi.enabled=false")


def test_a_result_without_rows_still_has_columns(lakehouse: Lakehouse) -> None:
    session = lakehouse.session("Tess")
    try:
        answer = session.run("SELECT id AS n FROM range(10) WHERE id > 10")
        assert answer.schema.names == ["n"]
        assert list(answer.batches) == [] or sum(batch.num_rows for batch in answer.batches) == 0
    finally:
        session.close()


def test_times_are_told_in_the_zone_of_the_session(lakehouse: Lakehouse) -> None:
    for zone, hour in (("UTC", 12), ("Asia/Tokyo", 21)):
        session = lakehouse.session("Tess", time_zone=zone)
        try:
            [row] = rows_of(session, "SELECT hour(timestamp_seconds(43200)) AS h")
        finally:
            session.close()
        assert row == {"h": hour}


def test_a_command_is_executed_once(lakehouse: Lakehouse) -> None:
    lakehouse.rows("Tess", "CREATE TABLE raw.once (n INT)")
    lakehouse.rows("Tess", "INSERT INTO raw.once VALUES (1), (2)")
    assert lakehouse.rows("Tess", "SELECT count(*) AS c FROM raw.once") == [{"c": 2}]
    assert len(lakehouse.rows("Tess", "SELECT snapshot_id FROM raw.once.snapshots")) == 1


def test_looking_at_the_columns_executes_nothing(lakehouse: Lakehouse) -> None:
    lakehouse.rows("Tess", "CREATE TABLE raw.looked_at (n INT)")
    session = lakehouse.session("Tess")
    try:
        session.schema("INSERT INTO raw.looked_at VALUES (1)")
    finally:
        session.close()
    assert lakehouse.rows("Tess", "SELECT * FROM raw.looked_at") == []


def test_two_members_see_what_each_of_them_may_see(lakehouse: Lakehouse) -> None:
    lakehouse.rows("Tess", "CREATE TABLE raw.seen AS SELECT 7 AS n")
    lakehouse.rows("Tess", "CREATE TABLE trusted.seen AS SELECT 8 AS n")
    tess, ana = lakehouse.session("Tess"), lakehouse.session("Ana")
    try:
        assert rows_of(tess, "SELECT * FROM raw.seen") == [{"n": 7}]
        assert rows_of(ana, "SELECT * FROM trusted.seen") == [{"n": 8}]
        with pytest.raises(SqlFailed) as hidden:
            rows_of(ana, "SELECT * FROM raw.seen")
        with pytest.raises(SqlFailed) as missing:
            rows_of(ana, "SELECT * FROM raw.void")
        assert hidden.value.code == missing.value.code == "TABLE_OR_VIEW_NOT_FOUND"
        assert hidden.value.message.replace("seen", "void") == missing.value.message
        with pytest.raises(SqlFailed) as refused:
            rows_of(ana, "INSERT INTO trusted.seen VALUES (9)")
        assert refused.value.code == "FORBIDDEN"
    finally:
        tess.close()
        ana.close()
    assert lakehouse.rows("Ana", "SELECT * FROM trusted.seen") == [{"n": 8}]


def test_progress_is_told_while_a_statement_runs(lakehouse: Lakehouse) -> None:
    told: list[StatementProgress] = []
    session = lakehouse.session("Tess")

    def note(progress: StatementProgress) -> None:
        told.append(progress)
        if len(told) == 3:
            threading.Thread(target=session.interrupt, daemon=True).start()

    try:
        with pytest.raises(SqlFailed):
            session.run(ENDLESS, note)
    finally:
        session.close()
    assert len(told) >= 3
    assert all(one.tasks_total == sum(stage.tasks_total for stage in one.stages) > 0 for one in told)
    assert all(one.tasks_done <= one.tasks_total for one in told)


def test_a_statement_is_stopped_at_its_time_limit(lakehouse: Lakehouse) -> None:
    session = lakehouse.session("Tess")
    began = time.monotonic()
    try:
        with pytest.raises(SqlFailed) as stopped:
            session.run(ENDLESS, seconds=2)
    finally:
        session.close()
    assert (stopped.value.code, time.monotonic() - began < 60) == (TIME_LIMIT, True)
    assert "2 seconds" in stopped.value.message
    within(60, lambda: _is_idle(lakehouse))


def test_an_interrupted_statement_is_gone_from_spark(lakehouse: Lakehouse) -> None:
    session = lakehouse.session("Tess")
    started = threading.Event()
    threading.Thread(target=lambda: started.wait(60) and session.interrupt(), daemon=True).start()
    try:
        with pytest.raises(SqlFailed) as stopped:
            session.run(ENDLESS, lambda _: started.set())
        assert stopped.value.code == CANCELED
        within(60, lambda: _is_idle(lakehouse))
        with pytest.raises(SqlFailed):
            session.run("SELECT 1")
    finally:
        session.close()


def test_a_statement_that_was_not_yet_sent_can_be_stopped(lakehouse: Lakehouse) -> None:
    session = lakehouse.session("Tess")
    try:
        session.interrupt()
        with pytest.raises(SqlFailed) as stopped:
            session.run(ENDLESS)
    finally:
        session.close()
    assert stopped.value.code == CANCELED


def test_a_statement_stopped_in_its_first_moments_leaves_no_job_behind(lakehouse: Lakehouse) -> None:
    """The interrupt meets it while it is parsed, planned, between two jobs, and as a job starts."""
    for moment in range(24):
        session = lakehouse.session("Tess")
        stop = threading.Timer(0.02 + moment * 0.025, session.interrupt)
        stop.start()
        try:
            with pytest.raises(SqlFailed):
                session.run(ENDLESS.replace("= 3", f"= (SELECT max(id) FROM range({1000 + moment})) % 7"))
        finally:
            stop.join()
            session.close()
    within(60, lambda: _is_idle(lakehouse))


def test_closing_a_session_stops_what_it_runs(lakehouse: Lakehouse) -> None:
    session = lakehouse.session("Tess")
    started, failed = threading.Event(), threading.Event()

    def run() -> None:
        try:
            session.run(ENDLESS, lambda _: started.set())
        except SqlFailed:
            failed.set()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert started.wait(60)
    session.close()
    assert failed.wait(60)
    within(60, lambda: _is_idle(lakehouse))
    thread.join(60)


def test_a_large_result_streams(lakehouse: Lakehouse) -> None:
    session = lakehouse.session("Tess")
    try:
        answer = session.run("SELECT id, CAST(id AS STRING) AS s FROM range(1000000)", max_rows=2_000_000)
        sizes = [batch.num_rows for batch in answer.batches]
    finally:
        session.close()
    assert sum(sizes) == 1_000_000
    assert max(sizes) < 100_000


def test_no_more_rows_come_than_asked_for(lakehouse: Lakehouse) -> None:
    assert len(lakehouse.rows("Tess", "SELECT * FROM range(1000000000000)", max_rows=7)) == 7
    most = lakehouse.spark.settings.sql.max_rows
    assert len(lakehouse.rows("Tess", "SELECT id FROM range(1000000000000)")) == most + 1


def test_whoever_stops_reading_ends_the_statement(lakehouse: Lakehouse) -> None:
    session = lakehouse.session("Tess")
    try:
        answer = session.run("SELECT id FROM range(100000000)", max_rows=10_000_000)
        assert next(iter(answer.batches)).num_rows > 0
        answer.batches.close()  # type: ignore[attr-defined]
        within(60, lambda: _is_idle(lakehouse))
        assert rows_of(session, "SELECT 1 AS a") == [{"a": 1}]
    finally:
        session.close()


def test_a_revoked_token_ends_a_session(lakehouse: Lakehouse) -> None:
    lakehouse.rows("Tess", "CREATE TABLE raw.revoked AS SELECT 1 AS n")
    session = lakehouse.session("Tess")
    try:
        assert rows_of(session, "SELECT * FROM raw.revoked") == [{"n": 1}]
        with lakehouse.company.database.engine.begin() as connection:
            connection.exec_driver_sql("UPDATE work_tokens SET ended_at = created_at")
        with pytest.raises(SqlFailed) as refused:
            rows_of(session, "SELECT * FROM raw.revoked")
    finally:
        session.close()
    assert refused.value.code in {"NOT_AUTHORIZED", "TABLE_OR_VIEW_NOT_FOUND"}


def _is_idle(lakehouse: Lakehouse) -> bool:
    before = lakehouse.spark.cpu_seconds()
    time.sleep(1)
    return lakehouse.spark.cpu_seconds() - before < 0.5
