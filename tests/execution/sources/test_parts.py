"""The pieces of landing that need no Spark: names, ranges, shapes, states, patterns."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.execution.sources import cursor as state
from headgate.execution.sources import mysql, names, postgresql
from headgate.execution.sources import partitions as parts
from headgate.execution.sources.readers import CursorPosition
from headgate.execution.sources.variants import columns_of
from headgate.execution.steps.context import StepFailed
from headgate.execution.steps.files import matches


@given(
    st.lists(st.text(max_size=12), max_size=12),
    st.lists(st.sampled_from(["id", "Id_2", "name", "größe"]), unique_by=str.lower),
)
def test_names_are_safe_and_unique_and_keep_those_that_are_there(given_names: list[str], known: list[str]) -> None:
    found = names.columns(given_names, known)
    assert len({name.lower() for name in found}) == len(given_names)
    for name in found:
        assert name in known or name == name.lower()
        assert all(letter.isalnum() or letter == "_" for letter in name)


def test_names_that_are_meant() -> None:
    given_names, called = ["Order ID", "order id", "x"], ["order_id", "order_id_2", "x"]
    assert names.place_of("Order ID", given_names, called) == 0
    assert names.place_of("order id", given_names, called) == 1
    assert names.place_of("ORDER_ID_2", given_names, called) == 1
    assert names.place_of("y", given_names, called) is None


@pytest.mark.parametrize(
    ("low", "high", "order", "count", "expected"),
    [
        ("1", "8", "bigint", 4, [3, 5, 7]),
        ("1", "1", "bigint", 4, []),
        ("1", "2", "bigint", 4, [2]),
        (None, None, "bigint", 4, []),
        ("-9223372036854775808", "9223372036854775807", "bigint", 2, [0]),
        ("2026-01-01", "2026-01-04", "date", 2, [date(2026, 1, 3)]),
        ("0.0", "1.0", "decimal", 2, [Decimal("0.5")]),
        ("NaN", "1.0", "double", 2, []),
        ("2026-01-01 00:00:00+00", "2026-01-03 00:00:00+00", "timestamp", 2, [datetime(2026, 1, 2, tzinfo=UTC)]),
        ("-infinity", "infinity", "timestamp", 2, []),
    ],
)
def test_ranges(low: str, high: str, order: str, count: int, expected: list[Any]) -> None:
    assert parts.limits(low, high, order, count) == expected


@given(st.integers(-100, 100), st.integers(0, 200), st.integers(2, 20), st.one_of(st.none(), st.integers(-150, 350)))
def test_each_row_is_in_one_part(low: int, width: int, count: int, value: int | None) -> None:
    between = parts.limits(str(low), str(low + width), "bigint", count)
    found = parts.conditions("v", [str(one) for one in between])
    if not found:
        return
    held = 0
    for one in found:
        text = one.replace("v IS NULL", str(value is None)).replace(" OR ", " or ").replace(" AND ", " and ")
        held += bool(value is not None and eval(text, {"v": value})) or ("IS NULL" in one and value is None)  # noqa: S307
    assert held == 1


def test_shapes_of_json() -> None:
    found = columns_of(
        "OBJECT<a: BIGINT, `b c`: ARRAY<OBJECT<d: DECIMAL(2,1), e: BOOLEAN>>, `o``x`: VARIANT, n: VOID, big: DECIMAL(23,0), x: OBJECT<>>"
    )
    assert (
        found.simpleString()
        == "struct<a:bigint,b c:array<struct<d:double,e:boolean>>,o`x:string,n:string,big:decimal(38,0),x:string>"
    )
    assert columns_of("VOID").fields == []
    assert columns_of("").fields == []


def test_states() -> None:
    assert state.since(None, None, merges=False) is None
    assert state.since({"cursor": "x", "type": "files", "seen": []}, None, merges=False) is None
    old = {"cursor": "2026-01-02T00:00:00.000000Z", "type": "timestamp"}
    found = state.since(old, timedelta(days=1), merges=True)
    assert found
    assert state.begin(found) == datetime(2026, 1, 1, tzinfo=UTC)
    with pytest.raises(StepFailed, match="look_back is a duration"):
        state.begin(CursorPosition("5", "bigint", timedelta(days=1), including=True))
    assert state.after(old, "2026-01-01T00:00:00.000000Z", "timestamp") == old
    assert state.after(old, None, "timestamp") == old
    assert state.after({"cursor": "9", "type": "bigint"}, "10", "bigint") == {"cursor": "10", "type": "bigint"}
    assert state.after(old, "10", "bigint") == {"cursor": "10", "type": "bigint"}
    assert state.text(1767225600000001, "timestamp") == "2026-01-01T00:00:00.000001Z"


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("a.csv", "a.csv", True),
        ("*.csv", "a.csv", True),
        ("*.csv", "x/a.csv", False),
        ("**/*.csv", "a.csv", True),
        ("**/*.csv", "x/y/a.csv", True),
        ("x/**", "x/y/a.csv", True),
        ("x/**/z/*.csv", "x/z/a.csv", True),
        ("x/**/z/*.csv", "x/1/2/z/a.csv", True),
        ("x/**/z/*.csv", "x/1/2/a.csv", False),
        ("/a?.csv", "ab.csv", True),
        ("a?.csv", "a.csv", False),
        ("a[b].csv", "a[b].csv", True),
        ("A.csv", "a.csv", False),
        ("a\u0308.csv", "ä.csv", True),
        ("**", "x/y", True),
        ("*" * 500 + "b", "a" * 900, False),
    ],
)
def test_patterns(pattern: str, path: str, expected: bool) -> None:
    assert matches(pattern, path) is expected


HOSTILE = ["o'; DROP TABLE x; --", 'a"b', "a\\'b", "`", "x\\", "ü"]


@pytest.mark.parametrize("name", HOSTILE)
def test_names_and_texts_are_quoted(name: str) -> None:
    asked = postgresql.columns(name, name)
    assert asked.count("E'" + name.replace("\\", "\\\\").replace("'", "''") + "'") == 2
    assert postgresql.quoted(name) == '"' + name.replace('"', '""') + '"'
    assert name.encode().hex() in mysql.columns(name, name)
    assert mysql.quoted(name) == "`" + name.replace("`", "``") + "`"


@pytest.mark.parametrize("module", [postgresql, mysql])
def test_a_driver_is_told_what_is_on_the_list_and_ours_counts(module: Any, tmp_path: Any) -> None:
    config = {"host": "::1", "port": 1, "database": "d", "user": "u", "tls": "off"}
    for name in ("socketFactory", "sslfactory", "allowLocalInfile", "loggerFile", "options"):
        with pytest.raises(ValueError, match="cannot be set"):
            module.options({**config, "properties": {name: "x"}}, "")
    found = module.options({**config, "properties": {"socketTimeout": "7", "connectTimeout": "3"}}, "")
    assert (found["socketTimeout"], found["connectTimeout"]) == ("7", "3")
    assert "[::1]:1/d" in found["url"]
    checked = module.options({**config, "tls": "verify", "tls_ca": "-----"}, str(tmp_path))
    assert "verify-full" in checked.values()
    assert (tmp_path / "authority.pem").read_text() == "-----"
    assert "verify-full" in module.options({**config, "tls": "verify"}, "").values()


def test_a_database_that_would_change_the_drivers_address_is_refused() -> None:
    config = {"host": "h", "port": 1, "database": "d?allowLocalInfile=true", "user": "u", "tls": "off"}
    with pytest.raises(StepFailed, match="rename the database"):
        mysql.options(config, "")
    assert postgresql.options(config, "")["url"].endswith("/d%3FallowLocalInfile%3Dtrue")
