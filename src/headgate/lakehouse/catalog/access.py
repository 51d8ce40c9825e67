"""Authorization of catalog requests. The rule tables decide; this module turns a refusal into Iceberg's errors."""

from typing import NoReturn

from headgate.access.decision import Decision
from headgate.kit.errors import Denied, NotFound
from headgate.lakehouse.catalog import pointers
from headgate.lakehouse.catalog.config import is_folder
from headgate.lakehouse.catalog.errors import AlreadyExists, Forbidden, NoSuchNamespace, NoSuchTable, NotWritten
from headgate.lakehouse.catalog.names import Ident
from headgate.lakehouse.catalog.pointers import CatalogEntry
from headgate.lakehouse.items.service import decide_create, refuse_create
from headgate.platform.authorization.questions import Question, decide
from headgate.platform.authorization.refusals import asked
from headgate.platform.unit_of_work.call import Call

SAME_HOST = "same-host"


def require_layer(call: Call, action: str, ident: Ident) -> str:
    """The id of a layer on which the caller has an action; NoSuchNamespace if they may not see it."""
    result = pointers.layer_of(call.connection, ident)
    try:
        call.require(action, "layer", result)
    except NotFound:
        raise no_namespace(ident) from None
    return result or ""


def find(call: Call, ident: Ident) -> CatalogEntry:
    """The table that a name refers to: the run's own pointer if the request belongs to a run that has one, otherwise
    the public one.
    """
    work = call.caller.work
    return pointers.find(call.connection, ident, work.run if work else None)


def require_table(call: Call, action: str, ident: Ident, entry: CatalogEntry, doing: str | None = None) -> Decision:
    """The decision on a table that has a pointer; NoSuchTable if it does not exist or the caller may not see it.

    `doing` names the refused operation if it differs from the action: several operations need the right to delete.
    """
    if entry.is_new and entry.layer_id:
        return require_own(call, ident, entry)
    if entry.pointer is None and may_know(call, entry):
        raise NotWritten(str(ident))
    try:
        if entry.pointer is None:
            call.refuse(action, "table", None)
        return call.require(action, "table", entry.table_id)
    except NotFound:
        raise missing(ident) from None
    except Denied as error:
        if doing is None:
            raise
        thing = call.facts.thing(entry.table_id)
        raise Denied(error.detail.replace(asked(action, thing), f"{doing} table {ident}", 1), **error.more) from None


def missing(ident: Ident) -> NoSuchTable:
    """The error for a missing table. It is the same for tables that do not exist and tables hidden from the caller."""
    return NoSuchTable(f"Table does not exist: {ident}")


def require_own(call: Call, ident: Ident, entry: CatalogEntry) -> Decision:
    """The decision on a table that exists only in the caller's run: whether its member may still create it."""
    decision = decide_output(call, entry.layer_id or "")
    if not decision:
        call.note_denial("create", "table", entry.table_id)
        raise missing(ident)
    return decision


def decide_output(call: Call, layer_id: str) -> Decision:
    """Whether the member that a run acts for may create a table in a layer. A separate check requires that the output
    was declared.
    """
    work = call.caller.work
    assert work is not None  # noqa: S101 - only a run has tables of its own
    question = Question(call.caller.member, "create", "table", None, {"layer": layer_id}, work.granted)
    return decide(call.connection, question, call.now)


def require_create(call: Call, ident: Ident) -> str:
    """The id of a layer in which the caller may create tables."""
    layer = pointers.layer_of(call.connection, ident)
    try:
        if layer is None:
            call.refuse("edit", "layer", None)
        if not decide_create(call, "table", layer):
            refuse_create(call, "table", layer)
    except NotFound:
        raise no_namespace(ident) from None
    return layer


def require_declared(call: Call, ident: Ident, table_id: str) -> None:
    """Refuse a declared table without content to callers who may not write it."""
    try:
        call.require("edit", "table", table_id)
    except NotFound:
        require_create(call, ident)
        raise AlreadyExists(f"Table already exists: {ident}") from None


def may_know(call: Call, entry: CatalogEntry) -> bool:
    """Whether the caller may know that a table exists."""
    return entry.is_new or (entry.table_id is not None and call.may_see(entry.table_id))


def no_namespace(ident: Ident) -> NoSuchNamespace:
    """The error for a missing layer."""
    return NoSuchNamespace(f"Namespace does not exist: {Ident(ident.levels)}")


def require_engine(call: Call) -> None:
    """Refuse file access to external engines if the warehouse is a local folder, unless the operator trusts all
    processes on this host.
    """
    trusts = call.settings.warehouse.external_engines == SAME_HOST
    if call.caller.work is None and is_folder(call.services.store) and not trusts:
        refuse_engine()


def refuse_engine() -> NoReturn:
    """Raise the error that says why an engine cannot read or write here."""
    raise Forbidden(
        "The warehouse is a folder, protected only by file permissions, so other engines may not load, create or "
        "change tables. Run SQL in Headgate, or ask the operator to set `warehouse.external_engines` to "
        '"same-host"'
    )
