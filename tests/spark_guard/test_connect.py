"""The protocol lets SQL through, and nothing else that it could do."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pyspark.sql.connect import functions as sf
from pyspark.sql.connect import proto
from pyspark.sql.connect.conf import RuntimeConf
from pyspark.sql.connect.session import SparkSession

from headgate.execution.spark.jars import Jars
from tests.spark_guard import attacks, server

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


@pytest.fixture(scope="module")
def narrow(jars: Jars, tmp_path_factory: pytest.TempPathFactory) -> Iterator[server.Server]:
    """A server as Headgate runs it: with the guard, the protocol narrowed, and a FileIO that knows one table's folder."""
    more = {
        "spark.connect.grpc.interceptor.classes": "headgate.guard.ConnectInterceptor",
        "spark.sql.catalog.lake.io-impl": "headgate.guard.TableFileIO",
        "spark.sql.catalog.lake.headgate.root": "{warehouse}/raw/t",
        "spark.sql.catalog.lake.headgate.metadata": "{warehouse}/elsewhere",
    }
    with server.started(jars, tmp_path_factory.mktemp("narrow"), **more) as running:
        yield running


@pytest.fixture(scope="module")
def session(narrow: server.Server) -> Iterator[Any]:
    """A session on it."""
    made = SparkSession.builder.remote(narrow.url).create()
    # The server tells nobody its settings, and pyspark's client asks for some before it does anything.
    made.client._plan_compression_threshold, made.client._plan_compression_algorithm = -1, "NONE"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RuntimeConf, "get", lambda _, __, default=None: default)
        made.sql("CREATE NAMESPACE lake.raw").collect()
        made.sql("CREATE TABLE raw.t (id BIGINT, s STRING)").collect()
        yield made
        made.stop()


@pytest.fixture
def rows(session: Any) -> None:
    """Three rows in its table, and none besides."""
    session.sql("INSERT OVERWRITE raw.t VALUES (1, 'a'), (2, 'b'), (3, 'c')").collect()


@pytest.mark.usefixtures("rows")
def test_sql_passes_with_all_that_a_client_needs(session: Any) -> None:
    read = session.sql("SELECT * FROM raw.t ORDER BY id")
    assert read.schema.names == ["id", "s"]
    assert [row.id for row in read.collect()] == [1, 2, 3]
    assert read.limit(2).toArrow().num_rows == 2
    assert read.offset(1).limit(1).collect()[0].id == 2
    assert session.sql("SELECT * FROM raw.t WHERE id = :id", args={"id": 2}).collect()[0].s == "b"
    assert session.sql("SELECT * FROM raw.t WHERE id = ?", args=[3]).collect()[0].s == "c"
    assert [row.tableName for row in session.sql("SHOW TABLES IN raw").collect()] == ["t"]
    assert session.version.startswith("4.")
    assert session.interruptAll() == []
    read.explain()


@pytest.mark.usefixtures("rows")
def test_a_table_changes_its_own_files_through_its_file_io(session: Any, narrow: server.Server) -> None:
    for statement in (
        "UPDATE raw.t SET s = 'z' WHERE id = 3",
        "MERGE INTO raw.t USING (SELECT 3L id) s ON t.id = s.id WHEN MATCHED THEN DELETE",
        "ALTER TABLE raw.t SET TBLPROPERTIES ('write.delete.mode' = 'merge-on-read')",
        "DELETE FROM raw.t WHERE id = 2",
        "INSERT OVERWRITE raw.t SELECT * FROM raw.t",
    ):
        session.sql(statement).collect()
    assert [row.id for row in session.sql("SELECT * FROM raw.t").collect()] == [1]
    for kind, least in (("snapshots", 5), ("history", 5), ("refs", 1), ("partitions", 1)):
        assert session.sql(f"SELECT count(*) FROM raw.t.{kind}").collect()[0][0] >= least
    with pytest.raises(Exception, match="HEADGATE_REFUSED: a file outside this table"):
        session.sql("CREATE TABLE raw.other (id BIGINT)").collect()
    assert not list((narrow.warehouse / "raw").glob("other/**/*.json"))


def test_the_guard_still_holds(session: Any) -> None:
    with pytest.raises(Exception, match="HEADGATE_REFUSED: SET; settings are fixed here"):
        session.sql("SET").collect()


