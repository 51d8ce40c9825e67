"""View endpoints of the Iceberg REST catalog."""

from typing import Annotated

from fastapi import Query, Request, Response

from headgate.lakehouse.catalog import listing, views
from headgate.lakehouse.catalog.endpoints import LISTS, LOADS, body_of, read_body
from headgate.lakehouse.catalog.names import from_json, namespace, table
from headgate.lakehouse.catalog.responses import empty, json_response
from headgate.platform.http.guards import SignedIn
from headgate.platform.http.middleware import IS_HEAD
from headgate.platform.http.routes import Audit, GovernedRouter
from headgate.platform.unit_of_work.stages import Stages

router = GovernedRouter(prefix="/iceberg/v1", tags=["catalog"], include_in_schema=False)


@router.governed(
    "GET",
    "/namespaces/{namespace_}/views",
    SignedIn("sees the views of a layer that they may see"),
    Audit.nothing,
    staged=True,
    limiter=LISTS,
)
def list_views(
    stages: Stages,
    namespace_: str,
    page_token: Annotated[str | None, Query(alias="pageToken")] = None,
    page_size: Annotated[int | None, Query(alias="pageSize", ge=1)] = None,
) -> Response:
    """The views that the caller may see, all at once or by page."""
    ident = namespace(namespace_)
    name_page = stages.read(lambda call: listing.views(call, ident, page_token, page_size))
    return json_response({"identifiers": name_page.items, "next-page-token": name_page.following})


@router.governed(
    "POST",
    "/namespaces/{namespace_}/views",
    SignedIn("creates a view by a statement, with Editor on the layer"),
    Audit.changes,
    staged=True,
    limiter=LOADS,
    wait=read_body,
)
def create_view(stages: Stages, request: Request, namespace_: str) -> Response:
    """Create a view from a query that a statement has analysed."""
    body = body_of(request)
    return views.create(stages, views.wanted(body, namespace(namespace_).levels), body)


@router.governed(
    "GET",
    "/namespaces/{namespace_}/views/{view_}",
    SignedIn("loads a view with Viewer on it and on everything behind it"),
    Audit.reads,
    staged=True,
    limiter=LOADS,
)
def load_view(stages: Stages, request: Request, namespace_: str, view_: str) -> Response:
    """A view's metadata; for a HEAD request, whether the view exists."""
    ident = table(namespace_, view_)
    return views.exists(stages, ident) if request.scope.get(IS_HEAD) else views.load(stages, ident)


@router.governed(
    "POST",
    "/namespaces/{namespace_}/views/{view_}",
    SignedIn("changes a view by a statement, with Editor on it"),
    Audit.changes,
    staged=True,
    limiter=LOADS,
    wait=read_body,
)
def replace_view(stages: Stages, request: Request, namespace_: str, view_: str) -> Response:
    """Change a view's query or properties."""
    return views.replace(stages, table(namespace_, view_), body_of(request))


@router.governed(
    "DELETE",
    "/namespaces/{namespace_}/views/{view_}",
    SignedIn("drops a view with Manager"),
    Audit.changes,
    staged=True,
    limiter=LOADS,
)
def drop_view(stages: Stages, namespace_: str, view_: str) -> Response:
    """Drop a view; it can be restored for a while."""
    views.drop(stages, table(namespace_, view_))
    return empty()


@router.governed(
    "POST",
    "/views/rename",
    SignedIn("renames with Manager on the view and Editor on the target layer"),
    Audit.changes,
    staged=True,
    limiter=LOADS,
    wait=read_body,
)
def rename_view(stages: Stages, request: Request) -> Response:
    """Rename a view or move it to another layer; its id and grants remain."""
    body = body_of(request)
    views.rename(stages, from_json(body.get("source")), from_json(body.get("destination")))
    return empty()
