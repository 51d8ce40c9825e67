"""Map the columns of a table to those of a delivery target, and report incompatible columns before any row is sent."""

from dataclasses import dataclass

from headgate.contracts.pipelines.steps import LakeItem
from headgate.contracts.tables import types
from headgate.contracts.tables.types import Column, Columns
from headgate.execution.deliveries.database import ColumnCast, Database, IncompatibleColumn, TargetColumn, TargetTable
from headgate.execution.steps.context import StepFailed


@dataclass(frozen=True, slots=True)
class MappedColumn:
    """A column of the table and its column in the target."""

    given: Column
    staged: str
    """The column's name in the staging table."""
    source: str
    """The SQL expression of the value; the staging table is `s`."""
    target: str
    """The quoted column of the target."""
    there: str
    """The type of the target column, for messages."""
    fit: ColumnCast
    is_key: bool

    @property
    def misses(self) -> str:
        """The condition that a staged value does not fit the target column."""
        return f"{self.source} IS NOT NULL AND NOT ({self.fit.holds})"


@dataclass(frozen=True, slots=True)
class ColumnMapping:
    """The mapping of all delivered columns."""

    columns: tuple[MappedColumn, ...]


def map_columns(
    database: Database,
    target: TargetTable,
    table: LakeItem,
    given: Columns,
    there: list[TargetColumn] | None,
    keys: tuple[str, ...],
) -> ColumnMapping:
    """Map each column; StepFailed if a column has no compatible target."""
    for name in keys:
        _check_key(table, given, name)
    if there is not None:
        _check_needed(target, table, given, there)
    wanted = {types.key(name) for name in keys}
    pairs = []
    for number, column in enumerate(given):
        staged = f"c{number}"
        source = f"s.{database.quoted(staged)}"
        name, said, fit = column.name, "", _plain(database, column, source)
        if there is not None:
            result = _found(target, column, there)
            name, said = result.name, result.said
            try:
                fit = database.fit(column.type, result, source)
            except IncompatibleColumn:
                told = f"{column.name} is {types.shown(column.type)}, but {target} has {said}, which is not compatible"
                raise StepFailed(
                    "TYPE", f"{told}. CAST the column in a query pipeline, or change its type in the target"
                ) from None
        is_key = types.key(column.name) in wanted
        pairs.append(MappedColumn(column, staged, source, database.quoted(name), said, fit, is_key))
    return ColumnMapping(tuple(pairs))


def new_columns(database: Database, plan: ColumnMapping) -> list[str]:
    """The column definitions of a new target table; the keys become its primary key."""
    columns = [
        f"{column.target} {database.type_of(column.given.type, is_key=column.is_key)}" for column in plan.columns
    ]
    keys = [column.target for column in plan.columns if column.is_key]
    return [*columns, *([f"PRIMARY KEY ({', '.join(keys)})"] if keys else [])]


def _plain(database: Database, column: Column, source: str) -> ColumnCast:
    """The mapping to a column of a new target table."""
    own, staged = database.type_of(column.type), database.type_of(column.type, staged=True)
    return ColumnCast(source if own == staged else database.cast(source, own))


def _check_key(table: LakeItem, given: Columns, name: str) -> None:
    result = types.find(given, name)
    if result is None:
        listed = ", ".join(column.name for column in given)
        raise StepFailed("COLUMN", f"Unknown column {name} in keys; {table} has {listed}")
    if not types.is_key(result.type):
        raise StepFailed("KEYS", f"{name} cannot be a key, because it is {types.shown(result.type)}")


def _check_needed(target: TargetTable, table: LakeItem, given: Columns, there: list[TargetColumn]) -> None:
    missing = [column.name for column in there if column.needs_value and types.find(given, column.name) is None]
    if missing:
        told = f"{target} requires a value for {', '.join(missing)}, which {table} does not have"
        raise StepFailed("COLUMN", f"{told}; set a default in the target, or add the column in a query pipeline")


def _found(target: TargetTable, column: Column, there: list[TargetColumn]) -> TargetColumn:
    exact = [entry for entry in there if entry.name == column.name]
    alike = exact or [entry for entry in there if types.key(entry.name) == types.key(column.name)]
    if len(alike) != 1:
        listed = ", ".join(column.name for column in there[:50])
        told = f"{target} has no column {column.name}; it has {listed}"
        raise StepFailed("COLUMN", f"{told}. Add the column to the target, or remove it in a query pipeline")
    return alike[0]
