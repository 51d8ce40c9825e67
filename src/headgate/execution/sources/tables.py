"""Tables in SQL: made, and grown by columns and wider types."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from headgate.contracts.pipelines.fields import quoted

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType


def made(table: str, columns: "StructType", *, anew: bool = False) -> str:
    """The statement that makes an empty table; `anew`, in place of one that never had a row."""
    wanted = ", ".join(f"{quoted(field.name)} {ddl(field.dataType)}" for field in columns.fields)
    return f"CREATE {'OR REPLACE ' if anew else ''}TABLE {table} ({wanted}) USING iceberg"


def changes(table: str, old: "StructType", new: "StructType") -> Iterator[str]:
    """The statements that bring a table's columns to others, which hold all that the old ones hold."""
    yield from _changes(table, (), old, new)


def _changes(table: str, path: tuple[str, ...], old: Any, new: Any) -> Iterator[str]:
    there = {entry.name: entry.dataType for entry in old.fields}
    for field in new.fields:
        place = (*path, field.name)
        if field.name not in there:
            yield f"ALTER TABLE {table} ADD COLUMN {quoted(*place)} {ddl(field.dataType)}"
        else:
            yield from _inner(table, place, there[field.name], field.dataType)


def _inner(table: str, path: tuple[str, ...], old: Any, new: Any) -> Iterator[str]:
    from pyspark.sql import types as t

    if old.simpleString() == new.simpleString():
        return
    match old, new:
        case t.StructType(), t.StructType():
            yield from _changes(table, path, old, new)
        case t.ArrayType(), t.ArrayType():
            yield from _inner(table, (*path, "element"), old.elementType, new.elementType)
        case t.MapType(), t.MapType():
            yield from _inner(table, (*path, "value"), old.valueType, new.valueType)
        case _:
            yield f"ALTER TABLE {table} ALTER COLUMN {quoted(*path)} TYPE {ddl(new)}"


def ddl(kind: "DataType") -> str:
    """A type as SQL writes it, whatever its fields are called."""
    from pyspark.sql import types as t

    match kind:
        case t.StructType():
            return "STRUCT<" + ", ".join(f"{quoted(field.name)}: {ddl(field.dataType)}" for field in kind.fields) + ">"
        case t.ArrayType():
            return f"ARRAY<{ddl(kind.elementType)}>"
        case t.MapType():
            return f"MAP<{ddl(kind.keyType)}, {ddl(kind.valueType)}>"
    return kind.simpleString()
