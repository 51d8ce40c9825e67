"""Read database tables through their JDBC drivers in Spark, in parallel partitions and incrementally. SQL contains
user-defined names only quoted, and values only as quoted literals or integers.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headgate.execution.sources import cursor, mysql, partitions, postgresql, types
from headgate.execution.sources.columns import Column, Dialect
from headgate.execution.sources.readers import FAULT, Read, ReadOptions
from headgate.execution.sources.rest.failures import redact
from headgate.execution.spark.error_codes import SOURCE_DOWN
from headgate.execution.spark.failures import Cause
from headgate.execution.spark.step_session import Step
from headgate.execution.steps.context import StepFailed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FETCH_SIZE = 10_000
_DIALECTS: dict[str, Dialect] = {"postgresql": postgresql.DIALECT, "mysql": mysql.DIALECT}
_PART = "part"
_DRIVER = re.compile(r"(?:org\.postgresql\.util\.PSQLException|java\.sql\.SQL\w*Exception): ([^\n]+)")
_CLASSES = ("org.postgresql.util.PSQLException", "java.sql.SQLException")
_NET = ("java.net.", "java.nio.", "javax.net.ssl.")
_NOT_SAFE = "The TLS connection failed; check `tls`, and that the certificate is valid for this host"
_SAYINGS: tuple[tuple[str, str, str, bool], ...] = (
    (r"certificate|PKIX|hostname ?verif", "TLS", _NOT_SAFE, False),
    (
        r"password authentication|access denied|no pg_hba|role .* does not exist|authentication",
        "WRONG_CREDENTIALS",
        "The database rejected the login; check the connection's user and password",
        False,
    ),
    (
        r"(unknown database|database .* does not exist)",
        "NO_SUCH_DATABASE",
        "There is no such database; check its name",
        False,
    ),
    (
        r"permission denied|command denied",
        "DENIED_THERE",
        "The user has no permission to read this table; grant it in the database",
        False,
    ),
    (r"\bssl\b|\btls\b", "TLS", _NOT_SAFE, False),
    (
        r"connection attempt failed|refused|could not connect|fail to connect|reset|broke|closed|timed? ?out|"
        r"terminating connection|starting up|shutting down|too many (clients|connections)|SOCKS|I/O error|gone away",
        SOURCE_DOWN,
        "The database does not answer, or closed the connection",
        True,
    ),
)


@dataclass(frozen=True)
class Database:
    """A database connection for Spark's JDBC reader."""

    dialect: Dialect
    options: dict[str, str]
    step: Step

    def query(self, sql: str) -> "DataFrame":
        """The result of a metadata query."""
        return self.step.spark.read.format("jdbc").options(**self.options).option("query", sql).load()

    def rows(self, sql: str, predicates: list[str]) -> "DataFrame":
        """The rows of a query, with one task per predicate."""
        table = f"({sql}) stream"
        if not predicates:
            return self.step.spark.read.format("jdbc").options(**self.options).option("dbtable", table).load()
        properties = {name: value for name, value in self.options.items() if name != "url"}
        return self.step.spark.read.jdbc(self.options["url"], table, predicates=predicates, properties=properties)


def read(asked: ReadOptions, step: Step) -> Read:
    """The rows of a table, or those since the last run."""
    dialect = _DIALECTS[asked.kind]
    step.explains(_teller(dialect, asked))
    database = Database(dialect, _options(dialect, asked), step)
    schema, table = _named(asked, dialect)
    columns = [dialect.column(*row) for row in database.query(dialect.columns(schema, table)).collect()]
    if not columns:
        told = f"There is no table {schema}.{table} that the connection's user can see; check the stream's name"
        raise StepFailed("NO_SUCH_STREAM", told)
    place = f"{dialect.quoted(schema)}.{dialect.quoted(table)}"
    where = _since(dialect, columns, asked)
    predicates = _predicates(database, place, where, columns, asked)
    chosen = [f"{column.select} AS {dialect.quoted(f'c{number}')}" for number, column in enumerate(columns)]
    if predicates and asked.stream.in_parts:
        own = _column(columns, asked.stream.in_parts.column, asked)
        chosen.append(f"{dialect.quoted(own.name)} AS {dialect.quoted(_PART)}")
    step.log(f"Reading {schema}.{table} with {max(len(predicates), 1)} connections")
    rows = database.rows(f"SELECT {', '.join(chosen)} FROM {place}{where}", predicates)
    return Read(_converted(rows, columns), since=True)


def _named(asked: ReadOptions, dialect: Dialect) -> tuple[str, str]:
    schema, dot, table = asked.stream.name.partition(".")
    return (schema, table) if dot else (dialect.home or asked.config["database"], asked.stream.name)


