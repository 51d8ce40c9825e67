"""The interface of database deliveries, which PostgreSQL and MySQL implement."""

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
"""The ledger table in the target schema: one row per completed delivery."""

STAGING = "headgate_staging_"
"""The prefix of staging table names."""

GONE = "GONE_THERE"
"""Error code: a schema or table does not exist."""

TAKEN = "TAKEN_THERE"
"""Error code: a row or table already exists."""

CUT_OFF = "CUT_OFF"
"""Error code: the outcome of the commit is unknown."""


class IncompatibleColumn(Exception):
    """The type of a target column can never hold the values."""


@dataclass(frozen=True, slots=True)
class ColumnCast:
    """How to convert a staged value to a target column: the expression `value`, valid if `holds` is true or empty."""

    value: str
    holds: str = ""
    compared: str = ""
    """The expression to compare the column with, if it is not `value`."""

    @property
    def same(self) -> str:
        """The expression to compare the column with."""
        return self.compared or self.value


@dataclass(frozen=True, slots=True)
class TargetColumn:
    """A column of the target. `facts` holds type details of the database."""

    name: str
    said: str
    """The type as the database shows it."""
    needs_value: bool
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TargetTable:
    """The name of a table in the database."""

    schema: str
    table: str

    def __str__(self) -> str:
        return f"{self.schema}.{self.table}"


class Database(ABC):
    """The connection of one delivery. Database errors are raised as StepFailed with a message for the user."""

    called: str
    quote: str

    def __init__(self, asked: CheckRequest, connection: Any) -> None:
        self.asked, self.connection = asked, connection

    def quoted(self, *names: str) -> str:
        """An identifier with each part quoted."""
        return ".".join(self.quote + name.replace(self.quote, self.quote * 2) + self.quote for name in names)

    def name(self, place: TargetTable) -> str:
        """The SQL name of a table."""
        return self.quoted(place.schema, place.table)

    @abstractmethod
    def rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """The rows of a query."""

    @abstractmethod
    def execute(self, sql: str, *values: Any) -> int:
        """Execute a statement; return the number of changed rows."""

    @abstractmethod
    def prepare(self) -> None:
        """Configure the session: UTC, strict mode, and no idle timeout while Spark works."""

    @abstractmethod
    def interrupt(self) -> None:
        """Cancel the running statement, from another thread."""

    @abstractmethod
    @contextmanager
    def transaction(self, target: TargetTable) -> Iterator[None]:
        """A transaction that holds the lock of the target, which one delivery at a time can have."""
        yield

    @abstractmethod
    def hold(self, place: TargetTable) -> bool:
        """Lock a name until the connection ends or `release`; False if another connection has the lock."""

    @abstractmethod
    def release(self, place: TargetTable) -> None:
        """Release the lock of a name."""

    @abstractmethod
    def staged(self, schema: str) -> list[str]:
        """The names of all staging tables in a schema."""

    @abstractmethod
    def look(self, target: TargetTable) -> "list[TargetColumn] | None":
        """The columns of the target; None if the table does not exist. StepFailed if the schema does not exist, or if
        the target is not a transactional table.
        """

    @abstractmethod
    def type_of(self, given: Type, *, is_key: bool = False, staged: bool = False) -> str:
        """The target's column type for a lakehouse type."""

    @abstractmethod
    def fit(self, given: Type, there: TargetColumn, value: str) -> ColumnCast:
        """The cast of staged values to a target column; IncompatibleColumn if there is none."""

    @abstractmethod
    def ready(self, staging: TargetTable, keys: Sequence[tuple[str, Type]]) -> None:
        """Prepare a filled staging table for joins on these columns."""

    @abstractmethod
    def create(self, place: TargetTable, columns: Sequence[str], *, staged: bool = False) -> None:
        """Create a table with these column definitions."""

    @abstractmethod
    def update(self, target: str, staging: str, values: Sequence[tuple[str, str]], same: str) -> str:
        """The UPDATE of the target rows `t` from the staged rows `s` with the same keys."""

    def cast(self, value: str, kind: str) -> str:
        """Cast a staged value to the type of a new column."""
        return f"CAST({value} AS {kind})"

    creates_inside = True
    """Whether DDL is transactional; otherwise tables are created before the transaction."""

    def drop(self, place: TargetTable) -> None:
        """Drop a staging table, if it exists."""
        self.execute(f"DROP TABLE IF EXISTS {self.name(place)}")

    def failed(self, code: str, words: str, said: str, *, passing: bool = False) -> StepFailed:
        """A StepFailed with a message of ours and the database's own."""
        return StepFailed(code, f"{words}. Message of {self.called}: {self.asked.plain(said)}", passing=passing)


def staging_name(run: str, step: int, fence: int) -> str:
    """The name of the staging table of a step, unique to each attempt, so that a stale attempt cannot write into it."""
    return f"{STAGING}{run.removeprefix('run_')}_{step}_{fence}"


def lock_number(place: TargetTable) -> int:
    """The number of an advisory lock for a name."""
    digest = hashlib.sha256(f"headgate:{place}".encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)


def length_condition(length: str, most: int | None) -> str:
    """The condition that a length is at most this many characters or bytes."""
    return f"{length} <= {most}" if most is not None else ""


def all_conditions(*conditions: str) -> str:
    """The conjunction of conditions; empty ones are always true."""
    return " AND ".join(f"({condition})" for condition in conditions if condition)
