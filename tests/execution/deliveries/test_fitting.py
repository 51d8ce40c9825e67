"""Which values each type of a target takes: whole, or not at all."""

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.execution.deliveries.support import Plan, asked, mysql, postgresql
from tests.support.mariadb import MariaDb

INT, LONG, SINGLE, DOUBLE = pa.int32(), pa.int64(), pa.float32(), pa.float64()
TEXT, BYTES, TRUTH, DAY = pa.string(), pa.binary(), pa.bool_(), pa.date32()
MOMENT, WALL = pa.timestamp("us", "UTC"), pa.timestamp("us")
MONEY = pa.decimal128(20, 4)
PARTS = pa.struct([("a", pa.int64())])
NOON = dt.datetime(2026, 1, 2, 12, tzinfo=dt.UTC)
FINE = NOON.replace(microsecond=123456)
LONG_AGO = NOON.replace(year=1969)
OK, VALUE, TYPE = "", "VALUE", "TYPE"

Case = tuple[pa.DataType, Any, str, str]

COMMON: list[Case] = [
    (LONG, 32767, "smallint", OK),
    (LONG, 32768, "smallint", VALUE),
    (LONG, 2**31, "int", VALUE),
    (INT, 2**31 - 1, "int", OK),
    (LONG, 2**53, "double precision", OK),
    (LONG, 2**53 + 1, "double precision", VALUE),
    (LONG, 99, "decimal(4, 2)", OK),
    (LONG, 100, "decimal(4, 2)", VALUE),
    (LONG, 12, "varchar(2)", OK),
    (LONG, 123, "varchar(2)", VALUE),
    (MONEY, Decimal("1.5000"), "decimal(10, 2)", OK),
    (MONEY, Decimal("1.5050"), "decimal(10, 2)", VALUE),
    (MONEY, Decimal("-123456789.1"), "decimal(10, 2)", VALUE),
    (MONEY, Decimal("7.0000"), "int", OK),
    (MONEY, Decimal("7.5000"), "int", VALUE),
    (MONEY, Decimal("0.2500"), "double precision", OK),
    (DOUBLE, 0.5, "decimal(10, 2)", OK),
    (DOUBLE, 0.1, "decimal(10, 2)", OK),
    (DOUBLE, 0.125, "decimal(10, 2)", VALUE),
    (DOUBLE, 7.0, "bigint", OK),
    (DOUBLE, 7.5, "bigint", VALUE),
    (DOUBLE, 0.1, "float", OK),
    (SINGLE, 0.25, "double precision", OK),
    (TEXT, "größe", "varchar(5)", OK),
    (TEXT, "größen", "varchar(5)", VALUE),
    (TEXT, "ab", "char(3)", OK),
    (TEXT, "ab ", "char(3)", VALUE),
    (TEXT, "12", "int", TYPE),
    (TEXT, "2026-01-01", "date", TYPE),
    (TRUTH, True, "boolean", OK),
    (TRUTH, True, "date", TYPE),
    (DAY, dt.date(2026, 1, 2), "date", OK),
    (DAY, dt.date(2026, 1, 2), "timestamp", OK),
    (DAY, dt.date(2026, 1, 2), "int", TYPE),
    (MOMENT, NOON, "timestamp", OK),
    (MOMENT, FINE, "timestamp(6)", OK),
    (MOMENT, FINE, "timestamp(3)", VALUE),
    (MOMENT, NOON, "timestamp(0)", OK),
    (MOMENT, NOON, "date", TYPE),
    (WALL, FINE.replace(tzinfo=None), "timestamp(6)", OK),
    (BYTES, b"\x00\xff", "int", TYPE),
    (PARTS, {"a": 1}, "text", OK),
    (PARTS, {"a": 1}, "json", OK),
    (PARTS, {"a": 1}, "int", TYPE),
]
POSTGRESQL: list[Case] = [
    (DOUBLE, 0.1, "real", TYPE),
    (LONG, 2**24 + 1, "real", VALUE),
    (DOUBLE, 0.1, "numeric", OK),
    (DOUBLE, 0.1 + 0.2, "numeric", VALUE),
    (DOUBLE, float("inf"), "numeric(10, 2)", VALUE),
    (DOUBLE, float("nan"), "bigint", VALUE),
    (DOUBLE, float("inf"), "double precision", OK),
    (SINGLE, 0.1, "numeric(5, 1)", OK),
    (MONEY, Decimal("1.5"), "numeric", OK),
    (TEXT, "x" * 100_000, "text", OK),
    (TEXT, "6f2c0b1e-8f0e-4d2c-9d3a-0a1b2c3d4e5f", "uuid", OK),
    (TEXT, "not one", "uuid", VALUE),
    (TEXT, '{"a": [1]}', "jsonb", OK),
    (TEXT, "{", "jsonb", VALUE),
    (TEXT, "10.0.0.0/8", "cidr", OK),
    (TEXT, "north", '"out".side', OK),
    (TEXT, "east", '"out".side', VALUE),
    (TEXT, "ab", '"out".short', OK),
    (TEXT, "x", "text[]", TYPE),
    (BYTES, b"\x00\xff", "bytea", OK),
    (BYTES, b"x", "text", TYPE),
    (MOMENT, FINE, "timestamptz(3)", VALUE),
    (WALL, FINE.replace(tzinfo=None), "timestamptz", OK),
    (TEXT, "a", 'varchar(3) COLLATE "C"', OK),
]
MYSQL: list[Case] = [
    (LONG, -1, "int unsigned", VALUE),
    (LONG, 2**32 - 1, "int unsigned", OK),
    (LONG, 2**23, "mediumint", VALUE),
    (MONEY, Decimal("-1"), "decimal(30, 4) unsigned", VALUE),
    (TEXT, "x" * 256, "tinytext", VALUE),
    (TEXT, "ü" * 127, "tinytext", OK),
    (TEXT, '{"a": [1]}', "json", OK),
    (TEXT, "north", "enum('north', 'south')", OK),
    (TEXT, "east", "enum('north', 'south')", VALUE),
    (TRUTH, True, "bit", OK),
    (BYTES, b"\x00\xff", "varbinary(2)", OK),
    (BYTES, b"\x00\xff\x01", "varbinary(2)", VALUE),
    (BYTES, b"\x00\xff", "binary(3)", VALUE),
    (BYTES, b"\x00\xff\x00", "binary(3)", OK),
    (MOMENT, LONG_AGO, "timestamp NULL", VALUE),
    (MOMENT, LONG_AGO, "datetime", OK),
    (MOMENT, FINE, "datetime", VALUE),
]


