"""Loads a table: authorizes, then returns the stored bytes unchanged. A probe can also load a declared table without
data.
"""

import hashlib
import json
from dataclasses import dataclass
from typing import Any

from fastapi import Response
from sqlalchemy import Connection, insert, select, update
from sqlalchemy.exc import IntegrityError

from headgate.kit.errors import Problem
from headgate.lakehouse.catalog import access, declared_tables, metadata_files, pointers
from headgate.lakehouse.catalog.client_config import may_write, told_of
from headgate.lakehouse.catalog.errors import NotWritten
from headgate.lakehouse.catalog.models import work_load_table
from headgate.lakehouse.catalog.names import Ident
from headgate.lakehouse.catalog.pointers import CatalogEntry, Pointer
from headgate.platform.audit.events import READ
from headgate.platform.unit_of_work.call import Call
from headgate.platform.unit_of_work.stages import Stages
from headgate.platform.unit_of_work.work import WorkToken

ALL, REFS = "all", "refs"
_loads = work_load_table.c


@dataclass(frozen=True, slots=True)
class LoadableTable:
    """A table that the caller may load."""

    table_id: str
    pointer: Pointer | None
    writes: bool
    """Whether the credentials may write; evaluated only if credentials are issued."""
    to_come: declared_tables.Fields | None = None
    """The expected columns of a table that has no pointer yet."""


def load(stages: Stages, ident: Ident, mode: str, known: str | None) -> Response:
    """The table, or 304 if the client's ETag is current. Authorization comes first."""
    seen = _seen(stages, ident)
    store, told = stages.services.store, told_of(stages, seen.table_id, writes=seen.writes)
    pointer = seen.pointer
    if pointer is None:
        content = declared_tables.content(store, seen.table_id, seen.to_come or [])
        return Response(metadata_files.answer(None, content, told), media_type="application/json")
    tag = etag(pointer, told, mode)
    if known is not None and tag in (value.strip().removeprefix("W/") for value in known.split(",")):
        return Response(status_code=304, headers={"ETag": tag})
    content = metadata_files.read_metadata(store, seen.table_id, pointer.metadata_file, pointer.metadata_sha256)
    if mode == REFS:
        content = metadata_files.with_referenced_snapshots(content)
    location = metadata_files.url(store, seen.table_id, pointer.metadata_file)
    return Response(
        metadata_files.answer(location, content, told), headers={"ETag": tag}, media_type="application/json"
    )


def exists(stages: Stages, ident: Ident) -> Response:
    """Check that the table exists for the caller."""

    def work(call: Call) -> None:
        access.require_table(call, "see", ident, access.find(call, ident))

    stages.read(work)
    return Response(status_code=204)


def etag(pointer: Pointer, told: dict[str, Any], mode: str) -> str:
    """The ETag of a response. It changes with the metadata and with the additional fields."""
    result = hashlib.sha256(json.dumps([pointer.metadata_sha256, told, mode], sort_keys=True).encode())
    return f'"{result.hexdigest()[:40]}"'


def _seen(stages: Stages, ident: Ident) -> LoadableTable:
    """Authorize, and record or pin the load before the response is sent, if the work requires it."""

    def look(call: Call) -> LoadableTable | None:
        entry = access.find(call, ident)
        return None if _must_write(call, ident, entry) else _decided(call, ident, entry)

    def look_and_write(call: Call) -> LoadableTable | Problem:
        entry = access.find(call, ident)
        try:
            seen: LoadableTable | Problem = _decided(call, ident, entry)
        except Problem as problem:
            seen = problem
        if isinstance(seen, NotWritten):
            entry = CatalogEntry(entry.layer_id)
        _write(call, ident, entry, is_seen=isinstance(seen, LoadableTable | NotWritten))
        return seen

    seen = stages.read(look) or stages.write(look_and_write)
    if isinstance(seen, Problem):
        raise seen
    return seen


def _decided(call: Call, ident: Ident, entry: CatalogEntry) -> LoadableTable:
    to_come = declared_tables.fields(call, ident, entry)
    if to_come is not None:
        return LoadableTable(declared_tables.table_id(entry), None, writes=False, to_come=to_come)
    decision = access.require_table(call, "execute", ident, entry)
    access.require_engine(call)
    assert entry.table_id is not None and entry.pointer is not None  # noqa: S101, PT018 - else it was refused
    event = call.event(
        READ, allowed=True, action="execute", kind="table", resource_id=entry.table_id, via=list(decision.via)
    )
    call.recorded.reads.append(event)
    return LoadableTable(entry.table_id, entry.pointer, may_write(call, entry.table_id))


def _must_write(call: Call, ident: Ident, entry: CatalogEntry) -> bool:
    work = call.caller.work
    if work is None or not ident.has_one_level:
        return False
    if work.records_loads:
        row = select(_loads.ref).where(_loads.work_id == work.id, _loads.ref == ident.ref)
        return call.connection.execute(row).first() is None
    return _must_pin(work, entry)


def _must_pin(work: WorkToken, entry: CatalogEntry) -> bool:
    """Whether an output gets its own pointer: from its first load on, the run sees that version."""
    wanted = entry.table_id is not None and entry.pointer is not None and not entry.is_own
    return wanted and work.run is not None and work.writes(entry.table_id or "")


def _write(call: Call, ident: Ident, entry: CatalogEntry, *, is_seen: bool) -> None:
    work = call.caller.work
    if work is not None and work.records_loads:
        record(call.connection, work, ident, entry if is_seen else None)
    elif work is not None and work.run is not None and is_seen and _must_pin(work, entry):
        pointers.pin(call.connection, work.run, entry, ident.table_key, call.now)


def record(connection: Connection, work: WorkToken, ident: Ident, entry: CatalogEntry | None) -> None:
    """Record a load of a probe or statement; without a table, a name that could not be loaded."""
    layer = entry.layer_id if entry else None
    table = entry.table_id if entry else None
    row = {"work_id": work.id, "ref": ident.ref, "table_id": table, "layer_id": layer}
    try:
        with connection.begin_nested():
            connection.execute(insert(work_load_table).values(row))
    except IntegrityError:
        # Engines look up each name as a table and as a view; a hit counts.
        same = (_loads.work_id == work.id, _loads.ref == ident.ref, _loads.table_id.is_(None))
        if table is not None:
            connection.execute(update(work_load_table).where(*same).values(table_id=table, layer_id=layer))
