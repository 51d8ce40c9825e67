"""Views: tables whose rows come from a query. A view is read with the reader's own rights on everything behind it.

In the access model a view is a table: a Viewer sees it, an Editor changes it, a Manager drops it. The tables it reads
are known from the statement that saved it, and are authorized for the reader at each load. A reader without access to
all of them cannot load the view and is not told which are missing.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from fastapi import Response
from sqlalchemy import Connection, insert, select, update

from headgate.kit.database import fetch
from headgate.kit.errors import Conflict, Invalid, NotFound
from headgate.kit.ids import new_id
from headgate.lakehouse.catalog import access, table_creation, table_loading, view_metadata
from headgate.lakehouse.catalog.errors import (
    AlreadyExists,
    CommitFailed,
    Forbidden,
    Malformed,
    NoSuchView,
    NotWritten,
)
from headgate.lakehouse.catalog.models import view_table
from headgate.lakehouse.catalog.names import Ident
from headgate.lakehouse.catalog.pointers import CatalogEntry
from headgate.lakehouse.catalog.responses import json_response
from headgate.lakehouse.catalog.view_metadata import Document
from headgate.lakehouse.catalog.work_tokens import loaded
from headgate.lakehouse.items import service as lakehouse
from headgate.lakehouse.trash import deletion
from headgate.platform.audit.events import READ
from headgate.platform.unit_of_work.call import Call
from headgate.platform.unit_of_work.stages import Stages
from headgate.platform.unit_of_work.work import WorkToken

SAVED = "view.saved"
MAX_BEHIND = 500
"""Maximum number of tables and views that a view may read, directly and indirectly."""
_views = view_table.c


@dataclass(frozen=True, slots=True)
class View:
    """An existing view."""

    id: str
    layer_id: str
    version: int
    metadata: Document
    reads: tuple[str, ...]
    saved_at: datetime
    saved_by: str | None


# Lookup


_ID = (
    "SELECT v.view_id, it.scope_id FROM resources ly JOIN resources it ON it.namespace = 'table' "
    "AND it.scope_id = ly.id AND it.name_key = :name JOIN views v ON v.view_id = it.id "
    "WHERE ly.namespace = 'layer' AND ly.scope_id = '' AND ly.name_key = :layer"
)


def find(connection: Connection, ident: Ident) -> View | None:
    """The view with this name, without authorization."""
    rows = fetch(connection, _ID, {"layer": ident.layer_key, "name": ident.table_key})
    return stored(connection, rows[0][0], rows[0][1]) if rows else None


def stored(connection: Connection, view_id: str, layer_id: str = "") -> View | None:
    """The view with this id; None if it does not exist or is a stored table."""
    row = connection.execute(select(view_table).where(_views.view_id == view_id)).mappings().one_or_none()
    if row is None:
        return None
    saved = (row["saved_at"], row["saved_by_id"])
    return View(view_id, layer_id, row["version"], row["metadata"], tuple(row["reads"]), *saved)


def among(connection: Connection, ids: Sequence[str]) -> set[str]:
    """The subset of ids that are views."""
    return set(connection.execute(select(_views.view_id).where(_views.view_id.in_(ids))).scalars())


def missing(ident: Ident) -> NoSuchView:
    """The error for a missing view. It is the same for views that do not exist and views hidden from the caller."""
    return NoSuchView(f"View does not exist: {ident}")


def require(call: Call, action: str, ident: Ident) -> View:
    """The view with this name, if the caller has this action on it.

    A missing view is not audited as a refusal, because engines look for a view of each name before a table.
    """
    view = find(call.connection, ident)
    if view is None:
        raise missing(ident)
    try:
        call.require(action, "table", view.id)
    except NotFound:
        raise missing(ident) from None
    return view


# Reading


def load(stages: Stages, ident: Ident) -> Response:
    """A view for an engine, if the caller may read everything behind it."""
    view = stages.read(lambda call: _readable(call, ident))
    if view is None:
        view = stages.write(lambda call: _noted(call, ident))
    return answer(view)


def exists(stages: Stages, ident: Ident) -> Response:
    """Check that the view exists for the caller."""
    stages.read(lambda call: require(call, "see", ident))
    return Response(status_code=204)


def answer(view: View) -> Response:
    """A view in the format of the specification, in its current version only."""
    location = f"{_location(view.id)}/{view.version}"
    metadata = view_metadata.shown(view.metadata)
    return json_response({"metadata-location": location, "metadata": metadata, "config": {}})


def _location(view_id: str) -> str:
    """The location that the specification requires. A view has no files, so nothing is stored there."""
    return f"headgate:views/{view_id}"


def _readable(call: Call, ident: Ident) -> View | None:
    """The view; None if this load must be recorded first."""
    work = call.caller.work
    return _decided(call, ident) if work is None or not work.records_loads else None


def _noted(call: Call, ident: Ident) -> View:
    view, work = _decided(call, ident), call.caller.work
    assert work is not None  # noqa: S101 - else it was read without being written down
    table_loading.record(call.connection, work, ident, CatalogEntry(view.layer_id, view.id))
    return view


def _decided(call: Call, ident: Ident) -> View:
    view = require(call, "execute", ident)
    check_readable(call, ident, view.reads, view.id)
    event = call.event(READ, allowed=True, action="execute", kind="table", resource_id=view.id)
    call.recorded.reads.append(event)
    return view


def check_readable(call: Call, ident: Ident, reads: tuple[str, ...], view_id: str | None = None) -> None:
    """Refuse a view if the caller may not read everything behind it, without naming what is missing."""
    if is_readable(call, ident, reads):
        return
    call.note_denial("execute", "table", view_id)
    raise Forbidden(
        f"You may see the view {ident}, but not read it: it reads a table or view that does not exist, or on "
        "which you are not Viewer. Ask its author or an admin for Viewer on its tables"
    )


def is_readable(call: Call, ident: Ident, reads: tuple[str, ...]) -> bool:
    """Whether the caller may read everything behind a view. Raises NotWritten if one of the tables has no data."""
    return all(_may_read(call, behind) for behind in _behind(call.connection, ident, reads))


def _may_read(call: Call, behind: Ident) -> bool:
    view = find(call.connection, behind)
    if view is not None:
        return bool(call.decide("execute", "table", view.id))
    entry = access.find(call, behind)
    if entry.is_new and entry.layer_id:
        return bool(access.decide_output(call, entry.layer_id))
    if entry.table_id is None or not call.decide("execute", "table", entry.table_id):
        return False
    if entry.pointer is None:
        raise NotWritten(str(behind))
    return True


def _behind(connection: Connection, ident: Ident, reads: tuple[str, ...]) -> Iterator[Ident]:
    """All tables and views behind these; Malformed if there is a cycle or too many."""
    waiting, known = list(reads), set[str]()
    while waiting:
        ref = waiting.pop()
        if ref in known:
            continue
        if ref == ident.ref:
            raise Malformed(f"The view {ident} would read itself; remove it from the query")
        known.add(ref)
        if len(known) > MAX_BEHIND:
            raise Malformed(f"The view {ident} would read more than {MAX_BEHIND} tables and views")
        layer, _, name = ref.partition(".")
        behind = Ident((layer,), name)
        yield behind
        view = find(connection, behind)
        waiting += view.reads if view else ()


# Changing


def create(stages: Stages, ident: Ident, body: Document) -> Response:
    """Create a view from a query that a statement has analysed."""
    return answer(stages.write(lambda call: _create(call, ident, body)))


def _create(call: Call, ident: Ident, body: Document) -> View:
    work = _statement(call)
    layer = access.require_create(call, ident)
    if find(call.connection, ident) is not None:
        raise AlreadyExists(f"View already exists: {ident}")
    if access.find(call, ident).table_id is not None:
        raise AlreadyExists(f"Table with same name already exists: {ident}")
    reads = _reads(call, ident, work)
    view_id = new_id("table")
    values = view_metadata.new(body, _location(view_id), call.now)
    try:
        lakehouse.create_item(call, "table", layer, ident.table_key, item_id=view_id)
    except Conflict:
        raise AlreadyExists(f"A table or volume with same name already exists: {ident}") from None
    row = {"view_id": view_id, "uuid": values["view-uuid"], "version": 1, "metadata": values, "reads": list(reads)}
    call.connection.execute(insert(view_table).values(**row, saved_at=call.now, saved_by_id=call.caller.author))
    _record(call, view_id, values, reads, 1)
    return View(view_id, layer, 1, values, reads, call.now, call.caller.author)


def replace(stages: Stages, ident: Ident, body: Document) -> Response:
    """Change a view's query or properties in a statement."""
    return answer(stages.write(lambda call: _replace(call, ident, body)))