def _refused() -> dict[str, Callable[[Any, server.Server], Any]]:
    increment: Any = sf.udf(lambda x: x + 1)
    return {
        "artifact": lambda spark, at: spark.addArtifact(str(at.secret_file), file=True),
        "table": lambda spark, at: spark.table("raw.t").collect(),
        "range": lambda spark, at: spark.range(3).collect(),
        "read": lambda spark, at: spark.read.text(str(at.secret_file)).collect(),
        "schema of a file": lambda spark, at: spark.read.text(str(at.secret_file)).schema,
        "catalog list": lambda spark, at: spark.catalog.listCatalogs(),
        "catalog set": lambda spark, at: spark.catalog.setCurrentCatalog("spark_catalog"),
        "catalog cache": lambda spark, at: spark.catalog.cacheTable("raw.t"),
        "catalog refresh": lambda spark, at: spark.catalog.refreshByPath(str(at.secret_file)),
        "register": lambda spark, at: spark.udf.register("mine", str),
        "java function": lambda spark, at: spark.udf.registerJavaFunction("mine", "java.lang.String"),
        "udf over sql": lambda spark, at: spark.sql("SELECT 1 AS id").select(increment("id")).collect(),
        "select over sql": lambda spark, at: spark.sql("SELECT 1 AS id").select("id").collect(),
        "filter over sql": lambda spark, at: spark.sql("SELECT 1 AS id").filter("id = 1").collect(),
        "deep": lambda spark, at: spark.sql("SELECT 1 AS id").limit(1).select("id").limit(1).collect(),
        "view": lambda spark, at: spark.sql("SELECT 1").createOrReplaceTempView("v"),
        "persist": lambda spark, at: spark.sql("SELECT 1").persist(),
        "unpersist": lambda spark, at: spark.sql("SELECT 1").unpersist(),
        "checkpoint": lambda spark, at: spark.sql("SELECT 1").localCheckpoint(),
        "write": lambda spark, at: spark.sql("SELECT 1 AS x").write.parquet(str(at.secret_file.parent / "out")),
        "write v2": lambda spark, at: spark.sql("SELECT 1 AS x").writeTo("lake.raw.u").create(),
        "input files": lambda spark, at: spark.sql("SELECT * FROM raw.t").inputFiles(),
        "show": lambda spark, at: spark.sql("SELECT 1").show(),
        "streams": lambda spark, at: spark.streams.active,
        "stream": lambda spark, at: spark.readStream.format("rate").load().isStreaming,
        "resources": lambda spark, at: spark.client.execute_command(_command(get_resources_command={})),
        "ml": lambda spark, at: spark.client.execute_command(_command(ml_command={})),
        "pipeline": lambda spark, at: spark.client.execute_command(_command(pipeline_command={})),
        "external": lambda spark, at: spark.client.execute_command(
            _command(execute_external_command={"runner": "x", "command": "y"})
        ),
        "argument that is no literal": lambda spark, at: spark.sql(
            "SELECT :a", args={"a": sf.array(sf.lit(1), sf.lit(2))}
        ).collect(),
        "frame as an argument": lambda spark, at: spark.sql("SELECT * FROM {x}", x=spark.range(1)).collect(),
        "unset": lambda spark, at: spark.conf.unset("spark.sql.runSQLOnFiles"),
        "all settings": lambda spark, at: spark.conf.getAll,
        "whether it can be set": lambda spark, at: spark.conf.isModifiable("spark.sql.runSQLOnFiles"),
        "argument that is deep": lambda spark, at: spark.sql("SELECT :a", args={"a": [[1], [2]]}).collect(),
        "ddl": lambda spark, at: spark.createDataFrame([(1,)], "id LONG"),
        "clone": lambda spark, at: spark.cloneSession(),
    }


def test_attacks_as_a_plan_of_sql_text(session: Any, narrow: server.Server) -> None:
    """A plan may hold SQL text itself, without the command that pyspark sends first: the guard sees that too."""
    wrong = []
    for pattern in attacks.SETTINGS + attacks.COMMANDS + attacks.FILES + attacks.FUNCTIONS:
        statement = pattern.replace("{file}", str(narrow.secret_file)).replace(
            "{folder}", str(narrow.secret_file.parent)
        )
        plan = proto.Plan(root=proto.Relation(sql=proto.SQL(query=statement.replace("{env}", server.VARIABLE))))
        try:
            answer = str(session.client.to_table(plan, {})[0])
        except Exception as problem:  # noqa: BLE001
            answer = f"! {problem}"
        if not answer.startswith("!") or any(one in answer for one in (narrow.file_secret, narrow.env_secret)):
            wrong.append(f"{pattern} -> {answer[:200]}")
    assert "\n".join(wrong) == ""
    assert not (narrow.secret_file.parent / "out").exists()


def _command(**kind: Any) -> Any:
    return proto.Command(**kind)


def test_everything_else_is_refused(session: Any, narrow: server.Server) -> None:
    wrong = []
    for name, act in _refused().items():
        try:
            wrong.append(f"{name} -> {str(act(session, narrow))[:200]}")
        except Exception as problem:  # noqa: BLE001
            if "HEADGATE_REFUSED: " not in str(problem):
                wrong.append(f"{name} -> {type(problem).__name__} {str(problem)[:300]}")
    assert "\n".join(wrong) == ""
    assert not (narrow.secret_file.parent / "out").exists()
