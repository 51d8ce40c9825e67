"""Declared tables that no run has written yet, as probes see them: empty, with their expected columns.

Only probes see them, because a probe analyses a query and executes nothing. Such a table has no file and no pointer.
Its metadata is generated for the response, and nothing can be committed to it.
"""

import uuid
from typing import TYPE_CHECKING, Any

from sqlalchemy import select

from headgate.kit.columns import METADATA
from headgate.kit.ids import new_id
from headgate.lakehouse.catalog import metadata_files
from headgate.lakehouse.catalog.models import probed_schema_table, work_token_table
from headgate.lakehouse.catalog.names import Ident
from headgate.lakehouse.catalog.pointers import CatalogEntry
from headgate.lakehouse.catalog.table_creation import NewTable, first_metadata
from headgate.platform.unit_of_work.call import Call

if TYPE_CHECKING:
    from headgate.warehouse.store import Store

PROBE = "probe"
OWN, ANALYSED, COLUMNS = "own", "analysed", "columns"
"""Keys in a probe's statement about its own output: the name and, once known, the columns."""
_probed, _works = probed_schema_table.c, work_token_table.c

Fields = list[dict[str, Any]]


def fields(call: Call, ident: Ident, entry: CatalogEntry) -> Fields | None:
    """The expected columns of a table, if the caller is a probe that may read the table or writes it; otherwise
    None.
    """
    work = call.caller.work
    if work is None or work.purpose != PROBE or entry.pointer is not None or not ident.has_one_level:
        return None
    return _own(call, work.id, ident) or _stored(call, entry)


def _own(call: Call, work_id: str, ident: Ident) -> Fields | None:
    """The columns that the probe has analysed for its own output."""
    statements = METADATA.tables["statements"]
    joined = statements.join(work_token_table, _works.statement_id == statements.c.id)
    query = select(statements.c.save).select_from(joined).where(_works.id == work_id)
    save = call.connection.execute(query).scalar() or {}
    if save.get(OWN) != ident.ref:
        return None
    return (save.get(ANALYSED) or {}).get(COLUMNS)


def _stored(call: Call, entry: CatalogEntry) -> Fields | None:
    if entry.table_id is None or not call.decide("execute", "table", entry.table_id):
        return None
    stored: Fields | None = call.connection.execute(
        select(_probed.columns).where(_probed.table_id == entry.table_id)
    ).scalar()
    return stored


def table_id(entry: CatalogEntry) -> str:
    """The id of such a table, or an unused id if it has no row yet."""
    return entry.table_id or new_id("table")


def content(store: "Store", identifier: str, columns: Fields) -> bytes:
    """Its generated metadata: a schema, no snapshot, and an empty location."""
    place = NewTable(identifier, "", "", str(uuid.uuid5(uuid.NAMESPACE_OID, identifier)))
    schema = {"type": "struct", "schema-id": 0, "fields": columns}
    return metadata_files.dump(first_metadata(store, {"schema": schema}, place))
