"""A database that rows are delivered to: what both kinds have in common, and what each says in its own words."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from headgate.contracts.tables.types import Type
from headgate.execution.connection_checks.checks import CheckRequest
from headgate.execution.steps.context import StepFailed

LEDGER = "headgate_deliveries"
"""Our table beside the targets: a row for each delivery that was made."""

STAGING = "headgate_staging_"
"""What the names of staging tables begin with."""

GONE = "GONE_THERE"
"""The code of a failure for something that is not there."""

TAKEN = "TAKEN_THERE"
"""The code of a failure for a row or a table that is there already."""

CUT_OFF = "CUT_OFF"
"""The code of a failure after which nobody here knows what was committed."""


class IncompatibleColumn(Exception):
    """A type that a column of the target never takes."""


@dataclass(frozen=True, slots=True)
class ColumnCast:
    """How a staged value gets into a column: `value`, as an expression of it, if `holds` is true of it, or empty."""

    value: str
    holds: str = ""
    compared: str = ""
    """What the column is compared with, if that is not the value itself."""

    @property
    def same(self) -> str:
        """What the column is compared with."""
        return self.compared or self.value


@dataclass(frozen=True, slots=True)
class TargetColumn:
    """A column of the target. `facts` are those of its type, by the kind of database."""

    name: str
    said: str
    """The type, in the database's words."""
    needs_value: bool
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TargetTable:
    """A table in the database."""

    schema: str
    table: str

    def __str__(self) -> str:
        return f"{self.schema}.{self.table}"


class Database(ABC):
    """A connection for one delivery. What the database refuses is a StepFailed in words that help."""

    called: str
    quote: str

    def __init__(self, asked: CheckRequest, connection: Any) -> None:
        self.asked, self.connection = asked, connection

    def quoted(self, *names: str) -> str:
        """A name as SQL writes it, each part quoted."""
        return ".".join(self.quote + name.replace(self.quote, self.quote * 2) + self.quote for name in names)

    def name(self, place: TargetTable) -> str:
        """A table as SQL names it."""
        return self.quoted(place.schema, place.table)

    @abstractmethod
    def rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """The rows of a query."""

    @abstractmethod
    def execute(self, sql: str, *values: Any) -> int:
        """Run a statement; how many rows it changed."""

    @abstractmethod
    def prepare(self) -> None:
        """Set the session up: UTC, strict, and alive while Spark works."""

    @abstractmethod
    def interrupt(self) -> None:
        """Stop the statement under way, from another thread."""

    @abstractmethod
    @contextmanager
    def transaction(self, target: TargetTable) -> Iterator[None]:
        """One transaction; of ours, only one at a time has this target."""
        yield

    @abstractmethod
    def hold(self, place: TargetTable) -> bool:
        """Hold a name until this connection ends, or `release`; False if another connection does."""

    @abstractmethod
    def release(self, place: TargetTable) -> None:
        """Let go of a name."""

    @abstractmethod
    def staged(self, schema: str) -> list[str]:
        """The names of all staging tables of a schema."""

    @abstractmethod
    def look(self, target: TargetTable) -> "list[TargetColumn] | None":
        """The columns of the target; None if there is no such table. StepFailed if there is no such schema, or if it is
        nothing that rows can be moved to in a transaction."""

    @abstractmethod
    def type_of(self, given: Type, *, is_key: bool = False, staged: bool = False) -> str:
        """The type of a new column for values of the lakehouse's type."""

    @abstractmethod
    def fit(self, given: Type, there: TargetColumn, value: str) -> ColumnCast:
        """How staged values get into a column of the target; Misfit if they never do."""

    @abstractmethod
    def ready(self, staging: TargetTable, keys: Sequence[tuple[str, Type]]) -> None:
        """Make a full staging table ready to be joined by these columns."""

    @abstractmethod
    def create(self, place: TargetTable, columns: Sequence[str], *, staged: bool = False) -> None:
        """Make a table of these columns, as SQL writes them."""

    @abstractmethod
    def update(self, target: str, staging: str, values: Sequence[tuple[str, str]], same: str) -> str:
        """The statement that changes rows of the target, `t`, which are the same as staged ones, `s`."""

    def cast(self, value: str, kind: str) -> str:
        """A staged value as one of the type that a new column has."""
        return f"CAST({value} AS {kind})"

    creates_inside = True
    """Whether tables are made inside transactions; otherwise each is made before."""

    def drop(self, place: TargetTable) -> None:
        """Drop a table of ours, if it is there."""
        self.execute(f"DROP TABLE IF EXISTS {self.name(place)}")

    def failed(self, code: str, words: str, said: str, *, passing: bool = False) -> StepFailed:
        """A failure in our words, with the database's own."""
        return StepFailed(code, f"{words}. {self.called} said: {self.asked.plain(said)}", passing=passing)


def name_of(run: str, step: int, fence: int) -> str:
    """What the staging table of a step is called; each try has one of its own, so that no dead one writes into it."""
    return f"{STAGING}{run.removeprefix('run_')}_{step}_{fence}"


def number_of(place: TargetTable) -> int:
    """A number by which a name is locked."""
    digest = hashlib.sha256(f"headgate:{place}".encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)


def length_holds(length: str, most: int | None) -> str:
    """That something has at most so many characters or bytes."""
    return f"{length} <= {most}" if most is not None else ""


def both(*conditions: str) -> str:
    """Conditions that must all hold; empty ones always do."""
    return " AND ".join(f"({condition})" for condition in conditions if condition)
