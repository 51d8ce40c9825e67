"""PostgreSQL: its columns, its types, and what its driver is told."""

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import quote

from headgate.contracts.external_systems import driver_properties
from headgate.execution.sources.columns import Column, Dialect

WIDE = (38, 18)
"""The digits of numbers that are declared without."""

_PLAIN = {
    "int2": "bigint",
    "int4": "bigint",
    "int8": "bigint",
    "float4": "double",
    "float8": "double",
    "bool": None,
    "text": "string",
    "varchar": "string",
    "date": "date",
    "timestamp": "timestamp_ntz",
    "timestamptz": "timestamp",
    "bytea": None,
}
_ELEMENTS = {
    "int2": "int",
    "int4": "int",
    "int8": "bigint",
    "float4": "float",
    "float8": "double",
    "bool": "boolean",
    "date": "date",
    "timestamptz": "timestamp",
}
"""What the elements of lists are; all others are texts."""


def quoted(name: str) -> str:
    """A name."""
    return '"' + name.replace('"', '""') + '"'


def text_literal(text: str) -> str:
    """A text, whatever the server takes backslashes for."""
    return "E'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


def columns(schema: str, table: str) -> str:
    """The question for a table's columns: names, types, digits and dimensions; a domain is what it stands for."""
    return (
        "SELECT a.attname::text AS name, b.typname::text AS type, e.typname::text AS element, "
        "CASE WHEN t.typtype = 'd' THEN t.typtypmod ELSE a.atttypmod END AS digits, "
        "GREATEST(a.attndims, 1)::int AS dimensions, format_type(a.atttypid, a.atttypmod)::text AS said "
        "FROM pg_catalog.pg_attribute a "
        "JOIN pg_catalog.pg_class c ON c.oid = a.attrelid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace "
        "JOIN pg_catalog.pg_type t ON t.oid = a.atttypid "
        "JOIN pg_catalog.pg_type b ON b.oid = COALESCE(NULLIF(t.typbasetype, 0), t.oid) "
        "LEFT JOIN pg_catalog.pg_type e ON e.oid = b.typelem AND b.typcategory = 'A' "
        f"WHERE n.nspname = {text_literal(schema)} AND c.relname = {text_literal(table)} "
        "AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum"
    )


def column(name: str, type_: str, element: str | None, digits: int, dimensions: int, said: str) -> Column:
    """A column, by a row of that answer."""
    own = quoted(name)
    if element is not None:
        inner = _ELEMENTS.get(element, "string")
        return Column(name, said, f"to_json({own})::text", json="array<" * dimensions + inner + ">" * dimensions)
    if type_ in _PLAIN:
        return Column(name, said, own, _PLAIN[type_])
    if type_ == "numeric":
        precision, scale = ((digits - 4) >> 16) & 0xFFFF, (((digits - 4) & 0x7FF) ^ 1024) - 1024
        if digits >= 4 and precision <= 38 and 0 <= scale <= precision:
            return Column(name, said, own, "decimal")
        return Column(name, said, f"{own}::text", "decimal", decimal=WIDE)
    if type_ == "oid":
        return Column(name, said, f"{own}::bigint", "bigint")
    return Column(name, said, f"{own}::text", "string" if type_ in {"bpchar", "name", "uuid", "citext"} else None)


def literal(own: Column, value: Any) -> str | None:
    """A value to compare a column with."""
    match own.order, value:
        case "timestamp" | "timestamp_ntz" | "date", datetime():
            moment = value if value.tzinfo is None else value.astimezone(UTC)
            if own.order == "timestamp":
                return f"{text_literal(moment.replace(tzinfo=None).isoformat() + '+00')}::timestamptz"
            return f"{text_literal(moment.replace(tzinfo=None).isoformat())}::timestamp"
        case "timestamp" | "timestamp_ntz" | "date", date():
            return f"{text_literal(value.isoformat())}::date"
        case "bigint", int():
            # Bare: for a number of another type, the database would cast the column row by row, and use no index.
            return str(int(value))
        case "bigint" | "decimal" | "double", int() | Decimal() | float():
            return f"{text_literal(format(value, 'f') if isinstance(value, Decimal) else str(value))}::numeric"
        case "string", str():
            return text_literal(value)
    return None


def options(config: dict[str, Any], folder: str) -> dict[str, str]:
    """The driver, its address, and what it is told: members' own from a list, and then ours."""
    host = f"[{config['host']}]" if ":" in config["host"] else config["host"]
    values = dict(driver_properties.checked(config.get("properties") or {}, driver_properties.POSTGRESQL))
    values |= {
        "driver": "org.postgresql.Driver",
        "url": f"jdbc:postgresql://{host}:{config['port']}/{quote(config['database'], safe='')}",
        "ApplicationName": values.get("ApplicationName", "headgate"),
        "gssEncMode": "disable",
        "tcpKeepAlive": "true",
        "connectTimeout": values.get("connectTimeout", "20"),
    }
    match config.get("tls", "verify"):
        case "off":
            return values | {"sslmode": "disable"}
        case "require":
            return values | {"sslmode": "require", "sslfactory": "org.postgresql.ssl.NonValidatingFactory"}
    if config.get("tls_ca"):
        return values | {"sslmode": "verify-full", "sslrootcert": authority(config["tls_ca"], folder)}
    return values | {"sslmode": "verify-full", "sslfactory": "org.postgresql.ssl.DefaultJavaSSLFactory"}


def authority(certificate: str, folder: str) -> str:
    """The file of the authority to trust."""
    file = Path(folder, "authority.pem")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(certificate, encoding="ascii")
    return str(file)


DIALECT = Dialect(
    "PostgreSQL", "public", quoted, columns, column, options, literal, lambda expression: f"({expression})::text"
)
