"""Facts about a table's data: columns, partitions, sort order, properties and snapshots, without storage locations."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from headgate.kit.paging import Cursor
from headgate.lakehouse.items.repository import Texts, id_text, number_of
from headgate.lakehouse.items.schemas import (
    ColumnOut,
    LakeResource,
    PartitionOut,
    SnapshotOut,
    SortOut,
    TableOut,
    ViewOut,
)
from headgate.lakehouse.tables.metadata_cache import Document, current_schema, current_snapshot, snapshots
from headgate.organization.members.schemas import Named

_HIDDEN_KEYS = re.compile(r"path|location|uri|secret|token|password|credential|key", re.IGNORECASE)
_PLACE = re.compile(r"[a-z0-9+.-]+:/|^/", re.IGNORECASE)


def facts(resource: LakeResource, pointer: Any, document: Document | None, texts: Texts) -> TableOut:
    """A table with all its facts."""
    common = dict(resource)
    if document is None:
        return TableOut(**common, **_EMPTY)
    states = snapshots(document)
    current = current_snapshot(document)
    by = Named(id=pointer["committed_by_id"], name=pointer["committed_by"]) if pointer["committed_by"] else None
    return TableOut(
        **common,
        format_version=document["format-version"],
        columns=columns(document, texts),
        partitions=_partitions(document),
        sort_order=_sort_order(document),
        properties=_properties(document.get("properties") or {}),
        rows=pointer["rows"],
        bytes=pointer["bytes"],
        files=pointer["files"],
        snapshots=len(states),
        snapshot=next((_snapshot(state, current) for state in states if state["snapshot-id"] == current), None),
        committed_at=pointer["committed_at"],
        committed_by=by,
    )


_UNKNOWN = dict.fromkeys(("format_version", "rows", "bytes", "files", "snapshot", "committed_at", "committed_by"))
_EMPTY: dict[str, Any] = {
    **_UNKNOWN,
    "columns": [],
    "partitions": [],
    "sort_order": [],
    "properties": {},
    "snapshots": 0,
}


def facts_of_view(resource: LakeResource, schema: Document, properties: dict[str, str], view: ViewOut) -> TableOut:
    """A view with all its facts."""
    values = {"schemas": [schema], "current-schema-id": schema["schema-id"]}
    known = {"columns": columns(values, {}), "properties": _properties(properties)}
    return TableOut(**dict(resource), **{**_EMPTY, **known}, view=view)


# Columns


def columns(document: Document, texts: Texts) -> list[ColumnOut]:
    """The columns of the current schema, with titles and descriptions."""
    return [_column(field, "", texts) for field in current_schema(document)["fields"]]


def _column(field: Document, above: str, texts: Texts) -> ColumnOut:
    path = f"{above}.{field['name']}" if above else field["name"]
    title, description = texts.get(field["id"], (None, None))
    return ColumnOut(
        id=field["id"],
        name=field["name"],
        path=path,
        type=type_text(field["type"]),
        required=field["required"],
        doc=field.get("doc"),
        title=title,
        description=description,
        fields=[_column(value, path, texts) for value in _inner(field["type"])],
    )


def _inner(kind: Any) -> Iterator[Document]:
    """The fields of a nested type, as columns."""
    if not isinstance(kind, dict):
        return
    if kind["type"] == "struct":
        yield from kind["fields"]
    if kind["type"] == "list":
        yield {
            "id": kind["element-id"],
            "name": "element",
            "type": kind["element"],
            "required": kind["element-required"],
        }
    if kind["type"] == "map":
        yield {"id": kind["key-id"], "name": "key", "type": kind["key"], "required": True}
        yield {"id": kind["value-id"], "name": "value", "type": kind["value"], "required": kind["value-required"]}


def type_text(kind: Any) -> str:
    """A type in Iceberg's notation."""
    if not isinstance(kind, dict):
        return str(kind)
    if kind["type"] == "list":
        return f"list<{type_text(kind['element'])}>"
    if kind["type"] == "map":
        return f"map<{type_text(kind['key'])}, {type_text(kind['value'])}>"
    inner = ", ".join(f"{value['name']}: {type_text(value['type'])}" for value in kind["fields"])
    return f"struct<{inner}>"


def field_ids(document: Document) -> dict[str, int]:
    """The id of every field of the current schema, by its path."""
    known: dict[str, int] = {}
    pending = columns(document, {})
    while pending:
        column = pending.pop()
        known[column.path] = column.id
        pending += column.fields
    return known


# Partitions, order and properties


def _names(document: Document) -> dict[int, str]:
    return {identifier: path for path, identifier in field_ids(document).items()}


def _partitions(document: Document) -> list[PartitionOut]:
    names = _names(document)
    specs = document.get("partition-specs") or ()
    spec: Document = next(
        (spec for spec in specs if spec["spec-id"] == document.get("default-spec-id")), {"fields": []}
    )
    return [
        PartitionOut(name=value["name"], column=names.get(_source(value)), transform=value["transform"])
        for value in spec["fields"]
    ]


def _sort_order(document: Document) -> list[SortOut]:
    names, orders = _names(document), document.get("sort-orders") or ()
    order: Document = next(
        (order for order in orders if order["order-id"] == document.get("default-sort-order-id")), {"fields": []}
    )
    return [
        SortOut(
            column=names.get(_source(value)),
            transform=value["transform"],
            direction=value["direction"],
            nulls=value["null-order"],
        )
        for value in order["fields"]
    ]


def _source(field: Document) -> int:
    identifier: int = field["source-id"] if "source-id" in field else field["source-ids"][0]
    return identifier


def _properties(result: dict[str, str]) -> dict[str, str]:
    """Properties without those that could reveal storage locations or access to them."""
    return {
        name: value
        for name, value in sorted(result.items())
        if not _HIDDEN_KEYS.search(name) and not _PLACE.search(str(value))
    }


# Snapshots


def _snapshot(document: Document, current: int | None) -> SnapshotOut:
    summary = document.get("summary") or {}
    return SnapshotOut(
        id=str(document["snapshot-id"]),
        parent=id_text(document.get("parent-snapshot-id")),
        at=instant_of(document),
        operation=summary.get("operation"),
        is_current=document["snapshot-id"] == current,
        rows=_number(summary, "total-records"),
        files=_number(summary, "total-data-files"),
        bytes=_number(summary, "total-files-size"),
        added_rows=_number(summary, "added-records"),
        deleted_rows=_number(summary, "deleted-records"),
    )


def instant_of(snapshot: Document) -> datetime:
    """The time of a snapshot."""
    return datetime.fromtimestamp(snapshot["timestamp-ms"] / 1000, UTC)


def _number(summary: dict[str, str], name: str) -> int | None:
    """A number in a summary; engines may write arbitrary values there."""
    value = str(summary.get(name, ""))
    return int(value) if re.fullmatch(r"[0-9]{1,18}", value) else None


def snapshots_page(
    document: Document, limit: int, after: Cursor | None, purpose: str
) -> tuple[list[SnapshotOut], str | None]:
    """A page of a table's snapshots, newest first."""
    states, current = snapshots(document), current_snapshot(document)
    if after is not None:
        place = (number_of(after.value), number_of(after.id))
        states = [state for state in states if (state["timestamp-ms"], state["snapshot-id"]) < place]
    last = states[limit - 1] if len(states) > limit else None
    following = Cursor(str(last["timestamp-ms"]), str(last["snapshot-id"])).encode(purpose) if last else None
    return [_snapshot(value, current) for value in states[:limit]], following
