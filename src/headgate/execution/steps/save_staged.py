"""Commits what a notebook staged for a table to the run's own state of it."""

import stat

from headgate.contracts.pipelines.steps import SaveStaged
from headgate.execution.notebooks.staging import Staging
from headgate.execution.steps.context import Context, Result, StepFailed

FUNCTION = "headgate.execution.spark.staged_tables:save"


def run(step: SaveStaged, context: Context) -> Result:
    """Write the rows that were saved for a table; if there are none, it stays as it is."""
    context.check_stopped()
    stagings = Staging.newest(context)
    if stagings is None:
        raise StepFailed(
            "STAGED_LOST",
            "The files that the notebook saved are not on this machine any more; run the pipeline again",
            passing=True,
        )
    staging, manifest = stagings
    table = manifest.tables.get(step.table.id)
    if table is None:
        context.log(f"The notebook saved no rows for {step.table}, which stays unchanged", "warning")
        return Result()
    files = [staging.folder / name for name in table.files]
    if not all(stat.S_ISREG(file.lstat().st_mode) for file in files):
        raise StepFailed("STAGED_BROKEN", f"The staged files for {step.table} were modified; run the pipeline again")
    arguments = {
        "table": [step.table.layer, step.table.name],
        "files": [str(file) for file in files],
        "schema": table.schema,
        "write": step.output.write,
        "keys": list(step.output.keys),
        "schema_changes": step.output.schema_changes,
        "full_refresh": context.job.full_refresh,
    }
    told = context.platform.call(FUNCTION, arguments, context)
    return Result(rows_in=told["rows"], rows_out=told["rows"], bytes=told["bytes"])
