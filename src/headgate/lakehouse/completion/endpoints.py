"""SQL completion: layers, tables, columns and functions that the caller may see."""

from bisect import bisect_left
from typing import Annotated, Any

from fastapi import Query

from headgate.kit.errors import Problem
from headgate.kit.names import name_key
from headgate.kit.paging import DEFAULT_LIMIT, MAX_LIMIT
from headgate.lakehouse.completion.functions import functions
from headgate.lakehouse.items import presentation
from headgate.lakehouse.items.schemas import LakePage, PreviewColumn, SqlNames, SqlTable
from headgate.lakehouse.tables import repository as table_repository
from headgate.lakehouse.tables.endpoints import READING
from headgate.lakehouse.tables.facts import columns as columns_of
from headgate.lakehouse.tables.metadata_cache import document
from headgate.platform.authorization.repository import ResourceSort
from headgate.platform.http.guards import SignedIn
from headgate.platform.http.paging import After, Limit, Prefix
from headgate.platform.http.routes import Audit, GovernedRouter
from headgate.platform.unit_of_work.call import Call
from headgate.platform.unit_of_work.stages import Stages
from headgate.warehouse.store import Store

router = GovernedRouter(prefix="/api/sql", tags=["sql"])


@router.governed(
    "GET", "/names", SignedIn("gets the names that they may see"), Audit.reads, staged=True, limiter=READING
)
def list_sql_names(
    stages: Stages,
    prefix: Prefix = "",
    columns: Annotated[bool, Query(description="Include the columns of each table")] = True,
    limit: Limit = DEFAULT_LIMIT,
    cursor: After = None,
) -> SqlNames:
    """List names that start with `prefix`: layers and functions on the first page; tables, with their columns, by page.

    A table's name includes its layer: `raw.ord`.
    """
    layers, tables, pointers = stages.read(lambda call: _look(call, prefix, limit, cursor, columns=columns))
    sql_tables = [
        SqlTable(
            name=resource.name, title=resource.title, columns=_columns(stages.services.store, pointers.get(resource.id))
        )
        for resource in tables.items
    ]
    is_first = cursor is None
    return SqlNames(
        layers=[resource.name for resource in layers.items] if layers else [],
        tables=sql_tables,
        functions=_beginning(prefix) if is_first else [],
        next_cursor=tables.next_cursor,
    )


def _look(
    call: Call, prefix: str, limit: int, cursor: str | None, *, columns: bool
) -> tuple[LakePage | None, LakePage, dict[str, Any]]:
    by_name = ResourceSort.name
    layers = None if cursor else presentation.listed(call, "layer", by_name, prefix, MAX_LIMIT, None)
    tables = presentation.listed(call, "table", by_name, prefix, limit, cursor)
    pointers = table_repository.pointers(call.connection, [resource.id for resource in tables.items]) if columns else {}
    return layers, tables, pointers


def _columns(store: Store, pointer: Any) -> list[PreviewColumn]:
    """The columns of a table; empty before its first commit or if its metadata is damaged."""
    if pointer is None:
        return []
    try:
        return [
            PreviewColumn(name=column.name, type=column.type) for column in columns_of(document(store, pointer), {})
        ]
    except Problem:
        return []


def _beginning(prefix: str) -> list[str]:
    known, key = functions(), name_key(prefix)
    return [name for name in known[bisect_left(known, key) :] if name.startswith(key)]
