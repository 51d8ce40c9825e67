"""Table endpoints: lists, facts, history, dependents and previews. Engines read the data through the catalog."""

from datetime import datetime
from typing import Annotated, Any

from anyio import CapacityLimiter
from fastapi import Path, Query, Request

from headgate.kit.errors import Conflict, Invalid
from headgate.kit.paging import DEFAULT_LIMIT
from headgate.lakehouse.catalog import view_metadata, views
from headgate.lakehouse.catalog.errors import IcebergError
from headgate.lakehouse.catalog.names import Ident
from headgate.lakehouse.files.guards import MemberOn
from headgate.lakehouse.items import presentation, repository
from headgate.lakehouse.items.changes import change_item
from headgate.lakehouse.items.descriptions import Texts
from headgate.lakehouse.items.schemas import (
    CommitPage,
    DependentPage,
    FieldPatch,
    GrantPage,
    LakeDeleted,
    LakePage,
    LakeResource,
    Preview,
    SnapshotPage,
    TableOut,
    TablePatch,
    ViewOut,
)
from headgate.lakehouse.layers.endpoints import Sort
from headgate.lakehouse.sql.results import ARROW
from headgate.lakehouse.tables import facts as table_facts
from headgate.lakehouse.tables import preview as previews
from headgate.lakehouse.tables import repository as table_repository
from headgate.lakehouse.tables.metadata_cache import Document, document
from headgate.lakehouse.trash import deletion
from headgate.lakehouse.volumes.endpoints import InLayer
from headgate.platform.authorization.repository import ResourceSort
from headgate.platform.http.guards import SignedIn
from headgate.platform.http.paging import After, Limit, Prefix, begins_after
from headgate.platform.http.routes import Audit, GovernedRouter
from headgate.platform.unit_of_work.call import Call
from headgate.platform.unit_of_work.stages import Stages

router = GovernedRouter(prefix="/api/tables", tags=["tables"])

TableId = Annotated[str, Path(pattern="^tbl_[0-9a-z]{20}$", examples=["tbl_01k6x3v9c2m4n8p0q7rs"])]
READING = CapacityLimiter(8)
"""Threads that read metadata files."""
PREVIEWS = CapacityLimiter(4)
"""Threads that read data files. They limit concurrent previews, and no other request waits for them."""


def _on(action: str) -> MemberOn:
    return MemberOn(action, "table_id")


@router.governed("GET", "", SignedIn("sees the tables that they may see"), Audit.reads)
def list_tables(
    call: Call,
    layer: InLayer = None,
    sort: Sort = ResourceSort.name,
    prefix: Prefix = "",
    limit: Limit = DEFAULT_LIMIT,
    cursor: After = None,
) -> LakePage:
    """List tables; without a layer, a prefix starts with the layer's name: `raw.ord`."""
    return presentation.listed(call, "table", sort, prefix, limit, cursor, layer)


@router.governed("GET", "/{table_id}", _on("see"), Audit.reads, staged=True, limiter=READING)
def get_table(stages: Stages, table_id: TableId) -> TableOut:
    """Get a table: its columns, partitions, sort order, properties, size and current snapshot, and the caller's
    actions.

    For who may read and write it, see `/api/access/who-can` with `execute` and `edit`.
    """
    return _facts(stages, table_id)


def _facts(stages: Stages, table: str) -> TableOut:
    def look(call: Call) -> tuple[LakeResource, Any, repository.Texts, TableOut | None]:
        call.note_read("see", "table", table)
        shown = presentation.one(call, table)
        pointer = table_repository.pointer(call.connection, table)
        view = views.stored(call.connection, table) if pointer is None else None
        facts = _of_view(call, shown, view) if view else None
        return shown, pointer, repository.texts(call.connection, table), facts

    shown, pointer, texts, of_view = stages.read(look)
    if of_view is not None:
        return of_view
    values = document(stages.services.store, pointer) if pointer else None
    return table_facts.facts(shown, pointer, values, texts)


def _of_view(call: Call, shown: LakeResource, view: views.View) -> TableOut:
    return table_facts.facts_of_view(
        shown,
        view_metadata.current_schema(view.metadata),
        view.metadata["properties"],
        ViewOut(
            sql=view_metadata.sql(view.metadata) if _is_readable(call, shown, view) else None,
            saved_at=view.saved_at,
            saved_by=repository.named(call.connection, view.saved_by),
        ),
    )


def _is_readable(call: Call, shown: LakeResource, view: views.View) -> bool:
    """Whether the caller may read a view now; False if a table behind it has no data or the view is cyclic."""
    layer, _, name = shown.name.partition(".")
    try:
        return views.is_readable(call, Ident((layer,), name), view.reads)
    except IcebergError:
        return False