def _check(plan: Plan, case: Case, said: str) -> None:
    kind, value, _, expected = case
    plan.types, plan.rows = {"value": kind}, [{"value": value}, {"value": None}]
    try:
        plan.deliver()
        found, message = OK, ""
    except Exception as error:  # noqa: BLE001 - a code, or a fault
        found, message = getattr(error, "code", repr(error)), str(error)
    assert found == expected, (said, message)


@pytest.mark.postgres
def test_postgresql(postgres_url: str, tmp_path: Path) -> None:
    endpoint = postgresql(postgres_url)
    asked(endpoint, "CREATE TYPE out.side AS ENUM ('north'); CREATE DOMAIN out.short AS varchar(3)")
    for number, case in enumerate(COMMON + POSTGRESQL):
        asked(endpoint, f"CREATE TABLE out.t{number} (value {case[2]})")
        _check(Plan(endpoint, tmp_path, {"target": f"out.t{number}"}), case, f"{case[0]} {case[1]!r:.40} {case[2]}")


def test_mysql(mariadb_server: MariaDb, tmp_path: Path) -> None:
    endpoint = mysql(mariadb_server)
    for number, case in enumerate(COMMON + MYSQL):
        there = {"timestamp": "datetime", "timestamp(6)": "datetime(6)", "timestamp(3)": "datetime(3)"}.get(
            case[2], case[2]
        )
        there = {"float": "double", "timestamp(0)": "datetime(0)"}.get(there, there)
        asked(endpoint, f"CREATE TABLE t{number} (value {there})")
        _check(Plan(endpoint, tmp_path, {"target": f"out.t{number}"}), case, f"{case[0]} {case[1]!r:.40} {there}")


def test_a_column_of_singles_does_not_take_doubles(mariadb_server: MariaDb, tmp_path: Path) -> None:
    endpoint = mysql(mariadb_server)
    asked(endpoint, "CREATE TABLE sent (value float)")
    _check(Plan(endpoint, tmp_path), (DOUBLE, 0.1, "float", TYPE), "double in float")
