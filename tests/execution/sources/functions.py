"""Functions that tests of landing call on the platform's Spark."""

from typing import Any

from pyspark.sql.connect.client.core import SparkConnectClient

from headgate.execution.sources.land import land
from headgate.execution.spark.step_session import Step


def write_avro(arguments: dict[str, Any], step: Step) -> dict[str, Any]:
    """Write Avro files of two shapes."""
    folder = arguments["folder"]
    rows = step.spark.range(2).selectExpr("id", "string(id) AS name", "DATE'2026-01-01' AS day")
    rows.write.format("avro").save(f"{folder}/one")
    more = step.spark.range(10, 12).selectExpr("id", "string(id) AS name", "named_struct('a', 1) AS extra")
    more.write.format("avro").save(f"{folder}/two")
    return {}


def land_without_observed_metrics(arguments: dict[str, Any], step: Step) -> dict[str, Any]:
    """Land as usual, but with the answers of a busy Connect server: they leave out observed metrics."""
    SparkConnectClient._build_observed_metrics = lambda *_: iter(())  # type: ignore[method-assign]
    return land(arguments, step)
