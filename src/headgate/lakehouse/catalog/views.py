"""Views: tables whose rows a query gives. A view is read with its reader's own rights on everything behind it.

To the access model a view is a table: Viewer sees it, Editor changes it, Manager drops it. What it reads is known by
name from the statement that saved it, and judged for the reader each time it is loaded. Who may not read all of that
may not load the view, and is not told what is missing.
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
"""How many tables and views a view may read, those behind its views included."""
_views = view_table.c


@dataclass(frozen=True, slots=True)
class View:
    """A view that is there."""

    id: str
    layer_id: str
    version: int
    metadata: Document
    reads: tuple[str, ...]
    saved_at: datetime
    saved_by: str | None


# Finding


_ID = (
    "SELECT v.view_id, it.scope_id FROM resources ly JOIN resources it ON it.namespace = 'table' "
    "AND it.scope_id = ly.id AND it.name_key = :name JOIN views v ON v.view_id = it.id "
    "WHERE ly.namespace = 'layer' AND ly.scope_id = '' AND ly.name_key = :layer"
)


def find(connection: Connection, ident: Ident) -> View | None:
    """The view of a name, whoever may see it."""
    rows = fetch(connection, _ID, {"layer": ident.layer_key, "name": ident.table_key})
    return stored(connection, rows[0][0], rows[0][1]) if rows else None


def stored(connection: Connection, view_id: str, layer_id: str = "") -> View | None:
    """The view of an id; None if there is none, or if it is a table of its own."""
    row = connection.execute(select(view_table).where(_views.view_id == view_id)).mappings().one_or_none()
    if row is None:
        return None
    saved = (row["saved_at"], row["saved_by_id"])
    return View(view_id, layer_id, row["version"], row["metadata"], tuple(row["reads"]), *saved)


def among(connection: Connection, ids: Sequence[str]) -> set[str]:
    """Which of these are views."""
    return set(connection.execute(select(_views.view_id).where(_views.view_id.in_(ids))).scalars())


def missing(ident: Ident) -> NoSuchView:
    """That there is no such view: one answer for what does not exist and for what is hidden."""
    return NoSuchView(f"View does not exist: {ident}")


def require(call: Call, action: str, ident: Ident) -> View:
    """The view of a name, if the caller has this action on it.

    That there is none is no refusal to write down: engines ask for a view of each name before they ask for a table.
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
    """That a view is there for the caller."""
    stages.read(lambda call: require(call, "see", ident))
    return Response(status_code=204)


def answer(view: View) -> Response:
    """A view as the specification writes it, in its current version alone."""
    location = f"{_location(view.id)}/{view.version}"
    metadata = view_metadata.shown(view.metadata)
    return json_response({"metadata-location": location, "metadata": metadata, "config": {}})


def _location(view_id: str) -> str:
    """Where a view is, which the specification asks for: nowhere that files lie, since it has none."""
    return f"headgate:views/{view_id}"


def _readable(call: Call, ident: Ident) -> View | None:
    """The view; None if it must be written down first that this work loads it."""
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
    """Refuse a view if the caller may not read everything behind it, without a word on what that is."""
    if is_readable(call, ident, reads):
        return
    call.note_denial("execute", "table", view_id)
    raise Forbidden(
        f"You may see the view {ident}, but not read it: it reads a table or view that does not exist, or on "
        "which you are not Viewer. Ask its author or an admin for Viewer on its tables"
    )


def is_readable(call: Call, ident: Ident, reads: tuple[str, ...]) -> bool:
    """Whether the caller may read everything behind a view. NotWritten names a table of theirs that has no data."""
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
    """All tables and views that these lead to; Malformed if the view itself is among them, or if they are too many."""
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
    """Make a view of what a statement has analysed."""
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
    """Change a view's query or properties, by a statement."""
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
    """The statement by which a view is made or changed: what it reads is known by what the statement has loaded."""
    work = call.caller.work
    if work is None or work.purpose != "statement":
        raise Forbidden(
            "Views are created and changed with CREATE OR REPLACE VIEW in Headgate, which determines the tables "
            "that they read. Other engines can only list and load views"
        )
    return work


def _reads(call: Call, ident: Ident, work: WorkToken) -> tuple[str, ...]:
    """What the statement has loaded, as the caller may read it now; Malformed if the view would read itself.

    Replacing a view loads it too; that it names itself is for the guard to refuse, which sees the query.
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
    """Give a view another name, or another layer; its id and grants stay."""
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
    """The name of the view that a body asks for."""
    return table_creation.wanted(body, levels)