@router.governed("PATCH", "/{table_id}", _on("see"), Audit.changes, errors=[Conflict], staged=True, limiter=READING)
def change_table(stages: Stages, table_id: TableId, body: TablePatch) -> TableOut:
    """Change titles and descriptions, also of fields, which requires *describe*; or the name or layer, which requires
    *delete* on the table and Editor on the target layer.

    Grants remain, because they refer to the id.
    """
    fields = _fields(stages, table_id, body.fields) if body.fields else {}
    stages.write(lambda call: change_item(call, table_id, body, fields))
    return _facts(stages, table_id)


def _fields(stages: Stages, table: str, patches: list[FieldPatch]) -> dict[int, Texts]:
    """The texts of fields by field id; Invalid for an unknown field."""
    pointer = stages.read(lambda call: table_repository.pointer(call.connection, table))
    known = table_facts.field_ids(document(stages.services.store, pointer)) if pointer else {}
    folded = {path.casefold(): identifier for path, identifier in known.items()} | known
    values: dict[int, Texts] = {}
    for patch in patches:
        name = patch.name or ""
        identifier = patch.id if patch.id is not None else folded.get(name, folded.get(name.casefold()))
        if identifier is None or identifier not in known.values():
            asked = patch.id if patch.name is None else repr(patch.name[:100])
            raise Invalid(f"fields: the table has no field {asked}")
        values[identifier] = {**values.get(identifier, {}), **patch.texts()}
    return values


@router.governed("DELETE", "/{table_id}", _on("delete"), Audit.changes, errors=[Conflict])
def delete_table(call: Call, table_id: TableId) -> LakeDeleted:
    """Delete a table with its data; it can be restored for a while. A new table under the same name is a different
    table.
    """
    deletion.delete_item(call, table_id)
    return deletion.deleted(call, table_id)


@router.governed("GET", "/{table_id}/grants", _on("see_access"), Audit.reads)
def list_table_grants(call: Call, table_id: TableId, limit: Limit = DEFAULT_LIMIT, cursor: After = None) -> GrantPage:
    """List the grants on a table and on its layer: who, which level, until when, and by whom."""
    return presentation.grants(call, table_id, limit, cursor)


@router.governed("GET", "/{table_id}/snapshots", _on("see"), Audit.reads, staged=True, limiter=READING)
def list_snapshots(
    stages: Stages, table_id: TableId, limit: Limit = DEFAULT_LIMIT, cursor: After = None
) -> SnapshotPage:
    """List the snapshots of a table that can still be read, newest first."""
    purpose = f"snapshots of {table_id}"
    pointer = stages.read(lambda call: table_repository.pointer(call.connection, table_id))
    values: Document = document(stages.services.store, pointer) if pointer else {}
    items, following = table_facts.snapshots_page(values, limit, begins_after(cursor, purpose), purpose)
    return SnapshotPage(items=items, next_cursor=following)


@router.governed("GET", "/{table_id}/history", _on("see"), Audit.reads)
def list_commits(call: Call, table_id: TableId, limit: Limit = DEFAULT_LIMIT, cursor: After = None) -> CommitPage:
    """List the commits to a table from the catalog's ledger, newest first."""
    purpose = f"commits to {table_id}"
    after = begins_after(cursor, purpose)
    items, following = table_repository.commits_page(call.connection, table_id, limit, after, purpose)
    return CommitPage(items=items, next_cursor=following)


@router.governed("GET", "/{table_id}/dependents", _on("see"), Audit.reads)
def list_dependents(call: Call, table_id: TableId, limit: Limit = DEFAULT_LIMIT, cursor: After = None) -> DependentPage:
    """List the pipelines, data marts and integrations that reference a table, limited to those that the caller
    may see.
    """
    purpose = f"dependents of {table_id}"
    after = begins_after(cursor, purpose)
    who = (call.caller.member, call.caller.narrowing)
    items, following = repository.dependents_page(call.connection, table_id, *who, call.now, limit, after, purpose)
    return DependentPage(items=items, next_cursor=following)


@router.governed(
    "GET", "/{table_id}/preview", _on("execute"), Audit.decisions, errors=[Conflict], staged=True, limiter=PREVIEWS
)
def preview_table(
    stages: Stages,
    request: Request,
    table_id: TableId,
    limit: Annotated[int, Query(ge=1, le=1000, description="Maximum number of rows")] = 100,
    snapshot: Annotated[
        str | None, Query(max_length=20, description="Read this snapshot", examples=["30517296755"])
    ] = None,
    as_of: Annotated[datetime | None, Query(description="Read the table as of this time")] = None,
    columns: Annotated[
        list[str] | None, Query(max_length=1000, description="Only these columns; repeat it for each")
    ] = None,
) -> Preview:
    """Preview the first rows of a table without Spark, as JSON, or as an Arrow stream with `Accept:
    application/vnd.apache.arrow.stream`. A preview has at most 8 MB; JSON truncates long texts.
    """
    as_arrow = ARROW in request.headers.get("accept", "")
    asked = previews.PreviewRequest(limit, snapshot, as_of, tuple(columns or ()), as_arrow)
    return previews.preview(stages, table_id, asked)  # type: ignore[return-value]
