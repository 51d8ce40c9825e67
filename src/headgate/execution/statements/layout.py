"""Partitioning and sort order of tables, and the statements that change them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from headgate.contracts.pipelines.fields import quoted, transform
from headgate.contracts.tables.types import (
    BIGINT,
    BINARY,
    DOUBLE,
    FLOAT,
    INT,
    STRING,
    TIMES,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    Columns,
    Decimal,
    PrimitiveType,
    Type,
    find,
    key,
    shown,
)

_TEXTS = {STRING, BINARY}
_TAKES: dict[str, frozenset[str]] = {
    "year": TIMES,
    "month": TIMES,
    "day": TIMES,
    "hour": frozenset({TIMESTAMP, TIMESTAMP_NTZ}),
    "bucket": TIMES | _TEXTS | {INT, BIGINT, "DECIMAL"},
    "truncate": frozenset(_TEXTS | {INT, BIGINT, "DECIMAL"}),
}
_PLURALS = {f"{name}s": name for name in ("year", "month", "day", "hour")}
_NUMBERED = {"bucket", "truncate"}
_SHOWN = re.compile(r"(?P<name>[a-z]+)\((?:(?P<n>\d+), )?(?P<column>[^()]*|`.*`)\)")


class InvalidLayout(ValueError):
    """Columns that cannot be partitioned or sorted by; the message says why."""


@dataclass(frozen=True, slots=True)
class PartitionField:
    """A partition field: a column, or a transform of it."""

    name: str
    number: int | None
    column: str

    @property
    def sql(self) -> str:
        """As SQL writes it."""
        column = quoted(self.column)
        if self.name == "identity":
            return column
        if self.name in _NUMBERED:
            return f"{self.name}({self.number}, {column})"
        return f"{self.name}s({column})"

    @property
    def _compared(self) -> tuple[str, int | None, str]:
        return self.name, self.number, key(self.column)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PartitionField) and self._compared == other._compared

    def __hash__(self) -> int:
        return hash(self._compared)


def parts(texts: Sequence[str], columns: Columns) -> tuple[PartitionField, ...]:
    """The partition fields of a definition; InvalidLayout if a column is missing or unsuitable."""
    partition_fields = tuple(PartitionField(*transform(text)) for text in texts)
    for partition_field in partition_fields:
        column = find(columns, partition_field.column)
        if column is None:
            raise InvalidLayout(f"Unknown column {partition_field.column} in partition_by")
        if not _takes(partition_field.name, column.type):
            raise InvalidLayout(f"{partition_field.sql} is invalid: {partition_field.column} is {shown(column.type)}")
    return partition_fields


def _takes(name: str, entry: Type) -> bool:
    kind = "DECIMAL" if isinstance(entry, Decimal) else entry.name if isinstance(entry, PrimitiveType) else ""
    if name == "identity":
        return kind not in {"", FLOAT, DOUBLE}
    return kind in _TAKES[name]


def check_sort(sort_by: Sequence[str], columns: Columns) -> None:
    """Raise InvalidLayout if rows cannot be sorted by these columns."""
    for name in sort_by:
        column = find(columns, name)
        if column is None:
            raise InvalidLayout(f"Unknown column {name} in sort_by")
        if not isinstance(column.type, PrimitiveType | Decimal):
            raise InvalidLayout(f"rows cannot be sorted by {name}, because it is {shown(column.type)}")


def described(rows: Sequence[dict[str, Any]]) -> tuple[PartitionField, ...]:
    """The partition fields of an existing table, from DESCRIBE TABLE."""
    names = [row["col_name"] for row in rows]
    if "# Partitioning" not in names:
        return ()
    start = len(names) - names[::-1].index("# Partitioning")
    return tuple(_described(row["data_type"]) for row in rows[start:])


def _described(text: str) -> PartitionField:
    match = _SHOWN.fullmatch(text)
    if match is None or text.startswith("`"):
        return PartitionField("identity", None, _unquoted(text))
    name = _PLURALS.get(match["name"], match["name"])
    return PartitionField(name, int(match["n"]) if match["n"] else None, _unquoted(match["column"]))


def _unquoted(text: str) -> str:
    return text[1:-1].replace("``", "`") if text.startswith("`") else text


def repartition(table: str, there: Sequence[PartitionField], wanted: Sequence[PartitionField]) -> list[str]:
    """The statements that change the partitioning of new files."""
    return [
        f"ALTER TABLE {table} DROP PARTITION FIELD {partition_field.sql}"
        for partition_field in there
        if partition_field not in wanted
    ] + [
        f"ALTER TABLE {table} ADD PARTITION FIELD {partition_field.sql}"
        for partition_field in wanted
        if partition_field not in there
    ]


def order(table: str, sort_by: Sequence[str]) -> str:
    """The statement that changes the sort order of new files."""
    if not sort_by:
        return f"ALTER TABLE {table} WRITE UNORDERED"
    return f"ALTER TABLE {table} WRITE ORDERED BY {', '.join(map(quoted, sort_by))}"
