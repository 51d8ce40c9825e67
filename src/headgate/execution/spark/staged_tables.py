"""Writes staged notebook output into its table, on the platform's Spark.

The files were written by untrusted code. They are read one by one with the validated schema; the files' own schemas are
ignored.
"""

from typing import TYPE_CHECKING, Any, NoReturn

from headgate.contracts.pipelines.fields import quoted
from headgate.contracts.tables import types
from headgate.contracts.tables.types import Columns
from headgate.execution.spark.errors import SqlFailed
from headgate.execution.spark.failures import Cause
from headgate.execution.spark.step_session import Step
from headgate.execution.statements import query_output, schema_evolution
from headgate.execution.steps.context import StepFailed

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

ROWS = "headgate_staged"
_TEXT = f"SELECT * FROM {ROWS}"
_MISSING = ("TABLE_OR_VIEW_NOT_FOUND",)
_BROKEN = ("[FAILED_READ_FILE", "[CANNOT_READ_FILE")
_RAISED = "USER_RAISED_EXCEPTION"
_CHANGED = ("updated", "inserted", "deleted")


def save(arguments: dict[str, Any], step: Step) -> dict[str, Any]:
    """Write rows into a table; see headgate.execution.steps.save_staged for the arguments."""
    return _Save(arguments, step).result()


class _Save:
    def __init__(self, arguments: dict[str, Any], step: Step) -> None:
        self._step, self._name = step, ".".join(arguments["table"])
        self._table = quoted(*arguments["table"])
        self._write, self._keys = arguments["write"], tuple(arguments["keys"])
        self._schema_changes, self._full = arguments["schema_changes"], arguments["full_refresh"]
        self._schema, self._files = arguments["schema"], arguments["files"]

    def result(self) -> dict[str, Any]:
        self._step.explains(self._broken)
        given = self._given()
        self._check_keys(given)
        self._write_rows(given, self._prepared(given))
        return self._written()

    def _broken(self, cause: Cause) -> Exception | None:
        """The failure for a file whose content differs from its declared schema."""
        if not cause.message.startswith(_BROKEN):
            return None
        return StepFailed(
            "STAGED_BROKEN",
            f"The staged files for {self._name} do not match the columns that the notebook reported; write to the "
            "staging folder only with save()",
        )

    def _given(self) -> Columns:
        from pyspark.sql.types import StructType

        schema = StructType.fromJson(self._schema)
        # Glob characters in a file name are literal.
        reader = self._step.spark.read.schema(schema).option("__globPaths__", "false")
        reader.parquet(*(f"file://{file}" for file in self._files)).createOrReplaceTempView(ROWS)
        return _columns(schema)

    def _check_keys(self, given: Columns) -> None:
        for name in self._keys if self._write == "merge" else ():
            column = types.find(given, name)
            if column is None:
                names = ", ".join(entry.name for entry in given)
                raise StepFailed("COLUMN", f"Unknown column {name} in keys of {self._name}; it was saved with {names}")
            if not types.is_key(column.type):
                raise StepFailed("KEYS", f"{name} cannot be a key, because it is {types.shown(column.type)}")

    def _prepared(self, given: Columns) -> Columns:
        """The table's columns, after they were extended for the rows."""
        there = self._there()
        if there is None or self._schema_changes == "overwrite":
            self._step.spark.sql(schema_evolution.create(self._table, given, replace=there is not None))
            return given
        if self._schema_changes == "strict":
            results = schema_evolution.differences(there, given)
            if results:
                self._refuse("; ".join(results))
            return there
        try:
            after = types.merged(there, given)
        except types.IncompatibleType as error:
            self._refuse(str(error))
        for statement in schema_evolution.statements(self._table, there, after):
            self._step.spark.sql(statement)
            self._step.log(f"Changing the columns of {self._name}: {statement.partition(self._table)[2]}")
        return after

    def _there(self) -> Columns | None:
        try:
            return _columns(self._step.spark.table(self._table).schema)
        except SqlFailed as error:
            if error.code.startswith(_MISSING):
                return None
            raise

    def _refuse(self, told: str) -> NoReturn:
        raise StepFailed(
            "SCHEMA",
            f"The saved rows do not fit {self._name}: {told}. Nothing was written. Cast the columns in the "
            "notebook, change the table, or set schema_changes",
        )

    def _write_rows(self, given: Columns, there: Columns) -> None:
        spark = self._step.spark
        if self._write != "merge":
            anew = self._full or self._write == "overwrite"
            spark.sql(query_output.insert(self._table, _TEXT, given, there, overwrite=anew))
            return
        if self._full:
            spark.sql(query_output.delete(self._table, "TRUE"))
        try:
            spark.sql(query_output.merge(self._table, _TEXT, given, there, self._keys))
        except SqlFailed as error:
            if error.code != _RAISED or query_output.TWICE not in error.message:
                raise
            raise StepFailed(
                "KEYS",
                f"Several saved rows of {self._name} have the same {', '.join(self._keys)}, which is the key. "
                "Nothing was written. Deduplicate the rows, or add columns to the keys",
            ) from None

    def _written(self) -> dict[str, Any]:
        snapshots = self._step.spark.sql(
            f"SELECT summary FROM {self._table}.snapshots ORDER BY committed_at DESC LIMIT 1"
        )
        told = dict(next((row["summary"] for row in snapshots.collect()), {}))
        changed = sum(int(told.get(f"spark.merge-into.num-target-rows-{value}", 0)) for value in _CHANGED)
        rows = changed if self._write == "merge" else int(told.get("added-records", 0))
        return {"rows": rows, "bytes": int(told.get("added-files-size", 0))}


def _columns(schema: "StructType") -> Columns:
    from pyspark.sql.pandas.types import to_arrow_schema

    return types.of_arrow(to_arrow_schema(schema))
