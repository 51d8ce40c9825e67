"""Values of definitions beside a column: of its type, or refused with what to write."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.contracts.tables.types import Array, Column, Decimal, PrimitiveType, Type
from headgate.execution.statements.literals import BadValue, written

NUMBER, TEXT = Decimal(10, 2), PrimitiveType("STRING")
LIST = Array(TEXT)


def plain(name: str) -> Type:
    return PrimitiveType(name)


@pytest.mark.parametrize(
    ("value", "kind", "sql"),
    [
        (True, plain("BOOLEAN"), "TRUE"),
        (5, plain("INT"), "5L"),
        (-5, plain("BIGINT"), "-5L"),
        ("5", plain("INT"), "5L"),
        (5.0, plain("INT"), "5L"),
        (1.5, plain("INT"), "1.5BD"),
        (2**70, plain("BIGINT"), f"{2**70}BD"),
        (0.1, plain("FLOAT"), "CAST(0.1D AS FLOAT)"),
        (3, plain("DOUBLE"), "CAST(3.0D AS DOUBLE)"),
        (0.1, NUMBER, "0.1BD"),
        (1e20, NUMBER, "100000000000000000000BD"),
        ("19.99", NUMBER, "19.99BD"),
        ("it's \\ x", TEXT, "'it\\'s \\\\ x'"),
        ("2026-05-31", plain("DATE"), "DATE '2026-05-31'"),
        ("2026-05-31", plain("TIMESTAMP"), "TIMESTAMP '2026-05-31 00:00:00'"),
        ("2026-05-31T12:00:00+02:00", plain("TIMESTAMP"), "TIMESTAMP '2026-05-31 10:00:00+00:00'"),
        ("2026-05-31 12:00:00.5", plain("TIMESTAMP_NTZ"), "TIMESTAMP_NTZ '2026-05-31 12:00:00.500000'"),
    ],
)
def test_values_are_written_as_the_type_of_the_column(value: str | float | bool, kind: Type, sql: str) -> None:
    assert written(value, Column("c", kind)) == sql


@pytest.mark.parametrize(
    ("value", "kind", "told"),
    [
        (5, TEXT, "5 is not a valid value of c, which is STRING; write a text, in quotes"),
        (True, plain("INT"), "write a number"),
        (1, plain("BOOLEAN"), "write true or false"),
        ("yes", plain("BOOLEAN"), "write true or false"),
        ("five", plain("INT"), "write a number"),
        ("NaN", plain("DOUBLE"), "write a number"),
        (float("inf"), plain("DOUBLE"), "write a number"),
        ("1e400", NUMBER, "write a number"),
        ("0." + "1" * 50, NUMBER, "write a number"),
        (20260531, plain("DATE"), "write a date"),
        ("2026-13-01", plain("DATE"), "write a date"),
        ("2026-05-31 25:00", plain("TIMESTAMP"), "write a time"),
        ("2026-05-31T12:00:00Z", plain("TIMESTAMP_NTZ"), "without a time zone"),
        ("x", LIST, "a check in SQL"),
        ("x", plain("BINARY"), "a check in SQL"),
    ],
)
def test_what_is_no_value_of_the_column_is_refused(value: str | float | bool, kind: Type, told: str) -> None:
    with pytest.raises(BadValue, match=told):
        written(value, Column("c", kind))


@given(
    st.text() | st.integers() | st.floats() | st.booleans(),
    st.sampled_from(["BOOLEAN", "INT", "BIGINT", "FLOAT", "DOUBLE", "STRING", "DATE", "TIMESTAMP", "TIMESTAMP_NTZ"]),
)
def test_no_value_reaches_beyond_its_place(value: str | float | bool, kind: str) -> None:
    try:
        found = written(value, Column("c", PrimitiveType(kind)))
    except BadValue:
        return
    if kind == "STRING":
        inside = found[1:-1].replace("\\\\", "").replace("\\'", "")
        assert "'" not in inside
        assert not inside.endswith("\\")
    else:
        assert set(found) <= set("0123456789.+-: 'TRUEFALSEDATIMPNZCOBLdeinfa()")
        assert found.count("'") in {0, 2}
