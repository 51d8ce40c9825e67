"""Layers as namespaces: created by admins, dropped when empty. The property `comment` is the layer's description; other
properties are stored as given.
"""

from typing import Any

from sqlalchemy import delete, insert, select, update

from headgate.kit.errors import Conflict, Invalid
from headgate.lakehouse.catalog import access, pointers
from headgate.lakehouse.catalog.errors import AlreadyExists, Malformed, NamespaceNotEmpty, Unprocessable
from headgate.lakehouse.catalog.models import layer_property_table
from headgate.lakehouse.catalog.names import Ident
from headgate.lakehouse.catalog.properties import MAX_PROPERTIES, MAX_VALUE, is_note
from headgate.lakehouse.catalog.table_creation import ignores_location
from headgate.lakehouse.items import service as lakehouse
from headgate.lakehouse.models import lake_text_table
from headgate.lakehouse.trash import deletion
from headgate.platform.audit.events import CHANGED
from headgate.platform.unit_of_work.call import Call

COMMENT = "comment"
LOCATION = "location"
MAX_COMMENT = 10_000
_texts, _properties = lake_text_table.c, layer_property_table.c


def create(call: Call, ident: Ident, properties: Any) -> dict[str, str]:
    """Create a layer; returns its properties."""
    kept = _checked(properties or {}, leave_out=LOCATION if ignores_location(call.settings) else None)
    if len(ident.levels) != 1:
        call.require("create_layer", "organization", "organization")
        raise Malformed("A namespace has exactly one level, the layer")
    try:
        layer = lakehouse.create_layer(call, ident.levels[0])
    except Conflict:
        raise AlreadyExists(f"Namespace already exists: {ident}") from None
    except Invalid as error:
        raise Malformed(error.detail) from None
    if COMMENT in kept:
        _describe(call, layer, kept[COMMENT])
    _note(call, layer, {name: value for name, value in kept.items() if name != COMMENT}, [])
    return kept


def drop(call: Call, ident: Ident) -> None:
    """Drop an empty layer."""
    layer = access.require_layer(call, "delete", ident)
    try:
        deletion.delete_item(call, layer)
    except Conflict as error:
        raise NamespaceNotEmpty(f"Namespace {ident} is not empty. {error.detail}") from None


def properties(call: Call, ident: Ident) -> dict[str, str]:
    """The properties of a layer that the caller may see."""
    layer = access.require_layer(call, "see", ident)
    row = select(_texts.description).where(_texts.resource_id == layer, _texts.field_id == 0)
    comment = call.connection.execute(row).scalar_one_or_none()
    notes = select(_properties.name, _properties.value).where(_properties.layer_id == layer)
    values = {row.name: row.value for row in call.connection.execute(notes.order_by(_properties.name))}
    return {**values, COMMENT: comment} if comment else values


def change(call: Call, ident: Ident, body: dict[str, Any]) -> dict[str, list[str]]:
    """Set and remove properties of a layer; returns the names that were set, removed, and missing."""
    removals = body.get("removals") or []
    if not isinstance(removals, list) or not all(isinstance(removal, str) for removal in removals):
        raise Malformed("removals must be a list of names")
    layer = pointers.layer_of(call.connection, ident)
    access.require_layer(call, "describe", ident)
    updates = _checked(body.get("updates") or {})
    if both := sorted(set(removals) & set(updates)):
        raise Unprocessable(f"The same property is in updates and removals: {', '.join(both)}")
    there = properties(call, ident)
    gone = [name for name in dict.fromkeys(removals) if name in there]
    if COMMENT in updates or COMMENT in gone:
        _describe(call, layer or "", updates.get(COMMENT))
    notes = {name: value for name, value in updates.items() if name != COMMENT}
    if len({*there, *notes}) > MAX_PROPERTIES:
        raise Malformed(f"A layer has at most {MAX_PROPERTIES} properties; remove some of {ident} first")
    _note(call, layer or "", notes, [name for name in gone if name != COMMENT])
    return {
        "updated": sorted(updates),
        "removed": gone,
        "missing": [name for name in dict.fromkeys(removals) if name not in there],
    }


def _checked(result: Any, leave_out: str | None = None) -> dict[str, str]:
    if not isinstance(result, dict) or not all(isinstance(value, str) for value in result.values()):
        raise Malformed("properties must be an object of strings")
    kept = {name: value for name, value in result.items() if name != leave_out}
    for name, value in kept.items():
        if name != COMMENT and not is_note(name):
            raise Malformed(
                f"The property {name[:300]!r} is reserved, because engines interpret it; use another name, such "
                "as 'custom.NAME'"
            )
        if name != COMMENT and (len(value) > MAX_VALUE or "\0" in value):
            raise Malformed(f"The value of the property {name!r} is longer than {MAX_VALUE} characters, or not text")
    if len(kept) > MAX_PROPERTIES:
        raise Malformed(f"A layer has at most {MAX_PROPERTIES} properties; send fewer")
    if len(kept.get(COMMENT, "")) > MAX_COMMENT or "\0" in kept.get(COMMENT, ""):
        raise Malformed(f"comment: at most {MAX_COMMENT} characters")
    return kept


def _describe(call: Call, layer: str, description: str | None) -> None:
    place = (_texts.resource_id == layer, _texts.field_id == 0)
    values = {"description": description, "updated_at": call.now, "updated_by_id": call.caller.member}
    if not call.connection.execute(update(lake_text_table).where(*place).values(values)).rowcount:
        call.connection.execute(insert(lake_text_table).values(resource_id=layer, field_id=0, **values))
    after = {"change": "describe", "description": description}
    event = call.event(CHANGED, allowed=True, action="describe", kind="layer", resource_id=layer, after=after)
    call.record(event)


def _note(call: Call, layer: str, updates: dict[str, str], removals: list[str]) -> None:
    """Set and remove user-defined properties."""
    names = [*updates, *removals]
    if not names:
        return
    place = (_properties.layer_id == layer, _properties.name.in_(names))
    call.connection.execute(delete(layer_property_table).where(*place))
    rows = [{"layer_id": layer, "name": name, "value": value} for name, value in updates.items()]
    if rows:
        call.connection.execute(insert(layer_property_table), rows)
    after = {"change": "properties", "set": updates, "removed": removals}
    event = call.event(CHANGED, allowed=True, action="describe", kind="layer", resource_id=layer, after=after)
    call.record(event)
