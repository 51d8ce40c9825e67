"""Table previews: select the snapshot and columns, and return rows as JSON or Arrow."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from fastapi import Response

from headgate.kit.errors import Conflict, Invalid
from headgate.lakehouse.catalog import views
from headgate.lakehouse.items import repository
from headgate.lakehouse.items.schemas import Preview, PreviewColumn
from headgate.lakehouse.sql.results import ARROW, rows
from headgate.lakehouse.tables import repository as table_repository
from headgate.lakehouse.tables.facts import type_text
from headgate.lakehouse.tables.metadata_cache import Document, LruCache, current_snapshot, document
from headgate.lakehouse.tables.scan import ScanRequest, first_rows
from headgate.platform.unit_of_work.call import Call
from headgate.platform.unit_of_work.stages import Stages

if TYPE_CHECKING:
    from pyiceberg.table.metadata import TableMetadata

MAX_CELL = 10_000
"""Maximum length of text in a JSON cell."""
MOST_PARSED = 256


@dataclass(frozen=True, slots=True)
class PreviewRequest:
    """The parameters of a preview."""

    limit: int
    snapshot: str | None
    as_of: datetime | None
    columns: tuple[str, ...]
    as_arrow: bool


def preview(stages: Stages, table: str, asked: PreviewRequest) -> Preview | Response:
    """Some rows of a table. Access is checked before the files are read and again before the rows are returned."""
    pointer = stages.read(lambda call: _begin(call, table))
    values = document(stages.services.store, pointer)
    snapshot = _snapshot(values, asked)
    metadata = parsed(pointer, values, snapshot)
    schema = _projection(metadata, values, snapshot, asked.columns)
    if snapshot is None:
        data, more = _empty(schema), False
    else:
        data, more = first_rows(stages.services.store, table, ScanRequest(metadata, snapshot, schema, asked.limit))
    stages.read(lambda call: _note(call, table, snapshot, data.num_rows))
    if asked.as_arrow:
        headers = {"X-Headgate-Snapshot": str(snapshot or ""), "X-Headgate-Truncated": str(more).lower()}
        return Response(_stream(data), media_type=ARROW, headers=headers)
    return _shown(data, schema, snapshot, more=more)


def _begin(call: Call, table: str) -> Any:
    pointer = table_repository.pointer(call.connection, table)
    if pointer is None and views.among(call.connection, [table]):
        raise Conflict("This is a view, whose rows a query gives: run SELECT * on it as SQL to see them")
    if pointer is None:
        raise Conflict("This table has no data yet: it has no commits")
    return pointer


def _note(call: Call, table: str, snapshot: int | None, count: int) -> None:
    """Authorize again and audit the read."""
    decision = call.require("execute", "table", table)
    told = {"member": call.caller.member, "read": "preview", "rows": count, "snapshot": repository.id_text(snapshot)}
    call.note_data("execute", "table", table, decision, **told)


# Snapshot selection


def _snapshot(document: Document, asked: PreviewRequest) -> int | None:
    """The id of the requested snapshot; None for a table without snapshots."""
    if asked.snapshot is not None and asked.as_of is not None:
        raise Invalid("as_of: give either a snapshot or a time")
    known = {value["snapshot-id"] for value in document.get("snapshots") or ()}
    if asked.snapshot is not None:
        wanted = int(asked.snapshot) if re.fullmatch(r"[0-9]{1,19}", asked.snapshot) else None
        if wanted not in known:
            raise Invalid("snapshot: this table has no such snapshot; GET its snapshots to list them")
        return wanted
    if asked.as_of is not None:
        return _at(document, asked.as_of, known)
    return current_snapshot(document)


def _at(document: Document, moment: datetime, known: set[int]) -> int:
    """The snapshot that was current at a given time."""
    millis = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000
    log = [value for value in document.get("snapshot-log") or () if value["timestamp-ms"] <= millis]
    if not log:
        raise Invalid("as_of: the table has no snapshot of that time; GET its snapshots to list them")
    latest: int = max(log, key=lambda value: value["timestamp-ms"])["snapshot-id"]
    if latest not in known:
        raise Invalid("as_of: the snapshot of that time has expired; GET its snapshots to list the remaining ones")
    return latest


# Metadata and columns

_parsed: "LruCache[TableMetadata]" = LruCache(MOST_PARSED, MOST_PARSED)


def parsed(pointer: Any, document: Document, snapshot: int | None) -> "TableMetadata":
    """PyIceberg metadata with this snapshot only, because parsing many snapshots takes longer than reading the rows."""

    def parse() -> "tuple[TableMetadata, int]":
        from pyiceberg.table.metadata import TableMetadataUtil

        chosen = [value for value in document.get("snapshots") or () if value["snapshot-id"] == snapshot]
        lean = {**document, "snapshots": chosen, "snapshot-log": [], "metadata-log": [], "refs": {}}
        lean |= {"current-snapshot-id": snapshot, "statistics": [], "partition-statistics": []}
        return TableMetadataUtil.parse_obj(lean), 1

    return _parsed.get((pointer["table_id"], pointer["metadata_sha256"], snapshot), parse)


def _projection(metadata: "TableMetadata", document: Document, snapshot: int | None, columns: tuple[str, ...]) -> Any:
    """The schema of the snapshot, or the requested columns of it."""
    schema = metadata.schema()
    state: Document = next((value for value in document.get("snapshots") or () if value["snapshot-id"] == snapshot), {})
    if state.get("schema-id") is not None:
        schema = metadata.schema_by_id(state["schema-id"]) or schema
    try:
        return schema.select(*columns, case_sensitive=False) if columns else schema
    except ValueError:
        names = ", ".join(field.name for field in schema.fields)[:500]
        raise Invalid(f"columns: unknown column; the columns are {names}") from None


# Rows


def _empty(schema: Any) -> Any:
    from pyiceberg.io.pyarrow import schema_to_pyarrow

    return schema_to_pyarrow(schema, include_field_ids=False).empty_table()


def _stream(data: Any) -> bytes:
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, data.schema) as writer:
        writer.write_table(data)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def _shown(data: Any, schema: Any, snapshot: int | None, *, more: bool) -> Preview:
    cut, results = False, rows(data)
    for row in results:
        for n, value in enumerate(row):
            if isinstance(value, str) and len(value) > MAX_CELL:
                row[n], cut = value[: MAX_CELL - 1] + "…", True
    kinds = schema.model_dump()["fields"]
    columns = [PreviewColumn(name=kind["name"], type=type_text(kind["type"])) for kind in kinds]
    return Preview(snapshot=repository.id_text(snapshot), columns=columns, rows=results, truncated=more, cut=cut)