def _replace(call: Call, ident: Ident, body: Document) -> View:
    work = _statement(call)
    view = require(call, "edit", ident)
    result = view_metadata.changed(view.metadata, body, call.now)
    is_new_query = result["current-version-id"] != view.metadata["current-version-id"]
    reads = _reads(call, ident, work) if is_new_query else view.reads
    version = view.version + 1
    row = {"version": version, "metadata": result, "reads": list(reads)}
    values = {**row, "saved_at": call.now, "saved_by_id": call.caller.author}
    same = (_views.view_id == view.id, _views.version == view.version)
    if call.connection.execute(update(view_table).where(*same).values(values)).rowcount != 1:
        raise CommitFailed(f"The view {ident} was changed concurrently; run the statement again")
    _record(call, view.id, result, reads, version)
    return View(view.id, view.layer_id, version, result, reads, call.now, call.caller.author)


def _statement(call: Call) -> WorkToken:
    """The statement that creates or changes a view; its recorded loads are the view's inputs."""
    work = call.caller.work
    if work is None or work.purpose != "statement":
        raise Forbidden(
            "Views are created and changed with CREATE OR REPLACE VIEW in Headgate, which determines the tables "
            "that they read. Other engines can only list and load views"
        )
    return work


def _reads(call: Call, ident: Ident, work: WorkToken) -> tuple[str, ...]:
    """The tables that the statement has loaded and the caller may read now; Malformed if the view reads itself.

    Replacing a view loads it too. A query that names the view itself is refused by the guard, which sees the SQL.
    """
    names = {ref for ref, table in loaded(call.connection, work.id).items() if table is not None and ref != ident.ref}
    reads = tuple(sorted(names))
    check_readable(call, ident, reads)
    return reads


