"""Over the protocol a session sets its own token, member, zone, layer and origins, before its first statement, and nothing else."""

import uuid
from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from pyspark.sql.connect.session import SparkSession

from headgate.execution.spark import conf
from headgate.execution.spark.connect import Connection, Session
from headgate.execution.spark.jars import Jars
from tests.spark_guard import server

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

LAKE = f"spark.sql.catalog.{conf.CATALOG}"
ELSEWHERE = {
    f"{LAKE}.type": "rest",
    f"{LAKE}.uri": "http://127.0.0.1:9/",
    f"{LAKE}.warehouse": "file:///tmp/elsewhere",
    f"{LAKE}.io-impl": "org.apache.iceberg.hadoop.HadoopFileIO",
    f"{LAKE}.header.X-Other": "x",
    f"{LAKE}.header.authorization": "Bearer other",
    f"{LAKE}.rest.auth.type": "basic",
    LAKE: "org.apache.spark.sql.connector.catalog.InMemoryTableCatalog",
    "spark.sql.catalog.other": "org.apache.iceberg.spark.SparkCatalog",
    "spark.sql.catalog.spark_catalog": "org.apache.iceberg.spark.SparkCatalog",
    "spark.sql.defaultCatalog": "spark_catalog",
    "spark.sql.ansi.doubleQuotedIdentifiers": "true",
    "spark.hadoop.fs.defaultFS": "file:///tmp",
    "fs.defaultFS": "file:///tmp",
    "spark.sql.shuffle.partitions": "1000000",
    "SPARK.SQL.SESSION.TIMEZONE": "UTC",
    "headgate.anything": "true",
}
"""Each would take a session out of its catalog, past its guard, or out of its limits."""


@pytest.fixture(scope="module")
def connection(jars: Jars, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connection]:
    """A connection to a server whose protocol is narrowed, as the worker's is."""
    more = {"spark.connect.grpc.interceptor.classes": conf.INTERCEPTOR}
    with server.started(jars, tmp_path_factory.mktemp("settings"), **more) as running:
        made = Connection.by_url(running.url)
        yield made
        made.close()


def test_sessions_share_the_code_that_was_compiled(spark: Any) -> None:
    """Each with a class loader of its own would compile it anew, and run it cold, for every statement."""
    for name in ("enabled", "alwaysApplyClassloader"):
        assert spark.conf.get(f"spark.sql.artifact.isolation.{name}") == "false"


def rows(session: Session, sql: str) -> list[Any]:
    """What a statement answers."""
    return list(session.execute(sql, str(uuid.uuid4()), 10))


def refusal(session: Session, values: dict[str, str]) -> str:
    """Why these settings are refused."""
    with pytest.raises(grpc.RpcError) as caught:
        session.configure(values)
    assert caught.value.code() is grpc.StatusCode.PERMISSION_DENIED
    return str(caught.value.details())


def test_the_settings_of_the_worker_pass(connection: Connection) -> None:
    session = Session(connection)
    session.configure(conf.acting("hgw_A-b_9.~+/=", "America/Argentina/Buenos_Aires", "bea@example.com", "raw"))
    session.configure({"headgate.origins": "true"})
    for sql in ("current_timezone() = 'America/Argentina/Buenos_Aires'", "current_user() = 'bea@example.com'"):
        assert rows(session, f"SELECT assert_true({sql})")
    assert rows(session, "SELECT assert_true(current_schema() = 'raw')")
    session.release()


