"""Table endpoints of the Iceberg REST catalog.

They follow the published Iceberg REST specification and are therefore not part of Headgate's OpenAPI document.
"""

from typing import Annotated, Any

from anyio import CapacityLimiter
from fastapi import Header, Query, Request, Response

from headgate.kit.errors import Conflict, Invalid, NotFound
from headgate.lakehouse.catalog import access, listing, table_loading
from headgate.lakehouse.catalog import commit as committing
from headgate.lakehouse.catalog.commit_requests import change, document
from headgate.lakehouse.catalog.config import catalog_config
from headgate.lakehouse.catalog.errors import AlreadyExists, Forbidden, Malformed
from headgate.lakehouse.catalog.names import Ident, from_json, namespace, table
from headgate.lakehouse.catalog.responses import empty, json_response
from headgate.lakehouse.items import service as lakehouse
from headgate.lakehouse.trash import deletion
from headgate.platform.http.guards import SignedIn
from headgate.platform.http.middleware import IS_HEAD
from headgate.platform.http.routes import Audit, GovernedRouter
from headgate.platform.unit_of_work.call import Call
from headgate.platform.unit_of_work.services import Services
from headgate.platform.unit_of_work.stages import Stages

LOADS = CapacityLimiter(16)
"""Threads for quick requests. Spark calls the catalog while other requests wait for Spark, so neither may use all
threads.
"""
LISTS = CapacityLimiter(4)
"""Threads for lists, which may be long. Further lists wait without a thread, so that loads continue."""
COMMITS = CapacityLimiter(8)
"""Threads for commits, which read and write files."""

router = GovernedRouter(prefix="/iceberg/v1", tags=["catalog"], include_in_schema=False)


async def read_body(services: Services, request: Request, parameters: dict[str, Any]) -> None:
    """Read the whole body before a thread is used."""
    await request.body()


def body_of(request: Request) -> dict[str, Any]:
    """The JSON object in the request body."""
    return document(request._body)  # noqa: SLF001 - read by read_body


@router.governed(
    "GET", "/config", SignedIn("is told what the catalog serves"), Audit.nothing, staged=True, limiter=LOADS
)
def get_catalog_configuration(stages: Stages) -> Response:
    """The catalog configuration. There is one warehouse, so its name is ignored."""
    stages.read(lambda call: None)
    return json_response(catalog_config())


@router.governed(
    "GET",
    "/namespaces/{namespace_}/tables",
    SignedIn("sees the tables of a layer that they may see"),
    Audit.nothing,
    staged=True,
    limiter=LISTS,
)
def list_tables(
    stages: Stages,
    namespace_: str,
    page_token: Annotated[str | None, Query(alias="pageToken")] = None,
    page_size: Annotated[int | None, Query(alias="pageSize", ge=1)] = None,
) -> Response:
    """The tables that the caller may see, all at once or by page."""
    ident = namespace(namespace_)
    name_page = stages.read(lambda call: listing.tables(call, ident, page_token, page_size))
    return json_response({"identifiers": name_page.items, "next-page-token": name_page.following})


@router.governed(
    "POST",
    "/namespaces/{namespace_}/tables",
    SignedIn("creates a table with Editor on the layer"),
    Audit.changes,
    staged=True,
    limiter=COMMITS,
    wait=read_body,
)
def create_table(stages: Stages, request: Request, namespace_: str) -> Response:
    """Create a table; the catalog chooses its location."""
    return committing.create(stages, body_of(request), namespace(namespace_).levels)


@router.governed(
    "POST",
    "/namespaces/{namespace_}/register",
    SignedIn("registers nothing: nobody does"),
    Audit.nothing,
    staged=True,
    limiter=LOADS,
)
def register_table(stages: Stages, namespace_: str) -> Response:
    """Registering tables is not supported, because the catalog writes all metadata."""

    def refuse(call: Call) -> Response:
        access.require_layer(call, "see", namespace(namespace_))
        raise Forbidden("Tables cannot be registered; create a table, and write the rows into it")

    return stages.read(refuse)


