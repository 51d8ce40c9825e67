"""Partitions and order: read from what Spark shows, and changed by the statements that are needed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.contracts.tables.types import Array, Column, Decimal, PrimitiveType
from headgate.execution.statements import layout
from headgate.execution.statements.layout import InvalidLayout, PartitionField

COLUMNS = (
    Column("id", PrimitiveType("BIGINT")),
    Column("at", PrimitiveType("TIMESTAMP")),
    Column("d", PrimitiveType("DATE")),
    Column("a.b", PrimitiveType("STRING")),
    Column("f", PrimitiveType("DOUBLE")),
    Column("n", Decimal(5, 2)),
    Column("list", Array(PrimitiveType("INT"))),
)
TABLE = "`l`.`t`"


def shown(*parts: str) -> list[dict[str, str]]:
    """What DESCRIBE TABLE answers."""
    columns = [{"col_name": "# Partitioning", "data_type": "string"}, {"col_name": "id", "data_type": "bigint"}]
    if not parts:
        return columns[1:]
    rest = [{"col_name": "", "data_type": ""}, {"col_name": "# Partitioning", "data_type": ""}]
    return columns + rest + [{"col_name": f"Part {n}", "data_type": one} for n, one in enumerate(parts)]


def test_what_spark_shows_is_what_a_definition_asks_for() -> None:
    asked = layout.parts(["ID", "day(AT)", "bucket(16, id)", "truncate(3, a.b)", "month(d)", "hour(at)"], COLUMNS)
    told = layout.described(shown("id", "days(at)", "bucket(16, id)", "truncate(3, `a.b`)", "months(d)", "hours(at)"))
    assert asked == told
    assert layout.repartition(TABLE, told, asked) == []
    assert layout.described(shown()) == ()
    assert layout.described(shown("`days(at)`", "`we``ird`")) == (
        PartitionField("identity", None, "days(at)"),
        PartitionField("identity", None, "we`ird"),
    )


def test_partitions_are_dropped_and_added() -> None:
    there = layout.described(shown("days(at)", "bucket(16, id)"))
    wanted = layout.parts(["month(at)", "bucket(8, id)", "a.b"], COLUMNS)
    assert layout.repartition(TABLE, there, wanted) == [
        "ALTER TABLE `l`.`t` DROP PARTITION FIELD days(`at`)",
        "ALTER TABLE `l`.`t` DROP PARTITION FIELD bucket(16, `id`)",
        "ALTER TABLE `l`.`t` ADD PARTITION FIELD months(`at`)",
        "ALTER TABLE `l`.`t` ADD PARTITION FIELD bucket(8, `id`)",
        "ALTER TABLE `l`.`t` ADD PARTITION FIELD `a.b`",
    ]


@given(st.sampled_from(["identity", "day", "bucket"]), st.text("a`.( )b,", min_size=1, max_size=6))
def test_any_column_is_found_again(name: str, column: str) -> None:
    part = PartitionField(name, 4 if name == "bucket" else None, column)
    assert layout.described(shown(part.sql)) == (part,)


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("day(id)", "days\\(`id`\\) is invalid: id is BIGINT"),
        ("hour(d)", "hours\\(`d`\\) is invalid: d is DATE"),
        ("truncate(2, at)", "is invalid"),
        ("bucket(2, f)", "is invalid"),
        ("f", "is invalid"),
        ("list", "is invalid: list is ARRAY<INT>"),
        ("none", "Unknown column none in partition_by"),
    ],
)
def test_what_cannot_be_is_said(asked: str, told: str) -> None:
    with pytest.raises(InvalidLayout, match=told):
        layout.parts([asked], COLUMNS)


def test_rows_are_sorted_by_plain_columns() -> None:
    layout.check_sort(["AT", "n"], COLUMNS)
    for wrong in ("list", "none"):
        with pytest.raises(InvalidLayout):
            layout.check_sort([wrong], COLUMNS)
    assert layout.order(TABLE, ["at", "we`ird"]) == "ALTER TABLE `l`.`t` WRITE ORDERED BY `at`, `we``ird`"
    assert layout.order(TABLE, []) == "ALTER TABLE `l`.`t` WRITE UNORDERED"
