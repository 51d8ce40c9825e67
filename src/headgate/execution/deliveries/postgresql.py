"""Database deliveries to PostgreSQL: types, casts and statements."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from headgate.contracts.tables import types
from headgate.contracts.tables.types import Decimal, PrimitiveType, Type
from headgate.execution.deliveries import numbers
from headgate.execution.deliveries.database import (
    CUT_OFF,
    GONE,
    STAGING,
    TAKEN,
    ColumnCast,
    Database,
    IncompatibleColumn,
    TargetColumn,
    TargetTable,
    all_conditions,
    length_condition,
    lock_number,
)
from headgate.execution.steps.context import StepFailed

TYPES = {
    types.BOOLEAN: "boolean",
    types.INT: "integer",
    types.BIGINT: "bigint",
    types.FLOAT: "real",
    types.DOUBLE: "double precision",
    types.STRING: "text",
    types.BINARY: "bytea",
    types.DATE: "date",
    types.TIMESTAMP: "timestamp with time zone",
    types.TIMESTAMP_NTZ: "timestamp without time zone",
}
NESTED = "jsonb"

_RANGES = {
    "int2": (-(2**15), 2**15 - 1),
    "int4": (-(2**31), 2**31 - 1),
    "int8": (-(2**63), 2**63 - 1),
}
_TEXTS = {"text", "varchar", "bpchar", "citext", "name"}
_PARSED = {"uuid", "json", "jsonb", "inet", "cidr", "macaddr", "macaddr8", "xml", "ltree", "hstore", "tsvector"}
_UUID = "^[0-9A-Fa-f]{8}-([0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}$"
_LOCK_SECONDS = 300

_TABLE = """
SELECT c.relkind FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = %s AND c.relname = %s
"""
_COLUMNS = """
SELECT a.attname, format_type(a.atttypid, a.atttypmod), b.typname, b.typtype,
  CASE WHEN t.typtype = 'd' THEN t.typtypmod ELSE a.atttypmod END,
  a.attnotnull AND NOT a.atthasdef AND a.attidentity = '' AND t.typdefault IS NULL, format_type(b.oid, NULL)
FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_class c ON c.oid = a.attrelid
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
JOIN pg_catalog.pg_type b ON b.oid = COALESCE(NULLIF(t.typbasetype, 0), t.oid)
WHERE n.nspname = %s AND c.relname = %s AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""
_STAGED = """
SELECT c.relname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = %s AND c.relkind = 'r' AND starts_with(c.relname, %s)
"""


