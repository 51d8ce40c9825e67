"""The namespaces of the Iceberg REST catalog over HTTP, and the views that it does not have."""

from typing import Annotated, NoReturn

from fastapi import Query, Request, Response

from headgate.catalog import access, listing, namespaces
from headgate.catalog.endpoints import LISTS, LOADS, body_of, read_body
from headgate.catalog.errors import NoSuchView, NotSupported
from headgate.catalog.names import from_json, namespace, table
from headgate.catalog.responses import empty, json_response
from headgate.edge.guards import SignedIn
from headgate.edge.middleware import IS_HEAD
from headgate.edge.routes import Audit, GovernedRouter, Stages

router = GovernedRouter(prefix="/iceberg/v1", tags=["catalog"], include_in_schema=False)
_NO_VIEWS = SignedIn("is told that there are no views")


@router.governed(
    "GET",
    "/namespaces",
    guard=SignedIn("sees the layers that they may see"),
    audit=Audit.nothing,
    summary="List namespaces",
    staged=True,
    limiter=LISTS,
)
def list_namespaces(
    stages: Stages,
    parent: str | None = None,
    page_token: Annotated[str | None, Query(alias="pageToken")] = None,
    page_size: Annotated[int | None, Query(alias="pageSize", ge=1)] = None,
) -> Response:
    """The layers that the caller may see. A layer holds no namespaces."""
    if parent:
        ident = namespace(parent)
        stages.read(lambda call: access.require_layer(call, "see", ident))
        return json_response({"namespaces": [], "next-page-token": None})
    found = stages.read(lambda call: listing.namespaces(call, page_token, page_size))
    return json_response({"namespaces": found.items, "next-page-token": found.following})


@router.governed(
    "POST",
    "/namespaces",
    guard=SignedIn("creates a layer with create_layer"),
    audit=Audit.changes,
    summary="Create a namespace",
    staged=True,
    limiter=LOADS,
    wait=read_body,
)
def create_namespace(stages: Stages, request: Request) -> Response:
    """Make a layer."""
    body = body_of(request)
    ident = from_json(body, is_table=False)
    kept = stages.write(lambda call: namespaces.create(call, ident, body.get("properties")))
    return json_response({"namespace": [ident.layer_key], "properties": kept})


@router.governed(
    "GET",
    "/namespaces/{namespace_}",
    guard=SignedIn("sees a layer that they may see"),
    audit=Audit.nothing,
    summary="Load a namespace",
    staged=True,
    limiter=LOADS,
)
def load_namespace(stages: Stages, request: Request, namespace_: str) -> Response:
    """A layer's properties, or for a request of headers alone, whether it is there."""
    ident = namespace(namespace_)
    found = stages.read(lambda call: namespaces.properties(call, ident))
    if request.scope.get(IS_HEAD):
        return empty()
    return json_response({"namespace": [ident.layer_key], "properties": found})


@router.governed(
    "DELETE",
    "/namespaces/{namespace_}",
    guard=SignedIn("drops an empty layer with Manager"),
    audit=Audit.changes,
    summary="Drop a namespace",
    staged=True,
    limiter=LOADS,
)
def drop_namespace(stages: Stages, namespace_: str) -> Response:
    """Drop a layer that holds nothing."""
    stages.write(lambda call: namespaces.drop(call, namespace(namespace_)))
    return empty()


@router.governed(
    "POST",
    "/namespaces/{namespace_}/properties",
    guard=SignedIn("changes the comment with Editor"),
    audit=Audit.changes,
    summary="Change a namespace's properties",
    staged=True,
    limiter=LOADS,
    wait=read_body,
)
def change_namespace(stages: Stages, request: Request, namespace_: str) -> Response:
    """Set or remove a layer's comment, which is its description."""
    body = body_of(request)
    return json_response(stages.write(lambda call: namespaces.change(call, namespace(namespace_), body)))


def _refuse_view(stages: Stages, namespace_: str, view: str) -> NoReturn:
    stages.read(lambda call: None)
    raise NoSuchView(f"View does not exist: {table(namespace_, view)}")


def _known_layer(stages: Stages, namespace_: str) -> None:
    stages.read(lambda call: access.require_layer(call, "see", namespace(namespace_)))


@router.governed(
    "GET",
    "/namespaces/{namespace_}/views",
    guard=_NO_VIEWS,
    audit=Audit.nothing,
    summary="Not supported: list views",
    staged=True,
    limiter=LOADS,
)
def list_views(stages: Stages, namespace_: str) -> Response:
    """There are no views."""
    _known_layer(stages, namespace_)
    raise NotSupported("This catalog has no views")


@router.governed(
    "POST",
    "/namespaces/{namespace_}/views",
    guard=_NO_VIEWS,
    audit=Audit.nothing,
    summary="Not supported: create a view",
    staged=True,
    limiter=LOADS,
)
def create_view(stages: Stages, namespace_: str) -> Response:
    """There are no views."""
    _known_layer(stages, namespace_)
    raise NotSupported("This catalog has no views")


@router.governed(
    "GET",
    "/namespaces/{namespace_}/views/{view_}",
    guard=_NO_VIEWS,
    audit=Audit.nothing,
    summary="No view is there",
    staged=True,
    limiter=LOADS,
)
def load_view(stages: Stages, namespace_: str, view_: str) -> Response:
    """There are no views, so whatever is asked for does not exist; a client then looks for a table."""
    _refuse_view(stages, namespace_, view_)


@router.governed(
    "POST",
    "/namespaces/{namespace_}/views/{view_}",
    guard=_NO_VIEWS,
    audit=Audit.nothing,
    summary="No view is there",
    staged=True,
    limiter=LOADS,
)
def replace_view(stages: Stages, namespace_: str, view_: str) -> Response:
    """There are no views."""
    _refuse_view(stages, namespace_, view_)


@router.governed(
    "DELETE",
    "/namespaces/{namespace_}/views/{view_}",
    guard=_NO_VIEWS,
    audit=Audit.nothing,
    summary="No view is there",
    staged=True,
    limiter=LOADS,
)
def drop_view(stages: Stages, namespace_: str, view_: str) -> Response:
    """There are no views."""
    _refuse_view(stages, namespace_, view_)


@router.governed(
    "POST",
    "/views/rename",
    guard=_NO_VIEWS,
    audit=Audit.nothing,
    summary="Not supported: rename a view",
    staged=True,
    limiter=LOADS,
)
def rename_view(stages: Stages) -> Response:
    """There are no views."""
    stages.read(lambda call: None)
    raise NotSupported("This catalog has no views")
