"""Values in the SQL that is sent to a database: each of the column's own type, so that its index is of use."""

import re
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from headgate.execution.sources import mysql, postgresql
from headgate.execution.sources.columns import Column, Dialect

BOTH = pytest.mark.parametrize("dialect", [postgresql.DIALECT, mysql.DIALECT], ids=lambda one: one.called)


def _column(order: str | None) -> Column:
    return Column("c", "said", '"c"', order)


@BOTH
@pytest.mark.parametrize("value", [0, 7, -7, 2**63 - 1, -(2**63), 2**64])
def test_a_whole_number_is_bare(dialect: Dialect, value: int) -> None:
    assert dialect.literal(_column("bigint"), value) == str(value)


@BOTH
@pytest.mark.parametrize(
    ("order", "value"),
    [
        ("bigint", Decimal("1.5")),
        ("decimal", Decimal("1E+3")),
        ("decimal", 7),
        ("double", 2.5),
        ("timestamp", datetime(2026, 3, 1, 12, tzinfo=UTC)),
        ("date", date(2026, 3, 1)),
        ("string", 'it\'s \\ "so"'),
    ],
)
def test_any_other_value_is_quoted(dialect: Dialect, order: str, value: Any) -> None:
    found = dialect.literal(_column(order), value)
    assert found is not None
    assert re.fullmatch(r"[A-Z0-9 +()_a-z,:]*", re.sub(r"'(?:[^']|'')*'", "", found, count=1)), found


@BOTH
@pytest.mark.parametrize(("order", "value"), [("bigint", "1"), (None, 1), ("timestamp", 5), ("string", 5)])
def test_a_value_of_another_sort_has_none(dialect: Dialect, order: str | None, value: Any) -> None:
    assert dialect.literal(_column(order), value) is None
