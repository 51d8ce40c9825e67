"""Columns of a table against those of a target: which goes where, and how; what cannot is told before rows are sent."""

from dataclasses import dataclass

from headgate.contracts.pipelines.steps import LakeItem
from headgate.contracts.tables import types
from headgate.contracts.tables.types import Column, Columns
from headgate.execution.deliveries.database import ColumnCast, Database, IncompatibleColumn, TargetColumn, TargetTable
from headgate.execution.steps.context import StepFailed


@dataclass(frozen=True, slots=True)
class MappedColumn:
    """A column that is delivered."""

    given: Column
    staged: str
    """What the staging table calls it."""
    source: str
    """The staged value, in SQL where the staging table is `s`."""
    target: str
    """The target's column, quoted."""
    there: str
    """The target's type, in words."""
    fit: ColumnCast
    is_key: bool

    @property
    def misses(self) -> str:
        """The condition that a staged value does not fit."""
        return f"{self.source} IS NOT NULL AND NOT ({self.fit.holds})"


@dataclass(frozen=True, slots=True)
class ColumnMapping:
    """All columns that are delivered."""

    columns: tuple[MappedColumn, ...]


def fitted(
    database: Database,
    target: TargetTable,
    table: LakeItem,
    given: Columns,
    there: list[TargetColumn] | None,
    keys: tuple[str, ...],
) -> ColumnMapping:
    """Each column with where it goes; StepFailed says what does not go."""
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
                told = f"{column.name} is {types.shown(column.type)}, and {target} has {said}, which does not take it"
                raise StepFailed("TYPE", f"{told}. CAST it in a query before, or change the column there") from None
        is_key = types.key(column.name) in wanted
        pairs.append(MappedColumn(column, staged, source, database.quoted(name), said, fit, is_key))
    return ColumnMapping(tuple(pairs))


def new_columns(database: Database, plan: ColumnMapping) -> list[str]:
    """The columns of a target that is made, as SQL writes them; keys make its primary key."""
    columns = [
        f"{column.target} {database.type_of(column.given.type, is_key=column.is_key)}" for column in plan.columns
    ]
    keys = [column.target for column in plan.columns if column.is_key]
    return [*columns, *([f"PRIMARY KEY ({', '.join(keys)})"] if keys else [])]


def _plain(database: Database, column: Column, source: str) -> ColumnCast:
    """Into a column of the type that we would give it."""
    own, staged = database.type_of(column.type), database.type_of(column.type, staged=True)
    return ColumnCast(source if own == staged else database.cast(source, own))


def _check_key(table: LakeItem, given: Columns, name: str) -> None:
    result = types.find(given, name)
    if result is None:
        listed = ", ".join(column.name for column in given)
        raise StepFailed("COLUMN", f"keys names {name}, which {table} does not have; it has {listed}")
    if not types.is_key(result.type):
        raise StepFailed("KEYS", f"{name} is {types.shown(result.type)}, by which rows cannot be told apart")


def _check_needed(target: TargetTable, table: LakeItem, given: Columns, there: list[TargetColumn]) -> None:
    missing = [column.name for column in there if column.needs_value and types.find(given, column.name) is None]
    if missing:
        told = f"{target} needs a value for {', '.join(missing)}, which {table} does not have"
        raise StepFailed("COLUMN", f"{told}; give it a default there, or add it in a query before")


def _found(target: TargetTable, column: Column, there: list[TargetColumn]) -> TargetColumn:
    exact = [entry for entry in there if entry.name == column.name]
    alike = exact or [entry for entry in there if types.key(entry.name) == types.key(column.name)]
    if len(alike) != 1:
        listed = ", ".join(column.name for column in there[:50])
        told = f"{target} has no column {column.name}; it has {listed}"
        raise StepFailed("COLUMN", f"{told}. Add it there, or deliver a table without it")
    return alike[0]
