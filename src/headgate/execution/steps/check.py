"""The check step: test an expectation before the outputs are published."""

from typing import Any
from zoneinfo import ZoneInfo

from headgate.contracts.pipelines.steps import Check, LakeItem
from headgate.execution.spark.errors import SqlFailed
from headgate.execution.statements import checks, query_output
from headgate.execution.statements.checks import BadCheck, CheckQuery, Table, expectation_query
from headgate.execution.steps.context import CheckResult, Context, Result, StepFailed
from headgate.execution.steps.lake import MISSING, Arguments, Lake, opened, plain
from headgate.execution.steps.refine import arguments

_PATTERN = "INVALID_PARAMETER_VALUE.PATTERN"


def run(step: Check, context: Context) -> Result:
    """Check one expectation. A failed expectation is a result; an invalid one is an error."""
    with opened(context) as lake:
        return Result(check=_checked(step, context, lake))


def _checked(step: Check, context: Context, lake: Lake) -> CheckResult:
    job, expectation = context.job, step.expectation
    args = arguments(job) if expectation.check == "sql" else None
    if expectation.check == "sql":
        _judge(lake, expectation.sql, args)
    try:
        other = _table(lake, step.other) if step.other else None
        asked = expectation_query(expectation, _table(lake, step.table), other, job.moment, ZoneInfo(job.time_zone))
    except BadCheck as error:
        raise StepFailed("CHECK", f"The check {expectation.check} is invalid: {error}") from None
    return _answered(step, asked, _counted(lake, asked, args), lambda sql: _sample(lake, sql, args))


def _judge(lake: Lake, sql: str, args: Arguments | None) -> None:
    """See that a custom check is a query of what its pipeline has declared: the first run may be the first to know."""
    try:
        lake.query(query_output.query(sql), args)
    except SqlFailed as error:
        if error.code not in MISSING:
            raise
        raise StepFailed(
            "CHECK",
            f"The check sql failed: {error.message}. A table that it reads was deleted, or is not declared by "
            "this pipeline. The inputs of a check are determined when the pipeline is saved, for which its "
            "output tables must exist: run it once without the check, then save it with the check",
        ) from None


def _table(lake: Lake, item: LakeItem) -> Table:
    columns = lake.table(item)
    if columns is None:
        raise StepFailed("CHECK", f"{item} does not exist; a check requires a table that was written")
    return Table(str(item), item.sql, columns)


def _counted(lake: Lake, asked: CheckQuery, args: Arguments | None) -> dict[str, Any]:
    try:
        return lake.rows(asked.counts, args)[0]
    except SqlFailed as error:
        if error.code != _PATTERN:
            raise
        raise StepFailed("CHECK", f"The pattern is not a valid regular expression: {error.message}") from None


def _answered(step: Check, asked: CheckQuery, row: dict[str, Any], sample: Any) -> CheckResult:
    expectation, checked, failed = step.expectation, int(row["checked"]), int(row["failed"])
    passed = failed <= expectation.tolerance * (checked if asked.base is None else asked.base)
    rows = sample(asked.sample) if failed and asked.sample else []
    return CheckResult(passed, failed, checked, _message(step, asked, row), rows)


def _message(step: Check, asked: CheckQuery, row: dict[str, Any]) -> str:
    expectation, checked, failed = step.expectation, int(row["checked"]), int(row["failed"])
    if expectation.check == "rows":
        return f"{step.table} has {checked} {_rows(checked)}; {asked.says}"
    if expectation.check == "freshness":
        newest = row["told"] or "missing"
        return f"The newest {expectation.columns[0]} of {step.table} is {newest}; {asked.says}"
    if expectation.check == "sql":
        return f"The query of the check returns {failed} {_rows(failed)}; {step.table} has {checked}"
    allowed = f"; the tolerance is {expectation.tolerance:.4%}".replace(".0000%", "%") if expectation.tolerance else ""
    return f"{failed} of {checked} {_rows(checked)} of {step.table} {asked.says}{allowed}"


def _rows(count: int) -> str:
    return "row" if count == 1 else "rows"


def _sample(lake: Lake, sql: str, args: Arguments | None) -> list[dict[str, Any]]:
    return [plain(row) for row in lake.rows(sql, args, most=checks.SAMPLE)]
