"""A plain Spark, in a process of its own: Connect, Iceberg, and none of ours. It runs the SQL that it is given.

A line of standard input is one statement as JSON text; the answer is a line with the seconds that it took.
"""

import json
import os
import sys
import time

from headgate.execution.spark.versions import ICEBERG_RUNTIME

CATALOG = "org.apache.iceberg.spark.SparkCatalog"


def main() -> None:
    """Answer until the input ends."""
    from pyspark.sql import SparkSession

    from headgate.execution.spark.jars import default_folder

    folder, uri, token = os.environ["BARE_FOLDER"], os.environ["BARE_URI"], os.environ["BARE_TOKEN"]
    builder = SparkSession.builder.remote(f"local[{os.environ['BARE_CORES']}]")
    for name, value in {
        "spark.jars": str(default_folder() / ICEBERG_RUNTIME.file),
        "spark.driver.memory": os.environ["BARE_MEMORY"],
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.lake": CATALOG,
        "spark.sql.catalog.lake.type": "rest",
        "spark.sql.catalog.lake.uri": uri,
        "spark.sql.catalog.lake.header.Authorization": f"Bearer {token}",
        "spark.sql.catalog.lake.rest.auth.type": "none",
        "spark.sql.catalog.own": CATALOG,
        "spark.sql.catalog.own.type": "hadoop",
        "spark.sql.catalog.own.warehouse": f"file://{folder}",
        "spark.sql.defaultCatalog": "lake",
    }.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    print("ready", flush=True)
    for line in sys.stdin:
        started = time.perf_counter()
        spark.sql(json.loads(line)).collect()
        print(time.perf_counter() - started, flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
