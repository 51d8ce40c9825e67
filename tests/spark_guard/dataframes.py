"""Calls of the DataFrame API over an open Spark Connect port: what must be refused, and what may pass."""

from collections.abc import Callable, Iterator
from typing import Any

from pyspark.sql.connect import functions as sf

from tests.spark_guard.server import Server

Act = Callable[[Any, Server], Any]


def refused() -> dict[str, Act]:
    """Each by the name of what it tries."""

    def udf(spark: Any, at: Server) -> Any:
        increment: Any = sf.udf(lambda x: x + 1)
        return spark.range(2).select(increment("id")).collect()

    def registered(spark: Any, at: Server) -> Any:
        spark.udf.register("mine", str)
        return spark.sql("SELECT mine(1)").collect()

    def table_function(spark: Any, at: Server) -> Any:
        class Numbers:
            def eval(self) -> Iterator[tuple[int]]:
                yield (1,)

        function: Any = sf.udtf(Numbers, returnType="a: int")
        return function().collect()

    def mapped(batches: Any) -> Any:
        yield from batches

    return {
        "text": lambda spark, at: spark.read.text(str(at.secret_file)).collect(),
        "text, missing": lambda spark, at: spark.read.text("/no/such/file").collect(),
        "csv": lambda spark, at: spark.read.csv(str(at.secret_file)).collect(),
        "csv with schema": lambda spark, at: spark.read.schema("a STRING").csv(str(at.secret_file)).collect(),
        "json": lambda spark, at: spark.read.json(str(at.secret_file)).collect(),
        "parquet": lambda spark, at: spark.read.parquet(str(at.secret_file.parent)).collect(),
        "orc": lambda spark, at: spark.read.orc(str(at.secret_file.parent)).collect(),
        "xml": lambda spark, at: spark.read.format("xml").option("rowTag", "a").load(str(at.secret_file)).collect(),
        "binary": lambda spark, at: spark.read.format("binaryFile").load(str(at.secret_file)).collect(),
        "jdbc": lambda spark, at: spark.read.jdbc("jdbc:derby:memory:x", "t").collect(),
        "jdbc by format": lambda spark, at: spark.read.format("jdbc").options(url="jdbc:x", dbtable="t").load().collect(),
        "iceberg by path": lambda spark, at: spark.read.format("iceberg").load(str(at.warehouse / "raw" / "t")).collect(),
        "iceberg by name": lambda spark, at: spark.read.format("iceberg").load("lake.raw.t").collect(),
        "python source": lambda spark, at: spark.read.format("fake").load().collect(),
        "read options": lambda spark, at: spark.read.option("path", str(at.secret_file)).table("raw.t").collect(),
        "stream": lambda spark, at: spark.readStream.format("rate").load().isStreaming,
        "stream of a file": lambda spark, at: spark.readStream.text(str(at.secret_file.parent)).schema,
        "stream of a table": lambda spark, at: spark.readStream.table("raw.t").schema,
        "file as a table": lambda spark, at: spark.table(f"text.`{at.secret_file}`").collect(),
        "another catalog": lambda spark, at: spark.table("spark_catalog.default.x").collect(),
        "files of a table": lambda spark, at: spark.table("lake.raw.t.files").collect(),
        "save": lambda spark, at: spark.range(1).write.save(str(at.secret_file.parent / "out")),
        "save parquet": lambda spark, at: spark.range(1).write.parquet(str(at.secret_file.parent / "out")),
        "save csv": lambda spark, at: spark.range(1).write.mode("overwrite").csv(str(at.secret_file.parent / "out")),
        "save jdbc": lambda spark, at: spark.range(1).write.jdbc("jdbc:derby:memory:x;create=true", "t"),
        "save as table elsewhere": lambda spark, at: spark.range(1).write.saveAsTable("spark_catalog.default.x"),
        "save as table at a path": lambda spark, at: (
            spark.range(1).write.option("path", str(at.secret_file.parent / "out")).saveAsTable("raw.u")
        ),
        "save as parquet table": lambda spark, at: spark.range(1).write.format("parquet").saveAsTable("raw.u"),
        "write with an option": lambda spark, at: (
            spark.range(1).writeTo("lake.raw.t").option("write.data.path", str(at.secret_file.parent)).append()
        ),
        "create with a property": lambda spark, at: (
            spark.range(1).writeTo("lake.raw.u").tableProperty("write.data.path", str(at.secret_file.parent)).create()
        ),
        "create at a location": lambda spark, at: (
            spark.range(1).writeTo("lake.raw.u").tableProperty("location", str(at.secret_file.parent)).create()
        ),
        "create with another format": lambda spark, at: spark.range(1).writeTo("lake.raw.u").using("parquet").create(),
        "insert into a file": lambda spark, at: spark.range(1).write.insertInto(f"parquet.`{at.secret_file.parent}/out`"),
        "udf": udf,
        "registered udf": registered,
        "table function": table_function,
        "map in pandas": lambda spark, at: spark.range(1).mapInPandas(mapped, "id LONG").collect(),
        "map in arrow": lambda spark, at: spark.range(1).mapInArrow(mapped, "id LONG").collect(),
        "grouped pandas": lambda spark, at: (
            spark.range(1).groupBy("id").applyInPandas(lambda frame: frame, "id LONG").collect()
        ),
        "selectExpr": lambda spark, at: spark.range(1).selectExpr("reflect('java.lang.System', 'getenv')").collect(),
        "expr": lambda spark, at: spark.range(1).select(sf.expr("java_method('java.lang.System', 'getenv')")).collect(),
        "call_function": lambda spark, at: (
            spark.range(1).select(sf.call_function("reflect", sf.lit("java.lang.System"), sf.lit("getenv"))).collect()
        ),
        "filter": lambda spark, at: spark.range(1).filter("reflect('java.lang.System', 'getenv') = id").collect(),
        "input_file_name": lambda spark, at: spark.table("raw.t").select(sf.input_file_name()).collect(),
        "metadata column": lambda spark, at: spark.table("raw.t").select(spark.table("raw.t").metadataColumn("_file")).collect(),
        "column by name": lambda spark, at: spark.table("raw.t").select("_file").collect(),
        "temporary view": lambda spark, at: spark.range(1).createTempView("v"),
        "global view": lambda spark, at: spark.range(1).createGlobalTempView("v"),
        "replaced view": lambda spark, at: spark.table("raw.t").createOrReplaceTempView("v"),
        "local checkpoint": lambda spark, at: spark.range(1).localCheckpoint(),
        "write stream": lambda spark, at: (
            spark.readStream.format("rate").load().writeStream.format("memory").queryName("q").start()
        ),
        "catalog table": lambda spark, at: spark.catalog.createTable("raw.u", path=str(at.secret_file)),
        "merge elsewhere": lambda spark, at: (
            spark.table("raw.t").mergeInto("spark_catalog.default.x", sf.expr("true")).whenMatched().delete().merge()
        ),
    }  # fmt: skip


def allowed() -> dict[str, Act]:
    """What is no more than SQL can do."""
    return {
        "table": lambda spark, at: spark.table("lake.raw.t").collect(),
        "range": lambda spark, at: spark.range(3).select((sf.col("id") * 2).alias("x")).collect(),
        "rows": lambda spark, at: spark.createDataFrame([(1, "a")], "id LONG, s STRING").collect(),
        "append": lambda spark, at: spark.range(0).writeTo("lake.raw.t").append(),
        "group": lambda spark, at: spark.table("raw.t").groupBy("id").agg(sf.count("*")).collect(),
        "join": lambda spark, at: spark.table("raw.t").join(spark.range(3), "id").orderBy("id").limit(1).collect(),
    }
