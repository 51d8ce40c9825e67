"""Columns in Iceberg's words, and back."""

import pyarrow as pa
import pytest
from pyiceberg.schema import Schema

from headgate.contracts.tables import iceberg, types

ARROW = pa.schema(
    [
        ("flag", pa.bool_()),
        ("small", pa.int16()),
        ("whole", pa.int64()),
        ("part", pa.float64()),
        ("price", pa.decimal128(10, 2)),
        ("name", pa.string()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("local", pa.timestamp("us")),
        ("tags", pa.list_(pa.string())),
        ("by", pa.map_(pa.string(), pa.struct([("x", pa.int32())]))),
        ("inside", pa.struct([("a", pa.list_(pa.struct([("b", pa.binary())])))])),
    ]
)


def test_every_type_that_queries_give_goes_there_and_back() -> None:
    columns = types.of_arrow(ARROW)
    fields = iceberg.fields(columns)
    assert iceberg.columns(fields) == columns
    schema = Schema.model_validate({"type": "struct", "schema-id": 0, "fields": fields})
    assert [one.name for one in schema.fields] == ARROW.names
    assert schema.highest_field_id == 19
    assert not any(one.required for one in schema.fields)


@pytest.mark.parametrize("kind", ["uuid", "time", "fixed[16]", {"type": "list", "element": "uuid"}, {"type": "odd"}])
def test_types_that_queries_do_not_give_are_unknown(kind: object) -> None:
    with pytest.raises(iceberg.Unknown):
        iceberg.columns([{"id": 1, "name": "x", "required": False, "type": kind}])
