"""Write rows to a staging table with Spark's JDBC writer over several connections. The staging table exists and its
columns have generated names, so that no user-defined name reaches the driver's SQL.
"""

import re
from collections.abc import Callable
from typing import Any

from headgate.contracts.pipelines.fields import quoted
from headgate.execution.deliveries.spark.rows import as_json, is_nested, rows
from headgate.execution.sources import mysql, postgresql
from headgate.execution.sources.rest.failures import redact
from headgate.execution.spark.error_codes import SOURCE_DOWN
from headgate.execution.spark.failures import Cause
from headgate.execution.spark.step_session import Step
from headgate.execution.steps.context import StepFailed

CONNECTIONS = 8
"""The number of concurrent writers."""

BATCH = 10_000
_OPTIONS = {"postgresql": postgresql.options, "mysql": mysql.options}
_OURS = {
    "postgresql": {"reWriteBatchedInserts": "true"},
    "mysql": {"sessionVariables": "sql_mode=STRICT_ALL_TABLES"},
}
_DRIVER = re.compile(r"(?:org\.postgresql\.util\.PSQLException|java\.sql\.(?:SQL|Batch)\w*Exception): ([^\n]+)")
_CLASSES = {"org.postgresql.util.PSQLException", "java.sql.SQLException"}
_NET = ("java.net.", "java.nio.", "javax.net.ssl.")
_SAYINGS: tuple[tuple[str, str, str, bool], ...] = (
    (
        r"no space left|could not extend|disk full|is full|quota",
        "FULL_THERE",
        "The database has no space left, so nothing was delivered; free space, and run the pipeline again",
        True,
    ),
    (
        r"invalid byte sequence|incorrect .*value|out of range|data too long|too long for|NaN|Infinity|null character",
        "VALUE",
        "A value is not valid in the database, so nothing was delivered; change it in a query pipeline",
        False,
    ),
    (r"does not exist|doesn't exist", "GONE_THERE", "The staging table was dropped; run the pipeline again", True),
    (r"denied", "DENIED_THERE", "The user has no permission to write; grant it in the database", False),
    (
        r"connection attempt failed|refused|could not connect|fail to connect|reset|broke|closed|timed? ?out|socket|"
        r"terminating connection|starting up|shutting down|too many (clients|connections)|SOCKS|I/O error|gone away",
        SOURCE_DOWN,
        "The database does not answer, or closed the connection",
        True,
    ),
)


def stage(arguments: dict[str, Any], step: Step) -> dict[str, Any]:
    """Write all rows to the staging table; return their number. See headgate.execution.deliveries.tables."""
    from pyspark.sql import functions as f

    kind = arguments["kind"]
    step.explains(_teller(arguments["secrets"].get("password") or ""))
    frame = rows(arguments, step)
    count = frame.count()
    # Spark finds columns without regard to case; the position is what tells them apart.
    values = [
        (as_json(f.col(quoted(field.name))) if is_nested(field.dataType) else f.col(quoted(field.name))).alias(staged)
        for field, staged in zip(frame.schema.fields, arguments["staged"], strict=True)
    ]
    if count:
        step.log(f"Sending {count} rows")
        written = frame.select(*values).write.format("jdbc").options(**_options(kind, arguments))
        written.option("dbtable", arguments["staging"]).mode("append").save()
    return {"rows": count}


def _options(kind: str, arguments: dict[str, Any]) -> dict[str, str]:
    config = arguments["config"]
    values = {**_OPTIONS[kind](config, arguments["folder"]), **_OURS[kind], "user": config["user"]}
    if password := arguments["secrets"].get("password"):
        values["password"] = password
    return values | {"batchsize": str(BATCH), "numPartitions": str(CONNECTIONS)}


def _teller(password: str) -> Callable[[Cause], StepFailed | None]:
    """Map errors of the database driver to StepFailed."""

    def tell(cause: Cause) -> StepFailed | None:
        is_driver = bool(_CLASSES & set(cause.classes)) or bool(cause.classes and cause.classes[0].startswith(_NET))
        said = cause.message if is_driver else (match[1] if (match := _DRIVER.search(cause.message)) else "")
        if not said:
            return None
        said = redact(said.partition("\n")[0], [password], "…")[:300]
        for pattern, code, words, passing in _SAYINGS:
            if re.search(pattern, said, re.IGNORECASE):
                return StepFailed(code, f"{words}. Database message: {said}", passing=passing)
        return StepFailed("FAILED_THERE", f"The database rejected the rows. Database message: {said}", passing=True)

    return tell
