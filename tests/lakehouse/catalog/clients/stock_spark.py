"""A plain Spark session, without our guard: catalogs by name with their tokens, then statements; answers as JSON."""

import json
import sys

from pyspark.sql import SparkSession

given = json.load(sys.stdin)
builder = (
    SparkSession.builder.master("local[1]")
    .config("spark.jars", given["jars"])
    .config("spark.driver.memory", "1g")
    .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1")
    .config("spark.driver.host", "127.0.0.1")
    .config("spark.driver.bindAddress", "127.0.0.1")
    .config("spark.ui.enabled", "false")
    .config("spark.sql.shuffle.partitions", "1")
    .config("spark.sql.extensions", "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions")
    .config("spark.sql.warehouse.dir", given["folder"])
)
for name, token in given["tokens"].items():
    own = f"spark.sql.catalog.{name}"
    builder = builder.config(own, "org.apache.iceberg.spark.SparkCatalog")
    for key, value in {"type": "rest", "uri": given["uri"], "token": token, "cache-enabled": "false"}.items():
        builder = builder.config(f"{own}.{key}", value)
session = builder.getOrCreate()
session.sparkContext.setLogLevel("OFF")
for statement in given["statements"]:
    answer: object
    try:
        answer = [list(row) for row in session.sql(statement).collect()]
    except Exception as error:  # noqa: BLE001 - the test looks at it
        answer = str(error)
    print("ANSWER " + json.dumps(answer, default=str), flush=True)  # noqa: T201
session.stop()
