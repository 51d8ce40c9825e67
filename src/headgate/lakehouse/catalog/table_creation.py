"""Creates tables: the catalog assigns id, uuid and location, and validates the rest.

A staged table has an id and a root that engines write to. It is invisible until its member commits it.
"""

import uuid as uuids
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, delete, insert, select

from headgate.kit.errors import Conflict, Invalid
from headgate.kit.ids import new_id
from headgate.kit.names import BadName
from headgate.lakehouse.catalog import access, pointers, properties
from headgate.lakehouse.catalog.errors import AlreadyExists, Malformed, NotValid
from headgate.lakehouse.catalog.files import Root
from headgate.lakehouse.catalog.models import staged_table
from headgate.lakehouse.catalog.names import Ident
from headgate.lakehouse.catalog.table_schemas import (
    check_raw_schema,
    check_schema,
    check_transforms,
    short,
    with_field_ids,
)
from headgate.lakehouse.items.service import create_item
from headgate.lakehouse.names import sql_name
from headgate.platform.unit_of_work.call import Call
from headgate.settings.settings import Settings
from headgate.warehouse.store import Store

_staged = staged_table.c


@dataclass(frozen=True, slots=True)
class NewTable:
    """The layer and id of a new table, for everyone or for one run."""

    table_id: str
    layer_id: str
    name: str
    uuid: str
    is_declared: bool = False
    """Whether the table's row exists already and only the content is missing."""
    run: tuple[str, int] | None = None


def wanted(body: dict[str, Any], levels: tuple[str, ...]) -> Ident:
    """The table name in a request body."""
    name = body.get("name")
    if not isinstance(name, str):
        raise Malformed("name is required")
    try:
        return Ident(levels, sql_name(name))
    except BadName as error:
        raise Malformed(str(error)) from None


def place(call: Call, ident: Ident, staged_id: str | None = None) -> NewTable:
    """Authorize the creation of a table and assign its id; raises the refusal otherwise."""
    access.require_engine(call)
    entry = access.find(call, ident)
    work = call.caller.work
    run = work.run if work else None
    if entry.pointer is not None and access.may_know(call, entry):
        raise AlreadyExists(f"Table already exists: {ident}")
    is_declared = entry.table_id is not None and not entry.is_new and entry.pointer is None
    if is_declared and (run is None or call.decide("edit", "table", entry.table_id)):
        # The table was declared, so members who may write it can give it content. A run sees only its own declared
        # outputs.
        assert entry.table_id is not None  # noqa: S101 - it was just asked
        access.require_declared(call, ident, entry.table_id)
        return NewTable(entry.table_id, entry.layer_id or "", ident.table_key, str(uuids.uuid4()), True, run)  # noqa: FBT003
    if work is not None and run is not None:
        return _of_run(call, ident, run, entry.layer_id)
    layer = access.require_create(call, ident)
    if entry.table_id is not None:
        raise AlreadyExists(f"Table already exists: {ident}")
    return NewTable(staged_id or new_id("table"), layer, ident.table_key, str(uuids.uuid4()))


def _of_run(call: Call, ident: Ident, run: tuple[str, int], layer: str | None) -> NewTable:
    """A run can create only the outputs that it declared."""
    work = call.caller.work
    output = work.output(layer, ident.table_key) if work and layer else None
    if output is None or layer is None or not access.decide_output(call, layer):
        call.note_denial("create", "table", layer)
        raise access.no_namespace(ident)
    return NewTable(output, layer, ident.table_key, str(uuids.uuid4()), run=run)


def first_metadata(store: Store, body: dict[str, Any], new_table: NewTable, *, ignores: bool = False) -> Any:
    """The metadata of a new table; raises Malformed or NotValid. `ignores`: drop a requested location."""
    from pyiceberg.exceptions import ValidationError
    from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC, PartitionSpec
    from pyiceberg.schema import Schema
    from pyiceberg.table.metadata import new_table_metadata
    from pyiceberg.table.sorting import UNSORTED_SORT_ORDER, SortOrder

    root = Root(store, new_table.table_id)
    _check_location(body, root, ignores=ignores)
    given = body.get("properties")
    kept = {**properties.OF_NEW, **properties.check({} if given is None else given, creating=True)}
    check_raw_schema(body.get("schema"))
    try:
        schema = Schema.model_validate(body.get("schema"))
        spec, order = with_field_ids(body.get("partition-spec")), body.get("write-order")
        check_schema(schema)
        made = new_table_metadata(
            schema,
            PartitionSpec.model_validate(spec) if spec else UNPARTITIONED_PARTITION_SPEC,
            SortOrder.model_validate(order) if order else UNSORTED_SORT_ORDER,
            root.url,
            kept,
            uuids.UUID(new_table.uuid),
        )
        check_transforms("partition", made.spec().fields)
        check_transforms("sort order", made.sort_order().fields)
        made.spec().check_compatible(made.schema())
        made.sort_order().check_compatible(made.schema())
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, ArithmeticError, ValidationError) as error:
        raise NotValid(f"Invalid table: {short(error)}") from None
    return made


def ignores_location(settings: Settings) -> bool:
    """Whether a location requested by a client is ignored instead of refused."""
    return settings.warehouse.requested_location == "ignore"


def _check_location(body: dict[str, Any], root: Root, *, ignores: bool) -> None:
    location = body.get("location")
    if location is None:
        return
    if not isinstance(location, str):
        raise Malformed("location must be a string; omit it, because the catalog assigns the location")
    if location.rstrip("/") != root.url and not ignores:
        raise NotValid(
            "The catalog assigns the location of tables; omit it, or ask the operator to set "
            '`warehouse.requested_location` to "ignore"'
        )


def stage(connection: Connection, new_table: NewTable, member: str, now: datetime) -> None:
    """Record a staged table and its member."""
    connection.execute(delete(staged_table).where(_staged.id == new_table.table_id))
    connection.execute(
        insert(staged_table).values(
            id=new_table.table_id,
            uuid=new_table.uuid,
            layer_id=new_table.layer_id,
            name=new_table.name,
            member_id=member,
            run_id=new_table.run[0] if new_table.run else None,
            created_at=now,
        )
    )


def staged(connection: Connection, ident: Ident, layer_id: str, location: str, member: str) -> Any:
    """The staged table with this location that the member is about to commit, or None."""
    table_id = location.rstrip("/").rpartition("/")[2]
    mine = (_staged.id == table_id, _staged.member_id == member)
    there = (_staged.layer_id == layer_id, _staged.name == ident.table_key)
    return connection.execute(select(staged_table).where(*mine, *there)).mappings().one_or_none()


def unstage(connection: Connection, table_id: str) -> None:
    """Delete the record of a staged table after its commit."""
    connection.execute(delete(staged_table).where(_staged.id == table_id))


def enter(call: Call, ident: Ident, new_table: NewTable, move: pointers.Move) -> None:
    """Insert a new table: its row, unless it was declared, and its first pointer."""
    if new_table.run is not None:
        pointers.create_own(call.connection, new_table.run, new_table.layer_id, new_table.name, move, call.now)
        return
    if not new_table.is_declared:
        if pointers.was_used(call.connection, new_table.table_id):
            raise AlreadyExists(f"Table already exists: {ident}")
        try:
            create_item(call, "table", new_table.layer_id, new_table.name, item_id=new_table.table_id)
        except Conflict:
            raise AlreadyExists(f"Table already exists: {ident}") from None
        except Invalid as error:
            raise Malformed(error.detail) from None
    pointers.create(call.connection, move, call.now, call.caller.member)
