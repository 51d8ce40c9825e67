"""Database deliveries to MySQL and MariaDB: types, casts and statements."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from time import monotonic
from typing import Any

from headgate.contracts.tables import types
from headgate.contracts.tables.types import Decimal, PrimitiveType, Type
from headgate.execution.connection_checks import mysql
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
    types.BOOLEAN: "tinyint(1)",
    types.INT: "int",
    types.BIGINT: "bigint",
    types.FLOAT: "float",
    types.DOUBLE: "double",
    types.STRING: "longtext",
    types.BINARY: "longblob",
    types.DATE: "date",
    types.TIMESTAMP: "datetime(6)",
    types.TIMESTAMP_NTZ: "datetime(6)",
}
KEYS = {types.STRING: "varchar(255) COLLATE utf8mb4_bin", types.BINARY: "varbinary(255)"}
"""Types that need a length to be a key; a text key uses a binary collation."""

NESTED = "json"

_BITS = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}
_TEXTS = {"char", "varchar", "tinytext", "text", "mediumtext", "longtext"}
_BYTES = {"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"}
_PARSED = {"enum", "set", "uuid", "inet4", "inet6"}
_TAKES = {
    types.DATE: {"date", "datetime", "timestamp"},
    types.TIMESTAMP: {"datetime", "timestamp"},
    types.TIMESTAMP_NTZ: {"datetime", "timestamp"},
}
_FULL = re.compile(r"errno: (28|135)\b|No space left|No more room", re.IGNORECASE)
_LOCK_SECONDS = 300
_LONG = (PrimitiveType(types.STRING), PrimitiveType(types.BINARY))
_PREFIX, _MOST_KEYS = 191, 3
_LONGEST_WAIT = 31_536_000

_TABLE = """
SELECT t.table_type, e.transactions FROM information_schema.tables t
LEFT JOIN information_schema.engines e ON e.engine = t.engine WHERE t.table_schema = %s AND t.table_name = %s
"""
_COLUMNS = """
SELECT column_name, column_type, LOWER(data_type), numeric_precision, numeric_scale, character_maximum_length,
  character_octet_length, datetime_precision, character_set_name, collation_name,
  is_nullable = 'NO' AND column_default IS NULL AND extra NOT LIKE '%%auto_increment%%'
  AND extra NOT LIKE '%%GENERATED%%'