@pytest.mark.parametrize("key", sorted(ELSEWHERE))
def test_no_other_key_is_set(connection: Connection, key: str) -> None:
    session = Session(connection)
    expected = "HEADGATE_REFUSED: the setting of a key that is not the session's own; send SQL"
    assert refusal(session, {key: ELSEWHERE[key]}) == expected
    # Not together with one that may be set, either.
    assert refusal(session, {**conf.acting("t", "UTC"), key: ELSEWHERE[key]}) == expected
    assert rows(session, "SELECT 1")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (conf.AUTHORIZATION, "Basic dDp0"),
        (conf.AUTHORIZATION, "Bearer a\r\nX-Other: b"),
        (conf.AUTHORIZATION, "Bearer "),
        (conf.TIME_ZONE, "UTC'; SELECT 1"),
        (conf.TIME_ZONE, "x" * 65),
        (conf.LAYER, "raw.x"),
        (conf.LAYER, ""),
        (conf.USER, "a\nb"),
        (conf.USER, "x" * 321),
        ("headgate.origins", "false"),
    ],
)
def test_values_are_looked_at(connection: Connection, key: str, value: str) -> None:
    assert refusal(Session(connection), {key: value}).startswith("HEADGATE_REFUSED: this value of a setting")


def test_nothing_is_set_after_the_first_statement(connection: Connection) -> None:
    after = "HEADGATE_REFUSED: a setting after the first statement; open a new session"
    session, analysing = Session(connection), Session(connection)
    session.configure(conf.acting("first", "UTC"))
    assert rows(session, "SELECT 1")
    analysing.analyse("SELECT 1")
    for one in (session, analysing):
        assert refusal(one, conf.acting("second", "UTC")) == after
    session.release()
    assert refusal(session, conf.acting("third", "UTC")) == after


def test_no_setting_is_read_or_unset(connection: Connection) -> None:
    proto = connection.proto
    operations = {
        "get": proto.ConfigRequest.Get(keys=[conf.AUTHORIZATION]),
        "get_option": proto.ConfigRequest.GetOption(keys=[conf.AUTHORIZATION]),
        "get_with_default": proto.ConfigRequest.GetWithDefault(pairs=[proto.KeyValue(key=conf.AUTHORIZATION)]),
        "get_all": proto.ConfigRequest.GetAll(),
        "unset": proto.ConfigRequest.Unset(keys=["spark.sql.runSQLOnFiles"]),
        "is_modifiable": proto.ConfigRequest.IsModifiable(keys=["spark.sql.runSQLOnFiles"]),
    }
    for name, one in operations.items():
        request = proto.ConfigRequest(
            session_id=str(uuid.uuid4()),
            user_context=proto.UserContext(user_id="other"),
            operation=proto.ConfigRequest.Operation(**{name: one}),
        )
        with pytest.raises(grpc.RpcError, match="HEADGATE_REFUSED: this use of settings"):
            connection.quick("Config", request)


def test_no_argument_is_deep(connection: Connection) -> None:
    """Spark writes arguments into the text of a statement: what is deep there, no check of the text has seen."""
    proto = connection.proto
    literal = proto.Expression.Literal
    deep = literal(array=literal.Array(elements=[literal(integer=1)]))
    for sql in (
        proto.SQL(query="SELECT :a", args={"a": deep}),
        proto.SQL(query="SELECT ?", pos_args=[deep]),
        proto.SQL(query="SELECT :a", named_arguments={"a": proto.Expression(literal=deep)}),
        proto.SQL(query="SELECT ?", pos_arguments=[proto.Expression(literal=deep)]),
    ):
        request = proto.ExecutePlanRequest(
            session_id=str(uuid.uuid4()),
            user_context=proto.UserContext(user_id="other"),
            plan=proto.Plan(root=proto.Relation(sql=sql)),
        )
        with pytest.raises(grpc.RpcError, match="HEADGATE_REFUSED: an argument of this type"):
            list(connection.stub.ExecutePlan(request))


@pytest.mark.parametrize("key", sorted(set(ELSEWHERE) - {"SPARK.SQL.SESSION.TIMEZONE"}))
def test_a_changed_setting_is_seen_by_every_statement(guarded: server.Server, key: str) -> None:
    """The second wall, on a server whose protocol is open: a session that has other settings than its server."""
    session = SparkSession.builder.remote(guarded.url).create()
    try:
        session.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
        assert session.sql("SELECT 1").collect()[0][0] == 1
        session.conf.set(key, ELSEWHERE[key])
        with pytest.raises(Exception, match="HEADGATE_REFUSED: this session; its settings were changed"):
            session.sql("SELECT 1").collect()
    finally:
        session.stop()
