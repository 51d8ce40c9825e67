"""The rule tables, one a kind, by area."""

from headgate.access.rules import lakehouse, marts, own, people, runs, spaces
from headgate.access.rules.paths import Path, Remedy, Rules
from headgate.access.rules.terms import TERMS

ALL_TABLES: tuple[Rules, ...] = (
    *marts.TABLES,
    *lakehouse.TABLES,
    *spaces.TABLES,
    *runs.TABLES,
    *people.TABLES,
    *own.TABLES,
)

__all__ = ["ALL_TABLES", "TERMS", "Path", "Remedy", "Rules"]