def _record(call: Call, view_id: str, document: Document, reads: tuple[str, ...], version: int) -> None:
    after: dict[str, Any] = {"version": version, "reads": list(reads), "sql": view_metadata.sql(document)[:2000]}
    call.record(call.event(SAVED, allowed=True, action="edit", kind="table", resource_id=view_id, after=after))


def drop(stages: Stages, ident: Ident) -> None:
    """Drop a view; it can be restored for a while."""
    stages.write(lambda call: _drop(call, ident))


def _drop(call: Call, ident: Ident) -> None:
    view = require(call, "delete", ident)
    _refuse_runs(call, "drops")
    deletion.delete_item(call, view.id)


def rename(stages: Stages, source: Ident, target: Ident) -> None:
    """Rename a view or move it to another layer; its id and grants remain."""
    stages.write(lambda call: _rename(call, source, target))


def _rename(call: Call, source: Ident, target: Ident) -> None:
    view = require(call, "delete", source)
    _refuse_runs(call, "renames")
    layer = access.require_create(call, target)
    try:
        lakehouse.rename_item(call, view.id, name=target.table or "", layer_id=layer)
    except Conflict:
        raise AlreadyExists(f"Target already exists: {target}") from None
    except NotFound:
        raise missing(source) from None
    except Invalid as error:
        raise Malformed(error.detail) from None


def _refuse_runs(call: Call, what: str) -> None:
    if call.caller.work is not None and call.caller.work.run is not None:
        raise Forbidden(f"A pipeline run {what} no view")


def wanted(body: Document, levels: tuple[str, ...]) -> Ident:
    """The view name in a request body."""
    return table_creation.wanted(body, levels)