class PostgreSql(Database):
    """A connection by psycopg."""

    called, quote = "PostgreSQL", '"'

    def rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """The rows of a query."""
        with self._told():
            return list(self.connection.execute(sql, values or None).fetchall())

    def execute(self, sql: str, *values: Any) -> int:
        """Execute a statement; return the number of changed rows."""
        with self._told():
            return int(self.connection.execute(sql, values or None).rowcount)

    def prepare(self) -> None:
        """Configure the session."""
        wanted = {
            "TimeZone": "UTC",
            "client_encoding": "UTF8",
            "standard_conforming_strings": "on",
            "lock_timeout": f"{_LOCK_SECONDS}s",
            "idle_session_timeout": "0",
            "idle_in_transaction_session_timeout": "0",
        }
        for name, value in wanted.items():
            self.rows("SELECT set_config(name, %s, false) FROM pg_catalog.pg_settings WHERE name = %s", value, name)

    def interrupt(self) -> None:
        """Cancel the running statement."""
        import psycopg  # noqa: PLC0415 - only a worker that delivers needs it

        with suppress(psycopg.Error):
            self.connection.cancel_safe(timeout=10)

    @contextmanager
    def transaction(self, target: TargetTable) -> Iterator[None]:
        """A transaction that holds the lock of the target."""
        with self._told(), self.connection.transaction():
            self.rows("SELECT pg_advisory_xact_lock(%s)", lock_number(target))
            yield

    def hold(self, place: TargetTable) -> bool:
        """Lock a name."""
        return bool(self.rows("SELECT pg_try_advisory_lock(%s)", lock_number(place))[0][0])

    def release(self, place: TargetTable) -> None:
        """Release the lock of a name."""
        self.rows("SELECT pg_advisory_unlock(%s)", lock_number(place))

    def staged(self, schema: str) -> list[str]:
        """The names of all staging tables."""
        return [str(name) for (name,) in self.rows(_STAGED, schema, STAGING)]

    def look(self, target: TargetTable) -> list[TargetColumn] | None:
        """The columns of the target."""
        if not self.rows("SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = %s", target.schema):
            raise StepFailed(GONE, f"There is no schema {target.schema} in the database; create it, or choose another")
        kinds = [kind for (kind,) in self.rows(_TABLE, target.schema, target.table)]
        if not kinds:
            return None
        if _word(kinds[0]) not in {"r", "p"}:
            raise StepFailed("NOT_A_TABLE", f"{target} is not a base table, but perhaps a view; deliver to a table")
        return [
            TargetColumn(name, said, bool(needs), {"type": base, "sort": _word(sort), "mod": mod, "cast": cast})
            for name, said, base, sort, mod, needs, cast in self.rows(_COLUMNS, target.schema, target.table)
        ]

    def type_of(self, given: Type, *, is_key: bool = False, staged: bool = False) -> str:
        """The type of a new column."""
        match given:
            case PrimitiveType():
                return TYPES[given.name]
            case Decimal():
                return f"numeric({given.precision}, {given.scale})"
        return "text" if staged else NESTED

    def create(self, place: TargetTable, columns: Sequence[str], *, staged: bool = False) -> None:
        """Make a table; a staging table need not survive a crash of the server, which ends this connection too."""
        sort = "UNLOGGED TABLE" if staged else "TABLE"
        self.execute(f"CREATE {sort} {self.name(place)} ({', '.join(columns)})")

    def ready(self, staging: TargetTable, keys: Sequence[tuple[str, Type]]) -> None:
        """Collect statistics for the planner."""
        self.execute(f"ANALYZE {self.name(staging)}")

    def update(self, target: str, staging: str, values: Sequence[tuple[str, str]], same: str) -> str:
        """The UPDATE statement."""
        given = ", ".join(f"{name} = {value}" for name, value in values)
        return f"UPDATE {target} AS t SET {given} FROM {staging} AS s WHERE {same}"

    # What a column takes

    def fit(self, given: Type, there: TargetColumn, value: str) -> ColumnCast:
        """The cast of staged values to a target column."""
        name, mod = str(there.facts["type"]), int(there.facts["mod"])
        cast = f"{value}::{there.facts['cast']}"
        if there.facts["sort"] == "e" and given == PrimitiveType(types.STRING):
            return ColumnCast(cast, f"{value} = ANY(enum_range(NULL::{there.facts['cast']})::text[])")
        if name in _TEXTS and given != PrimitiveType(types.BINARY):
            return _text(given, name, mod, value, cast)
        if numbers.is_number(given):
            return ColumnCast(value, _number(given, name, mod, value))
        if given == PrimitiveType(types.STRING) and name in _PARSED:
            return ColumnCast(cast, f"{value} ~ '{_UUID}'" if name == "uuid" else "")
        if not isinstance(given, PrimitiveType) and name in {"json", "jsonb"}:
            return ColumnCast(cast)
        if isinstance(given, PrimitiveType) and name in _TAKES.get(given.name, set()):
            is_short = name in {"timestamp", "timestamptz"} and 0 <= mod < 6
            return ColumnCast(value, f"{value} = {value}::{name}({mod})" if is_short else "")
        raise IncompatibleColumn

    # What the server says

    @contextmanager
    def _told(self) -> Iterator[None]:
        import psycopg  # noqa: PLC0415

        try:
            yield
        except psycopg.Error as error:
            raise self._failure(error) from None

    def _failure(self, error: Any) -> StepFailed:
        state, said = error.sqlstate or "", str(error).strip().splitlines()[:1] or [""]
        for begin, code, words, passing in _SAYINGS:
            if state.startswith(begin):
                return self.failed(code, words, said[0], passing=passing)
        if not state or state.startswith(("08", "57P")):
            return self.failed(
                CUT_OFF, "Lost the connection to the database; check that it is running", said[0], passing=True
            )
        return self.failed("FAILED_THERE", "The database rejected the delivery", said[0], passing=True)