FROM information_schema.columns WHERE table_schema = %s AND table_name = %s ORDER BY ordinal_position
"""
_STAGED = """
SELECT table_name FROM information_schema.tables
WHERE table_schema = %s AND table_type = 'BASE TABLE' AND LEFT(table_name, CHAR_LENGTH(%s)) = %s
"""


class MySql(Database):
    """A connection by PyMySQL."""

    called, quote = "The database", "`"
    creates_inside = False

    def rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """The rows of a query."""
        with self._told(), self.connection.cursor() as cursor:
            cursor.execute(sql, values or None)
            return list(cursor.fetchall())

    def execute(self, sql: str, *values: Any) -> int:
        """Execute a statement; return the number of changed rows."""
        with self._told(), self.connection.cursor() as cursor:
            return int(cursor.execute(sql, values or None))

    def prepare(self) -> None:
        """Configure the session. Without strict mode, MySQL truncates values that do not fit."""
        self.execute("SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', time_zone = '+00:00'")
        self.execute(f"SET SESSION wait_timeout = {_LONGEST_WAIT}, innodb_lock_wait_timeout = {_LOCK_SECONDS}")

    def interrupt(self) -> None:
        """Cancel the running statement, over another connection."""
        asked = replace(self.asked, deadline=monotonic() + 20)
        with suppress(StepFailed), mysql.signed_in(asked) as other, other.cursor() as cursor:
            cursor.execute(f"KILL QUERY {int(self.connection.thread_id())}")

    @contextmanager
    def transaction(self, target: TargetTable) -> Iterator[None]:
        """A transaction that holds the lock of the target."""
        lock = _lock(target)
        if self.rows("SELECT GET_LOCK(%s, %s)", lock, _LOCK_SECONDS)[0][0] != 1:
            told = f"Timed out waiting for another delivery to {target}; try again later"
            raise StepFailed("BUSY_THERE", told, passing=True)
        try:
            with self._told():
                self.connection.begin()
                try:
                    yield
                except BaseException:
                    self._roll_back()
                    raise
                self.connection.commit()
        finally:
            with suppress(StepFailed):
                self.rows("SELECT RELEASE_LOCK(%s)", lock)

    def _roll_back(self) -> None:
        with suppress(Exception):
            self.connection.rollback()

    def hold(self, place: TargetTable) -> bool:
        """Lock a name."""
        return bool(self.rows("SELECT GET_LOCK(%s, 0)", _lock(place))[0][0] == 1)

    def release(self, place: TargetTable) -> None:
        """Release the lock of a name."""
        self.rows("SELECT RELEASE_LOCK(%s)", _lock(place))

    def staged(self, schema: str) -> list[str]:
        """The names of all staging tables."""
        return [str(name) for (name,) in self.rows(_STAGED, schema, STAGING, STAGING)]

    def look(self, target: TargetTable) -> list[TargetColumn] | None:
        """The columns of the target."""
        if not self.rows("SELECT 1 FROM information_schema.schemata WHERE schema_name = %s", target.schema):
            raise StepFailed(
                GONE, f"There is no database {target.schema} for this user; create it, or grant access to it"
            )
        results = self.rows(_TABLE, target.schema, target.table)
        if not results:
            return None
        sort, transactions = results[0]
        if sort != "BASE TABLE":
            raise StepFailed("NOT_A_TABLE", f"{target} is not a base table, but perhaps a view; deliver to a table")
        if transactions != "YES":
            told = (
                f"{target} uses a storage engine without transactions, so a failed delivery would leave partial rows; "
            )
            raise StepFailed("NOT_A_TABLE", f"{told}convert it with ALTER TABLE … ENGINE = InnoDB")
        names = ("type", "digits", "behind", "length", "bytes", "fraction", "characters", "collation")
        return [
            TargetColumn(name, said, bool(needs), dict(zip(names, facts, strict=True)))
            for name, said, *facts, needs in self.rows(_COLUMNS, target.schema, target.table)
        ]

    def type_of(self, given: Type, *, is_key: bool = False, staged: bool = False) -> str:
        """The type of a new column."""
        match given:
            case PrimitiveType() if is_key and given.name in KEYS and not staged:
                return KEYS[given.name]
            case PrimitiveType():
                return TYPES[given.name]
            case Decimal():
                return f"decimal({given.precision}, {given.scale})"
        return "longtext" if staged else NESTED

    def cast(self, value: str, kind: str) -> str:
        """Cast a staged value; a text is valid as JSON without a cast."""
        return value

    def create(self, place: TargetTable, columns: Sequence[str], *, staged: bool = False) -> None:
        """Create a table; this commits an open transaction."""
        lines = f"CREATE TABLE {self.name(place)} ({', '.join(columns)}) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4"
        self.execute(f"{lines} COLLATE utf8mb4_bin" if staged else lines)

    def ready(self, staging: TargetTable, keys: Sequence[tuple[str, Type]]) -> None:
        """Index the keys of the staging table, as the target may have no index on them."""
        if keys:
            columns = [f"{name}({_PREFIX})" if kind in _LONG else name for name, kind in keys[:_MOST_KEYS]]
            self.execute(f"ALTER TABLE {self.name(staging)} ADD INDEX ({', '.join(columns)})")

    def update(self, target: str, staging: str, values: Sequence[tuple[str, str]], same: str) -> str:
        """The UPDATE statement."""
        given = ", ".join(f"t.{name} = {value}" for name, value in values)
        return f"UPDATE {target} AS t JOIN {staging} AS s ON {same} SET {given}"

    # What a column takes

    def fit(self, given: Type, there: TargetColumn, value: str) -> ColumnCast:
        """The cast of staged values to a target column."""
        name, facts = str(there.facts["type"]), there.facts
        if name in _TEXTS and given != PrimitiveType(types.BINARY):
            # Two texts are the same if the target takes them for the same, as its unique indexes do.
            compared = f"CONVERT({value} USING {facts['characters']}) COLLATE {facts['collation']}"
            return ColumnCast(value, _text(name, facts, value), compared)
        if numbers.is_number(given):
            return ColumnCast(value, _number(given, name, there, value))
        if given == PrimitiveType(types.BOOLEAN) and name in {*_BITS, "bit"}:
            return ColumnCast(value)
        if name in _BYTES and given == PrimitiveType(types.BINARY):
            length, most = f"LENGTH({value})", int(facts["bytes"])
            return ColumnCast(value, f"{length} = {most}" if name == "binary" else length_condition(length, most))
        if name == "json" and (not isinstance(given, PrimitiveType) or given == PrimitiveType(types.STRING)):
            return ColumnCast(value, f"JSON_VALID({value})" if isinstance(given, PrimitiveType) else "")
        if name in _PARSED and given == PrimitiveType(types.STRING):
            return ColumnCast(value)
        if isinstance(given, PrimitiveType) and name in _TAKES.get(given.name, set()):
            return ColumnCast(value, _time(given, name, facts, value))
        raise IncompatibleColumn

    # What the server says

    @contextmanager
    def _told(self) -> Iterator[None]:
        import pymysql  # noqa: PLC0415 - only a worker that delivers needs it

        try:
            yield
        except pymysql.MySQLError as error:
            raise self._failure(error) from None
        except OSError as error:
            raise self.failed(
                CUT_OFF, "Lost the connection to the database; check that it is running", str(error), passing=True
            ) from None

    def _failure(self, error: Any) -> StepFailed:
        number = error.args[0] if error.args and isinstance(error.args[0], int) else 0
        said = str(error.args[1]) if len(error.args) > 1 else str(error)
        for known, code, words, passing in _SAYINGS:
            if number in known or (code == "FULL_THERE" and _FULL.search(said)):
                return self.failed(code, words, said, passing=passing)
        return self.failed("FAILED_THERE", "The database rejected the delivery", said, passing=True)


_SAYINGS = (
    (
        {1044, 1142, 1143, 1227, 1370},
        "DENIED_THERE",
        "The user lacks a permission for this; grant it in the database",
        False,
    ),
    ({1062}, TAKEN, "A row with the same unique key already exists", False),
    ({1050}, TAKEN, "A table of that name already exists", True),
    ({1146, 1051}, GONE, "A table does not exist", True),
    ({1049}, GONE, "A database does not exist; create it", False),
    (
        {1048, 1364, 1451, 1452, 1644, 3819, 4025, 3105, 1906},
        "REFUSED_THERE",
        "A constraint of the table rejected a row, so nothing was delivered",
        False,
    ),
    (
        {1264, 1265, 1292, 1366, 1367, 1406, 1690, 1977, 3140, 3854, 4038},
        "VALUE",
        "A value does not fit its column, so nothing was delivered; change it in a query pipeline",
        False,
    ),
    (
        {1021, 1114, 1030, 3},
        "FULL_THERE",
        "The database has no space left, so nothing was delivered; free space, and run the pipeline again",
        True,
    ),
    ({1040, 1041, 1203, 1226}, "BUSY_THERE", "The database is overloaded; try again later", True),
    (
        {1205, 1213},
        "BUSY_THERE",
        "Timed out waiting for a lock on the table; try again later",
        True,
    ),
    ({1317, 1969, 3024}, "TIMEOUT", "The statement timed out or was cancelled; nothing was delivered", True),
    ({1290, 1792, 1836}, "DENIED_THERE", "The database is read-only; check the host", False),
    (
        {0, 1053, 1158, 1159, 1160, 1161, 1927, 2003, 2006, 2013, 2014, 2055},
        CUT_OFF,
        "Lost the connection to the database; check that it is running",
        True,
    ),
)


def _lock(place: TargetTable) -> str:
    """The name of the lock; lock names are global to the server and short."""
    return f"headgate:{lock_number(place) & (2**64 - 1):016x}"


def _text(name: str, facts: dict[str, Any], value: str) -> str:
    if name in {"char", "varchar"}:
        # A padded text would lose the spaces at its end.
        whole = f"CHAR_LENGTH(RTRIM({value})) = CHAR_LENGTH({value})" if name == "char" else ""
        return all_conditions(length_condition(f"CHAR_LENGTH({value})", int(facts["length"])), whole)
    return length_condition(f"LENGTH({value})", int(facts["bytes"])) if name != "longtext" else ""


def _number(given: Type, name: str, there: TargetColumn, value: str) -> str:
    facts = there.facts
    if name in _BITS:
        is_unsigned = "unsigned" in there.said.lower()
        low = 0 if is_unsigned else -(2 ** (_BITS[name] - 1))
        high = 2 ** _BITS[name] - 1 if is_unsigned else 2 ** (_BITS[name] - 1) - 1
        return numbers.in_whole(given, value, low, high, f"TRUNCATE({value}, 0)")
    if name == "decimal":
        digits, behind = int(facts["digits"]), int(facts["behind"])
        cast = f"CAST({value} AS DECIMAL({digits}, {behind}))"
        sign = f"{value} >= 0" if "unsigned" in there.said.lower() else ""
        return all_conditions(numbers.in_decimal(given, value, digits, behind, cast), sign)
    if name in {"float", "double"}:
        result = numbers.in_floating(given, value, "single" if name == "float" else "double")
        if result is not None:
            return result
        if given == PrimitiveType(types.FLOAT) or (given == PrimitiveType(types.DOUBLE) and name == "double"):
            return ""
        if isinstance(given, Decimal) and name == "double":
            return f"CAST(CAST({value} AS DOUBLE) AS DECIMAL({given.precision}, {given.scale})) = {value}"
    raise IncompatibleColumn


def _time(given: PrimitiveType, name: str, facts: dict[str, Any], value: str) -> str:
    within = f"{value} > '1970-01-01 00:00:00' AND {value} < '2038-01-19 03:14:07'" if name == "timestamp" else ""
    fraction = int(facts["fraction"] or 0)
    if given.name == types.DATE or fraction >= 6:
        return within
    return all_conditions(f"MICROSECOND({value}) % {10 ** (6 - fraction)} = 0", within)
