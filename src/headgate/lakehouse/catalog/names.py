"""Names as engines write them: a layer is a namespace of one level, and names are case-insensitive."""

from dataclasses import dataclass
from typing import Any

from headgate.kit.names import SQL_NAME
from headgate.lakehouse.catalog.errors import Malformed

SEPARATOR = "\x1f"
"""The separator of namespace levels in a path."""


def plain(name: str) -> str:
    """A name as stored in the database; empty if no item can have the name."""
    lowered = name.lower() if name.isascii() else ""
    return lowered if SQL_NAME.fullmatch(lowered) else ""


@dataclass(frozen=True, slots=True)
class Ident:
    """A namespace or a table in one, as written by the client."""

    levels: tuple[str, ...]
    table: str | None = None

    def __str__(self) -> str:
        return ".".join((*self.levels, self.table) if self.table is not None else self.levels)

    @property
    def layer_key(self) -> str:
        """The stored form of the layer's name; empty if no layer can have it."""
        return plain(self.levels[0]) if len(self.levels) == 1 else ""

    @property
    def table_key(self) -> str:
        """The stored form of the table's name; empty if no table can have it."""
        return plain(self.table) if self.table is not None else ""

    @property
    def ref(self) -> str:
        """The name under which a load is recorded."""
        return f"{self.layer_key or '.'.join(self.levels)}.{self.table_key or self.table}"[:300]

    @property
    def has_one_level(self) -> bool:
        """Whether it has the form of a table name. Engines look up metadata tables, such as a table's snapshots, as
        tables in a namespace of several levels before they load the table itself.
        """
        return len(self.levels) == 1


def namespace(text: str) -> Ident:
    """A namespace from a path."""
    return Ident(tuple(text.split(SEPARATOR)))


def table(namespace_text: str, name: str) -> Ident:
    """A table from a path."""
    return Ident(tuple(namespace_text.split(SEPARATOR)), name)


def from_json(value: Any, *, is_table: bool = True) -> Ident:
    """A table, or a namespace alone, from a body."""
    levels = value.get("namespace") if isinstance(value, dict) else None
    name = value.get("name") if isinstance(value, dict) else None
    if not isinstance(levels, list) or not levels or not all(isinstance(level, str) for level in levels):
        raise Malformed('Write a table as {"namespace": ["LAYER"], "name": "TABLE"}')
    if is_table and not isinstance(name, str):
        raise Malformed('Write a table as {"namespace": ["LAYER"], "name": "TABLE"}')
    return Ident(tuple(levels), name if is_table else None)
