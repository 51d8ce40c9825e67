"""Bare Spark, which reads a table of PostgreSQL in parts and writes it into an Iceberg table; for landing.py."""

import json
import os
import sys
import time
from urllib.parse import urlsplit


def main() -> None:
    """Read and write once for each line."""
    from pyspark.sql import SparkSession

    url = urlsplit(os.environ["PEER_URL"])
    builder = (
        SparkSession.builder.master(f"local[{os.environ['PEER_CORES']}]")
        .config("spark.driver.memory", os.environ["PEER_MEMORY"])
        .config("spark.jars", os.environ["PEER_JARS"])
        .config("spark.ui.enabled", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.catalog.own", "org.apache.iceberg.spark.SparkCatalog")
        .config("spark.sql.catalog.own.type", "hadoop")
        .config("spark.sql.catalog.own.warehouse", os.environ["PEER_FOLDER"])
    )
    spark = builder.getOrCreate()
    options = {
        "url": f"jdbc:postgresql://{url.hostname}:{url.port}{url.path}",
        "driver": "org.postgresql.Driver",
        "user": url.username or "",
        "dbtable": "public.orders",
        "partitionColumn": "id",
        "lowerBound": "1",
        "upperBound": os.environ["PEER_ROWS"],
        "numPartitions": os.environ["PEER_PARTS"],
        "fetchsize": "10000",
    }
    print(json.dumps("ready"), flush=True)
    for _ in sys.stdin:
        started = time.perf_counter()
        spark.read.format("jdbc").options(**options).load().writeTo("own.raw.orders").using("iceberg").createOrReplace()
        spent = time.perf_counter() - started
        rows = spark.table("own.raw.orders").count()
        print(json.dumps({"seconds": spent, "rows": rows}), flush=True)


if __name__ == "__main__":
    main()
