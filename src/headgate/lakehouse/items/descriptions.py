"""Titles and descriptions of layers, tables, volumes and fields."""

from typing import Any

from sqlalchemy import Connection, delete, insert, select

from headgate.kit.ids import kind_of
from headgate.lakehouse.models import lake_text_table
from headgate.platform.authorization import writer
from headgate.platform.unit_of_work.call import Call

ITSELF = 0
"""The field id for the texts of the resource itself; Iceberg's field ids start at one."""
_texts = lake_text_table.c

Texts = dict[str, str | None]


def describe(call: Call, resource: str, changes: dict[int, Texts]) -> None:
    """Change the title or description of a resource (0) and of its fields, by field id; requires *describe*."""
    kind = kind_of(resource) or ""
    decision = call.require("describe", kind, resource)
    before = {field: _change(call, resource, field, texts) for field, texts in changes.items()}
    writer.save(call.connection, resource, call.now)
    call.record_change(
        decision,
        "describe",
        kind,
        resource,
        before={"texts": {str(field): values for field, values in before.items()}},
        after={"change": f"describe_{kind}", "texts": {str(field): texts for field, texts in changes.items()}},
    )


def _change(call: Call, resource: str, field: int, texts: Texts) -> Texts:
    """Write the texts of one field; returns the previous ones. A field without texts has no row."""
    result = _stored(call.connection, resource, field)
    before = {name: result[name] if result else None for name in ("title", "description")}
    row: dict[str, Any] = {**before, **texts}
    call.connection.execute(delete(lake_text_table).where(_texts.resource_id == resource, _texts.field_id == field))
    if any(value is not None for value in row.values()):
        row |= {"resource_id": resource, "field_id": field, "updated_at": call.now, "updated_by_id": call.caller.member}
        call.connection.execute(insert(lake_text_table).values(row))
    return {name: before[name] for name in texts}


def _stored(connection: Connection, resource: str, field: int) -> Any:
    query = select(lake_text_table).where(_texts.resource_id == resource, _texts.field_id == field)
    return connection.execute(query).mappings().one_or_none()
