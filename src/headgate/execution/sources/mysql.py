"""MySQL and MariaDB: their columns, their types, and what their driver is told."""

import re
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from headgate.contracts.external_systems import driver_properties
from headgate.execution.sources.columns import Column, Dialect
from headgate.execution.sources.postgresql import authority
from headgate.execution.steps.context import StepFailed

_WHOLE = {"tinyint", "smallint", "mediumint", "int", "integer", "bigint"}
_TEXT = {"char", "varchar", "tinytext", "text", "mediumtext", "longtext"}
_ORDERS = {
    **dict.fromkeys(_WHOLE, "bigint"),
    **dict.fromkeys(_TEXT, "string"),
    **dict.fromkeys(("decimal", "numeric"), "decimal"),
    **dict.fromkeys(("float", "double", "real"), "double"),
    **dict.fromkeys(("datetime", "timestamp"), "timestamp"),
    "date": "date",
}
_BYTES = {"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"}
_SHAPES = {
    *("geometry", "point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon"),
    *("geometrycollection", "geomcollection"),
}
_DATABASE = re.compile(r"[^?&/\\#%\s]{1,64}")
MAX_DIGITS = 38


def quoted(name: str) -> str:
    """A name."""
    return "`" + name.replace("`", "``") + "`"


def text_literal(text: str) -> str:
    """A text, whatever the server takes backslashes and quotes for."""
    return f"CONVERT(X'{text.encode().hex()}' USING utf8mb4)" if text else "''"


def columns(schema: str, table: str) -> str:
    """The question for a table's columns: names, types and digits."""
    return (
        "SELECT column_name AS name, LOWER(data_type) AS type, LOWER(column_type) AS said, "
        "CAST(COALESCE(numeric_precision, 0) AS SIGNED) AS digits, "
        "CAST(COALESCE(numeric_scale, 0) AS SIGNED) AS behind "
        f"FROM information_schema.columns WHERE table_schema = {text_literal(schema)} "
        f"AND table_name = {text_literal(table)} ORDER BY ordinal_position"
    )


def column(name: str, type_: str, said: str, digits: int, behind: int) -> Column:
    """A column, by a row of that answer."""
    own = quoted(name)
    if type_ in {"decimal", "numeric"} and digits > MAX_DIGITS:
        return Column(name, said, f"CAST({own} AS CHAR)", "decimal", decimal=(MAX_DIGITS, min(behind, MAX_DIGITS)))
    if type_ in _ORDERS:
        return Column(name, said, own, _ORDERS[type_])
    if type_ in _BYTES or said == "bit(1)":
        return Column(name, said, own)
    if type_ == "year":
        return Column(name, said, f"CAST({own} AS SIGNED)", "bigint")
    if type_ == "bit":
        return Column(name, said, f"CAST({own} AS UNSIGNED)")
    return Column(name, said, f"ST_AsText({own})" if type_ in _SHAPES else f"CAST({own} AS CHAR)")


def literal(own: Column, value: Any) -> str | None:
    """A value to compare a column with. The session's time zone is UTC."""
    match own.order, value:
        case "timestamp" | "date", datetime():
            moment = value if value.tzinfo is None else value.astimezone(UTC)
            text = moment.replace(tzinfo=None).isoformat(sep=" ", timespec="microseconds")
            return f"CAST({text_literal(text)} AS DATETIME(6))"
        case "timestamp" | "date", date():
            return f"CAST({text_literal(value.isoformat())} AS DATE)"
        case "bigint", int():
            return str(int(value))
        case "bigint" | "decimal", int() | Decimal() | float():
            number = Decimal(value) if not isinstance(value, float) else Decimal(repr(value))
            return f"CAST({text_literal(format(number, 'f'))} AS DECIMAL(65, 20))"
        case "double", int() | Decimal() | float():
            return f"({text_literal(str(value))} + 0e0)"
        case "string", str():
            return text_literal(value)
    return None


def options(config: dict[str, Any], folder: str) -> dict[str, str]:
    """The driver, its address, and what it is told: members' own from a list, and then ours."""
    if not _DATABASE.fullmatch(config["database"]):
        told = f"The driver cannot connect to a database with the name {config['database']!r}; rename the database"
        raise StepFailed("NO_SUCH_DATABASE", told)
    host = f"[{config['host']}]" if ":" in config["host"] else config["host"]
    values = {"tinyInt1isBit": "false"} | driver_properties.checked(
        config.get("properties") or {}, driver_properties.MYSQL
    )
    values |= {
        "driver": "org.mariadb.jdbc.Driver",
        # By this scheme, Spark knows the types of MySQL.
        "url": f"jdbc:mysql://{host}:{config['port']}/{config['database']}?permitMysqlScheme",
        "connectionTimeZone": "UTC",
        "forceConnectionTimeZoneToSession": "true",
        # What a hostile server could ask for: a file of this machine, or another server.
        "allowLocalInfile": "false",
        "permitRedirect": "false",
        "tcpKeepAlive": "true",
        "connectTimeout": values.get("connectTimeout", "20000"),
    }
    match config.get("tls", "verify"):
        case "off":
            # Without TLS the password is no safer by asking for less.
            return values | {"sslMode": "disable", "allowPublicKeyRetrieval": "true"}
        case "require":
            return values | {"sslMode": "trust"}
    if config.get("tls_ca"):
        return values | {"sslMode": "verify-full", "serverSslCert": authority(config["tls_ca"], folder)}
    return values | {"sslMode": "verify-full"}


DIALECT = Dialect(
    "The database", None, quoted, columns, column, options, literal, lambda expression: f"CAST({expression} AS CHAR)"
)
