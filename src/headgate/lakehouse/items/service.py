"""Creates and renames layers, tables and volumes in the transaction of the call.

An id never changes and is never reused. Grants, texts and references use the id and survive renames.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from sqlalchemy import Connection, insert, select, update
from sqlalchemy.exc import IntegrityError

from headgate.access.decision import Decision
from headgate.access.facts import Table, Volume
from headgate.kit.database import fetch
from headgate.kit.errors import Conflict, Invalid, NotFound
from headgate.kit.ids import kind_of, new_id
from headgate.kit.names import BadName
from headgate.lakehouse.models import lake_item_table, layer_table, table_ref_table
from headgate.lakehouse.names import sql_name
from headgate.organization.access.changes.reach import dependents
from headgate.organization.access.changes.targets import Targets
from headgate.platform.authorization import writer
from headgate.platform.authorization.models import resource_table
from headgate.platform.unit_of_work.call import Call

ITEMS = ("table", "volume")
KINDS = ("layer", *ITEMS)
_items, _resources = lake_item_table.c, resource_table.c


# Lookup


def find(connection: Connection, layer_name: str, item_name: str, kind: str) -> str | None:
    """The id of a table or volume by its SQL names, case-insensitive, or None."""
    if not (layer_name.isascii() and item_name.isascii()):
        return None
    rows = fetch(
        connection,
        "SELECT li.id FROM resources rl JOIN resources rs ON rs.scope_id = rl.id AND rs.namespace = 'table' "
        "JOIN lake_items li ON li.id = rs.id WHERE rl.namespace = 'layer' AND rl.scope_id = '' "
        "AND rl.name_key = :layer AND rs.name_key = :name AND li.kind = :kind",
        {"layer": layer_name.lower(), "name": item_name.lower(), "kind": kind},
    )
    return rows[0][0] if rows else None


def find_layer(connection: Connection, name: str) -> str | None:
    """The id of a layer by its SQL name, case-insensitive, or None."""
    if not name.isascii():
        return None
    text = "SELECT id FROM resources WHERE namespace = 'layer' AND scope_id = '' AND name_key = :name"
    rows = fetch(connection, text, {"name": name.lower()})
    return rows[0][0] if rows else None


def full_name(connection: Connection, identifier: str) -> str:
    """The qualified name of a layer, table or volume."""
    row = connection.execute(select(resource_table).where(_resources.id == identifier)).mappings().one()
    return f"{full_name(connection, row['scope_id'])}.{row['name']}" if row["scope_id"] else str(row["name"])


# Creation


def create_layer(call: Call, name: str) -> str:
    """Create a layer and return its id."""
    decision = call.require("create_layer", "organization", "organization")
    layer = insert_layer(call.connection, checked_name(name), call.now, call.caller.member)
    after = {"change": "create_layer", "name": checked_name(name)}
    call.record_change(decision, "create_layer", "layer", layer, before={}, after=after)
    return layer


def insert_layer(connection: Connection, name: str, now: Any, creator: str | None) -> str:
    """Insert a layer; the caller has authorized it. Raises Conflict if the name is taken."""
    with uniquely("layer", name), writer.new_resource(connection, "layer", name, now, creator, scope="") as layer:
        connection.execute(insert(layer_table).values(id=layer))
    return layer


def create_item(call: Call, kind: str, layer_id: str, name: str, *, item_id: str | None = None) -> str:
    """Create a table or volume in a layer, with a previously assigned id if given; returns its id."""
    decision = decide_create(call, kind, layer_id)
    if not decision:
        refuse_create(call, kind, layer_id)
    wanted, item = checked_name(name), item_id or new_id(kind)
    if kind_of(item) != kind:
        raise ValueError(f"{item!r} is not the id of a {kind}")
    resource = writer.new_resource(
        call.connection,
        kind,
        wanted,
        call.now,
        call.caller.member,
        scope=layer_id,
        namespace="table",
        identifier=item,
    )
    with uniquely(kind, wanted), resource:
        call.connection.execute(insert(lake_item_table).values(id=item, kind=kind, layer_id=layer_id))
    after = {"change": f"create_{kind}", "name": wanted, "layer": layer_id}
    call.record_change(decision, "create", kind, item, before={}, after=after)
    return item


def decide_create(call: Call, kind: str, layer_id: str) -> Decision:
    """Whether the caller may make a table or volume in a layer."""
    layer = call.facts.thing(layer_id) if kind_of(layer_id) == "layer" else None
    draft = (Table if kind == "table" else Volume)(layer=layer)
    return _targets(call).decide("create", draft, on=layer or draft)


def refuse_create(call: Call, kind: str, layer_id: str) -> NoReturn:
    """Refuse a creation: 403 with the reasons to callers who may see the layer, otherwise 404."""
    call.note_denial("create", kind, layer_id)
    call.refuse("edit", "layer", layer_id)


# Renaming


def rename_item(call: Call, item_id: str, *, name: str, layer_id: str | None = None) -> None:
    """Rename a layer, table or volume, or move a table or volume to another layer; its id and grants remain.

    It requires Manager on the item and the right to create it at the target: Editor on the target layer, or
    create_layer for a layer. Otherwise the error for a taken name would reveal hidden items.
    """
    kind = kind_of_item(call, item_id)
    decision = call.require("delete", kind, item_id)
    before = resource_row(call.connection, item_id)
    target = layer_id or before["scope_id"]
    if kind == "layer":
        if layer_id is not None:
            raise Invalid("a layer is in no layer")
        call.require("create_layer", "organization", "organization")
    elif not decide_create(call, kind, target):
        refuse_create(call, kind, target)
    wanted = checked_name(name)
    if (wanted, target) == (before["name"], before["scope_id"]):
        return
    touched = _move(call.connection, item_id, before["scope_id"], target)
    with uniquely(kind, wanted):
        writer.save(call.connection, item_id, call.now, wanted, scope=target, affected=touched)
    call.record_change(
        decision,
        "rename",
        kind,
        item_id,
        before={"name": before["name"], "layer": before["scope_id"] or None},
        after={"change": f"rename_{kind}", "name": wanted, "layer": target or None},
    )


def _move(connection: Connection, item: str, source: str, target: str) -> set[str]:
    """Move an item to another layer, with everything that references it; returns the stale audience index entries."""
    if source == target:
        # A table is also listed under its layer's name.
        inside = select(_items.id).where(_items.layer_id == item)
        return {item, *connection.execute(inside).scalars()}
    connection.execute(update(lake_item_table).where(_items.id == item).values(layer_id=target))
    connection.execute(update(table_ref_table).where(table_ref_table.c.item_id == item).values(layer_id=target))
    return {source, target} | dependents(connection, [item])


# Shared


def _targets(call: Call) -> Targets:
    return Targets(call.facts, call.subject, call.caller.narrowing)


def kind_of_item(call: Call, identifier: str) -> str:
    """The kind of a layer, table or volume; NotFound for other ids."""
    kind = kind_of(identifier)
    if kind not in KINDS:
        call.note_denial("see", kind or "", identifier)
        raise NotFound
    return str(kind)


def resource_row(connection: Connection, identifier: str) -> Any:
    return connection.execute(select(resource_table).where(_resources.id == identifier)).mappings().one()


def checked_name(name: str) -> str:
    try:
        return sql_name(name)
    except BadName as error:
        raise Invalid(f"name: {error}") from None


@contextmanager
def uniquely(kind: str, name: str, then: str = "") -> Iterator[None]:
    """Context manager around writing a name; raises Conflict if it is taken. Tables and volumes of a layer share one
    namespace.
    """
    try:
        yield
    except IntegrityError:
        among = "layer" if kind == "layer" else "table or volume"
        raise Conflict(f"A {among} called {name!r} already exists{then}") from None
