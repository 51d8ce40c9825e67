"""The rows that a change writes and deletes. They are either applied, or laid over the tables for a what-if."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Table, and_, delete, insert, select, update

from headgate.kit.database import stored

Row = Mapping[str, Any]
UNREAD = frozenset({"tokens", "sessions", "links", "mails", "notification_receivers", "former_owners"})
"""Tables that no rule reads, so changes in them do not affect access."""


@dataclass(slots=True)
class Delta:
    """Rows to write (whole rows, inserted or replaced by key) and keys of rows to delete."""

    puts: list[tuple[Table, Row]] = field(default_factory=list)
    drops: list[tuple[Table, Row]] = field(default_factory=list)

    def put(self, table: Table, row: Row) -> None:
        """Write a whole row."""
        self.puts.append((table, row))

    def drop(self, table: Table, key: Row) -> None:
        """Delete the row with this key."""
        self.drops.append((table, key))

    def change(self, connection: Connection, table: Table, key: Row, **values: Any) -> None:
        """Write the stored row with this key, with some changed values."""
        row = connection.execute(select(table).where(_has(table, key))).mappings().one()
        self.puts.append((table, {**row, **values}))

    def drop_all(self, connection: Connection, table: Table, where: Row) -> None:
        """Delete every row with these values."""
        keys = [column.name for column in table.primary_key]
        rows = connection.execute(select(*(table.c[key] for key in keys)).where(_has(table, where)))
        self.drops.extend((table, dict(row)) for row in rows.mappings())

    def rows(self, table: Table) -> Iterable[Row]:
        """The written or deleted rows of a table."""
        return [row for entry, row in (*self.puts, *self.drops) if entry is table]

    def apply(self, connection: Connection) -> None:
        """Apply the changes to the database."""
        for table, key in self.drops:
            connection.execute(delete(table).where(_has(table, key)))
        for table, row in self.puts:
            key = {column.name: row[column.name] for column in table.primary_key}
            if connection.execute(update(table).where(_has(table, key)).values(dict(row))).rowcount == 0:
                connection.execute(insert(table).values(dict(row)))

    def overlay(self, dialect: str) -> tuple[str, dict[str, Any]]:
        """The changed tables as a WITH clause that shadows the real ones, and its parameters."""
        parameters: dict[str, Any] = {}
        parts = [
            f"{table.name} AS NOT MATERIALIZED ({self._laid_over(table, dialect, parameters)})"
            for table in dict.fromkeys(table for table, _ in (*self.puts, *self.drops) if table.name not in UNREAD)
        ]
        return ("WITH " + ", ".join(parts) + " ", parameters) if parts else ("", {})

    def _laid_over(self, table: Table, dialect: str, parameters: dict[str, Any]) -> str:
        def bind(value: Any) -> str:
            name = f"o{len(parameters)}"
            parameters[name] = stored(value) if dialect == "sqlite" and isinstance(value, datetime) else value
            return f":{name}"

        keys = [column.name for column in table.primary_key]
        hidden = [row for entry, row in (*self.puts, *self.drops) if entry is table]
        kept = " AND ".join(
            "NOT (" + " AND ".join(f"base.{key} = {bind(row[key])}" for key in keys) + ")" for row in hidden
        )
        columns = ", ".join(f"base.{column.name}" for column in table.columns)
        source = f"main.{table.name}" if dialect == "sqlite" else table.name
        selects = [f"SELECT {columns} FROM {source} base WHERE {kept}"]
        selects += [
            "SELECT " + ", ".join(bind(row[column.name]) for column in table.columns)
            for entry, row in self.puts
            if entry is table
        ]
        return " UNION ALL ".join(selects)


def _has(table: Table, values: Row) -> Any:
    return and_(*(table.c[name] == value for name, value in values.items()))
