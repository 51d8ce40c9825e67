"""Types: which hold which, what a table needs to hold both, and the statements that bring it there."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.contracts.tables import types
from headgate.contracts.tables.types import (
    Array,
    Column,
    Decimal,
    IncompatibleType,
    InvalidColumns,
    Map,
    PrimitiveType,
    Struct,
)
from headgate.execution.statements import schema_evolution as evolving

INT, BIGINT, STRING, DOUBLE = (
    PrimitiveType("INT"),
    PrimitiveType("BIGINT"),
    PrimitiveType("STRING"),
    PrimitiveType("DOUBLE"),
)
NESTED = Struct((Column("a", INT), Column("B c", Array(Struct((Column("x", INT),))))))

_plain = st.sampled_from(["BOOLEAN", "INT", "BIGINT", "FLOAT", "DOUBLE", "STRING", "DATE", "TIMESTAMP"]).map(
    PrimitiveType
)
_decimal = st.integers(1, 38).flatmap(lambda p: st.integers(0, p).map(lambda s: Decimal(p, s)))
_name = st.sampled_from(["a", "A", "b", "c d", "e`f"])


def _columns(of: st.SearchStrategy[types.Type]) -> st.SearchStrategy[types.Columns]:
    found = st.lists(st.builds(Column, _name, of), min_size=1, max_size=4, unique_by=lambda one: one.name.lower())
    return found.map(tuple)


any_type = st.recursive(
    _plain | _decimal,
    lambda of: st.builds(Array, of) | st.builds(Map, st.just(STRING), of) | st.builds(Struct, _columns(of)),
    max_leaves=6,
)


def test_columns_come_from_arrow_as_tables_hold_them() -> None:
    schema = pa.schema(
        [
            ("tiny", pa.int8()),
            ("at", pa.timestamp("us", "UTC")),
            ("local", pa.timestamp("us")),
            ("n", pa.decimal128(10, 2)),
            ("m", pa.map_(pa.string(), pa.list_(pa.struct([("x y", pa.float32())])))),
        ]
    )
    assert [types.sql(one.type) for one in types.of_arrow(schema)] == [
        "INT",
        "TIMESTAMP",
        "TIMESTAMP_NTZ",
        "DECIMAL(10, 2)",
        "MAP<STRING, ARRAY<STRUCT<`x y`: FLOAT>>>",
    ]


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        (pa.schema([("a", pa.null())]), "CAST\\(NULL AS STRING\\)"),
        (pa.schema([("a", pa.duration("us"))]), "column a has a type"),
        (pa.schema([("a", pa.struct([pa.field("value", pa.binary(), metadata={"variant": "true"})]))]), "column a has"),
        (pa.schema([("a", pa.int32()), ("A", pa.int32())]), "Two columns have the name a"),
        (pa.schema([("s", pa.struct([("x", pa.int32()), ("X", pa.int32())]))]), "Two columns have the name x"),
    ],
)
def test_what_no_table_holds_is_said(schema: pa.Schema, told: str) -> None:
    with pytest.raises(InvalidColumns, match=told):
        types.of_arrow(schema)


@pytest.mark.parametrize(
    ("wide", "narrow", "holds"),
    [
        (BIGINT, INT, True),
        (INT, BIGINT, False),
        (DOUBLE, INT, True),
        (DOUBLE, BIGINT, False),
        (STRING, INT, False),
        (PrimitiveType("TIMESTAMP"), PrimitiveType("DATE"), False),
        (Decimal(12, 2), Decimal(10, 2), True),
        (Decimal(12, 4), Decimal(10, 2), True),
        (Decimal(11, 4), Decimal(10, 2), False),
        (Decimal(20, 1), BIGINT, True),
        (Decimal(19, 1), BIGINT, False),
        (Decimal(38, 0), STRING, False),
        (Array(BIGINT), Array(INT), True),
        (Map(STRING, BIGINT), Map(INT, INT), False),
        (NESTED, Struct((Column("A", INT),)), True),
        (Struct((Column("A", INT),)), NESTED, False),
    ],
)
def test_what_holds_what(wide: types.Type, narrow: types.Type, holds: bool) -> None:
    assert types.holds(wide, narrow) is holds


@given(any_type, any_type)
def test_a_widened_type_holds_both_and_needs_no_more_widening(there: types.Type, given_: types.Type) -> None:
    try:
        after = types.widened(there, given_)
    except IncompatibleType:
        assert not types.holds(there, given_)
        return
    assert types.holds(after, there)
    assert types.holds(after, given_)
    assert types.widened(after, given_) == after
    assert types.holds(there, given_) is (after == there)


def test_the_statements_add_and_widen_at_any_depth() -> None:
    there = (
        Column("id", INT),
        Column("s", NESTED),
        Column("m", Map(STRING, Struct((Column("v", PrimitiveType("FLOAT")),)))),
    )
    given_ = (
        Column("ID", BIGINT),
        Column("s", Struct((Column("new", STRING), Column("b C", Array(Struct((Column("x", BIGINT),))))))),
        Column("M", Map(STRING, Struct((Column("v", DOUBLE), Column("w`", INT))))),
        Column("more", Array(INT)),
    )
    after = types.merged(there, given_)
    assert [one.name for one in after] == ["id", "s", "m", "more"]
    assert evolving.statements("`l`.`t`", there, after) == [
        "ALTER TABLE `l`.`t` ADD COLUMNS (`s`.`new` STRING, `m`.`value`.`w``` INT, `more` ARRAY<INT>)",
        "ALTER TABLE `l`.`t` ALTER COLUMN `id` TYPE BIGINT",
        "ALTER TABLE `l`.`t` ALTER COLUMN `s`.`B c`.`element`.`x` TYPE BIGINT",
        "ALTER TABLE `l`.`t` ALTER COLUMN `m`.`value`.`v` TYPE DOUBLE",
    ]
    assert evolving.statements("`l`.`t`", after, after) == []


def test_a_misfit_names_its_field() -> None:
    there, given_ = (Column("s", NESTED),), (Column("S", Struct((Column("a", STRING),))),)
    with pytest.raises(IncompatibleType, match=r"^s\.a is STRING, and the table has INT$"):
        types.merged(there, given_)


def test_differences_are_told_whatever_the_order_and_case() -> None:
    there = (Column("id", INT), Column("name", STRING), Column("s", NESTED))
    turned = Struct((*reversed(NESTED.fields),))
    assert evolving.differences(there, (Column("S", turned), Column("NAME", STRING), Column("Id", INT))) == []
    assert evolving.differences(there, (Column("ID", BIGINT), Column("more", STRING), Column("s", NESTED))) == [
        "ID is BIGINT, and the table has INT",
        "more (STRING) is new",
        "name is missing",
    ]


def test_values_get_the_types_and_fields_of_the_table() -> None:
    assert types.conformed("q.`a`", INT, INT) == "q.`a`"
    assert types.conformed("q.`a`", INT, BIGINT) == "CAST(q.`a` AS BIGINT)"
    deep = Array(Array(Struct((Column("x", INT),))))
    wide = Array(Array(Struct((Column("x", INT), Column("y", STRING)))))
    assert types.conformed("q.`a`", deep, wide) == (
        "transform(q.`a`, x_ -> transform(x_, x___ -> IF(x___ IS NULL, NULL, "
        "named_struct('x', x___.`x`, 'y', CAST(NULL AS STRING)))))"
    )


@given(any_type)
def test_only_types_with_maps_are_compared_otherwise_than_as_they_are(one: types.Type) -> None:
    assert types.is_key(one) is (types.comparable("v", one) == "v")
    assert ("map_entries" in types.comparable("v", one)) is ("MAP<" in types.sql(one))


def test_names_are_quoted_wherever_they_stand() -> None:
    hostile = "a` INT); DROP TABLE x; --"
    column = Column(hostile, Struct((Column(hostile, INT),)))
    made = evolving.create("`l`.`t`", (column,), properties={"comment": "it's"})
    assert made == (
        "CREATE TABLE `l`.`t` (`a`` INT); DROP TABLE x; --` STRUCT<`a`` INT); DROP TABLE x; --`: INT>) "
        "TBLPROPERTIES ('comment' = 'it\\'s')"
    )