def _options(dialect: Dialect, asked: ReadOptions) -> dict[str, str]:
    values = dialect.options(asked.config, asked.folder)
    if password := asked.secrets.get("password"):
        values["password"] = password
    values["fetchsize"] = str(FETCH_SIZE)
    return values | {"user": asked.config["user"]}


def _column(columns: list[Column], wanted: str, asked: ReadOptions) -> Column:
    alike = [column for column in columns if column.name == wanted] or [
        column for column in columns if column.name.lower() == wanted.lower()
    ]
    if alike:
        return alike[0]
    there = ", ".join(column.name for column in columns[:20])
    raise StepFailed("NO_SUCH_COLUMN", f"{asked.stream.name} has no column {wanted!r}; it has {there}")


def _since(dialect: Dialect, columns: list[Column], asked: ReadOptions) -> str:
    """The filter for new rows."""
    if asked.stream.read != "incremental":
        return ""
    if asked.stream.cursor is None:
        told = (
            f"{asked.stream.name}: an incremental load from a database requires a cursor, a column whose values "
            "only increase"
        )
        raise StepFailed("NO_CURSOR", told)
    own = _column(columns, asked.stream.cursor, asked)
    if asked.since is None:
        return ""
    value = dialect.literal(own, cursor.begin(asked.since))
    if value is None:
        told = f"The cursor column {own.name} was {asked.since.type} and is now {own.type}; run a full refresh"
        raise StepFailed("CURSOR_CHANGED", told)
    return f" WHERE {dialect.quoted(own.name)} >= {value}"


def _predicates(database: Database, place: str, where: str, columns: list[Column], asked: ReadOptions) -> list[str]:
    wanted = asked.stream.in_parts
    if wanted is None or wanted.parts < 2:
        return []
    dialect, own = database.dialect, _column(columns, wanted.column, asked)
    if own.order in (None, "string"):
        told = f"in_parts: {own.name} is {own.type}; use a column of numbers, dates or timestamps"
        raise StepFailed("NOT_IN_PARTS", told)
    name = dialect.quoted(own.name)
    bounds = [dialect.text(f"{which}({name})") for which in ("MIN", "MAX")]
    asked_for = ", ".join(f"{value} AS {dialect.quoted(f'b{place}')}" for place, value in enumerate(bounds))
    low, high = database.query(f"SELECT {asked_for} FROM {place}{where}").collect()[0]
    limits = partitions.limits(low, high, own.order or "", wanted.parts)
    literals = [dialect.literal(own, limit) or "" for limit in limits]
    return partitions.conditions(dialect.quoted(_PART), literals)


def _converted(rows: "DataFrame", columns: list[Column]) -> "DataFrame":
    """The columns by their names, of the types that were meant; a value that does not fit is a fault of its row."""
    from pyspark.sql import functions as f
    from pyspark.sql import types as t

    kinds = dict(zip(rows.columns, (field.dataType for field in rows.schema.fields), strict=True))
    values, faults = [], []
    for number, column in enumerate(columns):
        given: Any = f.col(f"c{number}")
        if column.decimal is not None:
            cast = types.fit(given, t.StringType(), t.DecimalType(*column.decimal))
        elif column.json is not None:
            value = f.from_json(given, column.json)
            cast = types.TypeCast(value, value.isNotNull())
        else:
            cast = types.fit(given, kinds[f"c{number}"], types.stored(kinds[f"c{number}"]))
        values.append(cast.value.alias(column.name))
        if cast.ok is not None:
            bad = given.isNotNull() & ~f.coalesce(cast.ok, f.lit(col=False))
            told = f.concat(f.lit(f"{column.name}: "), f.substring(given, 1, 60), f.lit(f" does not fit {column.type}"))
            faults.append(f.when(bad, told))
    fault = [f.nullif(f.concat_ws("; ", *faults), f.lit("")).alias(FAULT)] if faults else []
    return rows.select(*values, *fault)


def _teller(dialect: Dialect, asked: ReadOptions) -> Callable[[Cause], StepFailed | None]:
    """Map errors of the database driver to StepFailed."""
    password = asked.secrets.get("password") or ""

    def tell(cause: Cause) -> StepFailed | None:
        if (cause.classes[:1] and cause.classes[0].startswith(_NET)) or any(
            value in cause.classes for value in _CLASSES
        ):
            said = cause.message
        elif match := _DRIVER.search(cause.message):
            said = match[1]
        else:
            return None
        said = redact(said.partition("\n")[0], [password], "…")[:300]
        for pattern, code, words, passing in _SAYINGS:
            if re.search(pattern, said, re.IGNORECASE):
                return StepFailed(code, f"{words}. Database message: {said}", passing=passing)
        return StepFailed("FAILED_THERE", f"{dialect.called} message: {said}", passing=True)

    return tell