@router.governed(
    "GET",
    "/namespaces/{namespace_}/tables/{table_}",
    SignedIn("loads a table with Viewer"),
    Audit.reads,
    staged=True,
    limiter=LOADS,
)
def load_table(
    stages: Stages,
    request: Request,
    namespace_: str,
    table_: str,
    snapshots: str = table_loading.ALL,
    known: Annotated[str | None, Header(alias="If-None-Match")] = None,
) -> Response:
    """A table's metadata; for a HEAD request, whether the table exists."""
    ident = table(namespace_, table_)
    if request.scope.get(IS_HEAD):
        return table_loading.exists(stages, ident)
    if snapshots not in {table_loading.ALL, table_loading.REFS}:
        raise Malformed(f"Invalid value {snapshots[:30]!r} of snapshots; use all or refs")
    return table_loading.load(stages, ident, snapshots, known)


@router.governed(
    "POST",
    "/namespaces/{namespace_}/tables/{table_}",
    SignedIn("commits with Editor; expires and rolls back with Manager"),
    Audit.changes,
    staged=True,
    limiter=COMMITS,
    wait=read_body,
)
def commit_table(stages: Stages, request: Request, namespace_: str, table_: str) -> Response:
    """Commit to a table, or create a staged one."""
    [done] = committing.commit(stages, [change(body_of(request), table(namespace_, table_))])
    return committing.answer(stages, done)


@router.governed(
    "POST",
    "/transactions/commit",
    SignedIn("commits with Editor on every table"),
    Audit.changes,
    staged=True,
    limiter=COMMITS,
    wait=read_body,
)
def commit_tables(stages: Stages, request: Request) -> Response:
    """Commit to several tables atomically."""
    changes = body_of(request).get("table-changes")
    if not isinstance(changes, list) or not changes:
        raise Malformed("table-changes must be a list of changes")
    if len(changes) > committing.MAX_TABLES:
        raise Malformed(f"A commit can change at most {committing.MAX_TABLES} tables")
    committing.commit(stages, [change(entry) for entry in changes])
    return empty()


@router.governed(
    "DELETE",
    "/namespaces/{namespace_}/tables/{table_}",
    SignedIn("drops a table with Manager"),
    Audit.changes,
    staged=True,
    limiter=LOADS,
)
def drop_table(
    stages: Stages,
    namespace_: str,
    table_: str,
    purge: Annotated[bool, Query(alias="purgeRequested")] = False,
) -> Response:
    """Drop a table. It can be restored for a while, whether or not a purge was requested."""
    ident = table(namespace_, table_)
    stages.write(lambda call: _drop(call, ident))
    return empty()


def _drop(call: Call, ident: Ident) -> None:
    entry = access.find(call, ident)
    access.require_table(call, "delete", ident, entry)
    if call.caller.work is not None and call.caller.work.run is not None:
        raise Forbidden("A pipeline run may not drop tables")
    deletion.delete_item(call, entry.table_id or "")


@router.governed(
    "POST",
    "/tables/rename",
    SignedIn("renames with Manager on the table and Editor on the target layer"),
    Audit.changes,
    staged=True,
    limiter=LOADS,
    wait=read_body,
)
def rename_table(stages: Stages, request: Request) -> Response:
    """Rename a table or move it to another layer; its id and grants remain."""
    body = body_of(request)
    source, target = from_json(body.get("source")), from_json(body.get("destination"))
    stages.write(lambda call: _rename(call, source, target))
    return empty()


def _rename(call: Call, source: Ident, target: Ident) -> None:
    entry = access.find(call, source)
    access.require_table(call, "delete", source, entry, "rename")
    if call.caller.work is not None and call.caller.work.run is not None:
        raise Forbidden("A pipeline run may not rename tables")
    layer = access.require_create(call, target)
    try:
        lakehouse.rename_item(call, entry.table_id or "", name=target.table or "", layer_id=layer)
    except Conflict:
        raise AlreadyExists(f"Table already exists: {target}") from None
    except NotFound:
        raise access.missing(source) from None
    except Invalid as error:
        raise Malformed(error.detail) from None


@router.governed(
    "POST",
    "/namespaces/{namespace_}/tables/{table_}/metrics",
    SignedIn("reports on a table that they may load"),
    Audit.nothing,
    staged=True,
    limiter=LOADS,
    wait=read_body,
)
def report_metrics(stages: Stages, request: Request, namespace_: str, table_: str) -> Response:
    """Accept a scan or commit report and discard it."""
    body_of(request)
    ident = table(namespace_, table_)
    stages.read(lambda call: access.require_table(call, "execute", ident, access.find(call, ident)))
    return empty()
