"""Compacts the small files of a table on the platform's Spark, with Iceberg's procedure.

It commits once at its end, with the same rows. A concurrent commit to the same files makes it fail.
"""

from typing import Any

from headgate.contracts.pipelines.fields import quoted
from headgate.execution.spark.conf import CATALOG
from headgate.execution.spark.step_session import Step
from headgate.settings.maintenance import TARGET


def compact(arguments: dict[str, Any], step: Step) -> dict[str, Any]:
    """Compact one table; return the numbers of removed and added files."""
    table = quoted(arguments["layer"], arguments["name"])
    options = {"min-input-files": int(arguments["min_files"]), "max-concurrent-file-group-rewrites": 1}
    own = {row["key"] for row in step.spark.sql(f"SHOW TBLPROPERTIES {table}").collect()}
    if TARGET not in own:
        options["target-file-size-bytes"] = int(arguments["target_bytes"])
    listed = ", ".join(f"'{name}', '{value}'" for name, value in options.items())
    sql = f"CALL {CATALOG}.system.rewrite_data_files(table => '{table}', options => map({listed}))"
    row = step.spark.sql(sql).collect()[0]
    return {"files_before": row["rewritten_data_files_count"], "files_after": row["added_data_files_count"]}
