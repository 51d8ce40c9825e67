"""Functions that tests call in a process of their own on the platform's Spark."""

import os
from pathlib import Path
from typing import Any

from pyspark.sql import functions as f

from headgate.execution.spark.failures import Cause
from headgate.execution.spark.step_session import Step
from headgate.execution.steps.context import StepFailed

SLOW = "SELECT COUNT(*) FROM range(100000) a CROSS JOIN range(100000) b WHERE (a.id * b.id) % 7 = 3"


def look(arguments: dict[str, Any], step: Step) -> dict[str, Any]:
    """What a function sees."""
    step.log("looking")
    step.log("something is odd", "warning")
    print("this is no line of the protocol")  # noqa: T201
    return {
        "given": arguments,
        "rows": step.spark.range(1000).selectExpr("sum(id) AS n").collect()[0]["n"],
        "zone": step.spark.conf.get("spark.sql.session.timeZone"),
        "at": str(step.spark.sql("SELECT CAST(TIMESTAMP '2026-01-01 00:00:00' AS STRING)").collect()[0][0]),
        "environment": dict(os.environ),
        "command": Path("/proc/self/cmdline").read_text(),
        "pid": os.getpid(),
    }


def write(arguments: dict[str, Any], step: Step) -> dict[str, Any]:
    """Write a table, with the run's token."""
    step.spark.range(10).withColumn("twice", f.col("id") * 2).writeTo(arguments["table"]).using("iceberg").create()
    return {"rows": step.spark.table(arguments["table"]).count()}


def run(arguments: dict[str, Any], step: Step) -> dict[str, Any]:
    """Run a statement."""
    if told := arguments.get("told"):
        step.explains(lambda cause: StepFailed("OWN", told) if "divide" in cause.message.lower() else None)
        step.explains(_never)
    return {"rows": [list(row) for row in step.spark.sql(arguments["sql"]).collect()]}


def bomb(arguments: dict[str, Any], step: Step) -> dict[str, Any]:
    """Take all memory of Spark."""
    step.spark.sql("SELECT size(array_repeat('x', 2000000000))").collect()
    return {}


def slow(arguments: dict[str, Any], step: Step) -> dict[str, Any]:
    """Take long."""
    step.log(f"pid {os.getpid()}")
    step.spark.sql(SLOW).collect()
    return {}


def fail(arguments: dict[str, Any], step: Step) -> dict[str, Any]:
    """Fail in a way of the caller's choice."""
    if arguments.get("fault"):
        raise KeyError("no member reads this")
    raise StepFailed("NO_LUCK", "It did not work; try it another day", passing=arguments["passing"])


def _never(cause: Cause) -> Exception | None:
    return None