_TAKES = {
    types.BOOLEAN: {"bool"},
    types.BINARY: {"bytea"},
    types.DATE: {"date", "timestamp", "timestamptz"},
    types.TIMESTAMP: {"timestamptz", "timestamp"},
    types.TIMESTAMP_NTZ: {"timestamp", "timestamptz"},
}
_SAYINGS = (
    ("42501", "DENIED_THERE", "The user lacks a permission for this; grant it in the database", False),
    ("23505", TAKEN, "A row with the same unique key already exists", False),
    ("42P07", TAKEN, "A table of that name already exists", True),
    ("42P01", GONE, "A table does not exist", True),
    ("3F000", GONE, "A schema does not exist; create it", False),
    ("23", "REFUSED_THERE", "A constraint of the table rejected a row, so nothing was delivered", False),
    ("22", "VALUE", "A value does not fit its column, so nothing was delivered; change it in a query pipeline", False),
    (
        "428C9",
        "REFUSED_THERE",
        "A column of the target is generated; remove it from the delivered table in a query pipeline",
        False,
    ),
    (
        "53100",
        "FULL_THERE",
        "The database has no space left, so nothing was delivered; free space, and run the pipeline again",
        True,
    ),
    ("53", "BUSY_THERE", "The database is overloaded; try again later", True),
    ("55P03", "BUSY_THERE", "Timed out waiting for a lock on the table; try again later", True),
    (
        "40",
        "BUSY_THERE",
        "The database rolled back the transaction because of a deadlock or a conflict; try again",
        True,
    ),
    ("57014", "TIMEOUT", "The statement timed out or was cancelled; nothing was delivered", True),
    ("25006", "DENIED_THERE", "The database is a read-only replica; check the host", False),
)


def _word(value: Any) -> str:
    """A one-character catalog value, which is text or bytes."""
    return value.decode() if isinstance(value, bytes) else str(value)


def _text(given: Type, name: str, mod: int, value: str, cast: str) -> ColumnCast:
    length = f"char_length({value}::text)"
    most = mod - 4 if name in {"varchar", "bpchar"} and mod >= 4 else None
    if name == "name":
        length, most = f"octet_length({value}::text)", 63
    # A padded text would lose the spaces at its end.
    whole = f"rtrim({value}::text, ' ') = {value}::text" if name == "bpchar" else ""
    plain = value if given == PrimitiveType(types.STRING) or name != "citext" else f"{value}::text"
    return ColumnCast(cast if name == "citext" else plain, all_conditions(length_condition(length, most), whole))


def _number(given: Type, name: str, mod: int, value: str) -> str:
    if name in _RANGES:
        return numbers.in_whole(given, value, *_RANGES[name], f"trunc({value})")
    if name == "numeric":
        return _numeric(given, mod, value)
    if name in {"float4", "float8"}:
        result = numbers.in_floating(given, value, "single" if name == "float4" else "double")
        if result is not None:
            return result
        if given == PrimitiveType(types.FLOAT) or (given == PrimitiveType(types.DOUBLE) and name == "float8"):
            return ""
        if isinstance(given, Decimal) and name == "float8":
            return f"{value}::float8::numeric = {value}"
    raise IncompatibleColumn


def _numeric(given: Type, mod: int, value: str) -> str:
    is_floating = not isinstance(given, Decimal) and given not in (
        PrimitiveType(types.INT),
        PrimitiveType(types.BIGINT),
    )
    if is_floating:
        own = "float4" if given == PrimitiveType(types.FLOAT) else "float8"
        finite = f"{value} > '-Infinity' AND {value} < 'Infinity'"
        exact = f"{value}::numeric::{own} = {value}"
        if mod >= 4:
            digits, behind = _digits(mod)
            exact = f"round({value}::numeric, {behind})::{own} = {value}"
            finite += f" AND {value} > -1e{digits - behind} AND {value} < 1e{digits - behind}"
        return f"CASE WHEN {finite} THEN {exact} ELSE false END"
    if mod < 4:
        return ""
    digits, behind = _digits(mod)
    return numbers.in_decimal(given, value, digits, behind, f"round({value}, {behind})")


def _digits(mod: int) -> tuple[int, int]:
    """The precision and scale of a number, from its type modifier."""
    return ((mod - 4) >> 16) & 0xFFFF, (((mod - 4) & 0x7FF) ^ 1024) - 1024
