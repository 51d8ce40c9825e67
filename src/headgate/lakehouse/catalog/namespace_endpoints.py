"""Namespace endpoints of the Iceberg REST catalog."""

from typing import Annotated

from fastapi import Query, Request, Response

from headgate.lakehouse.catalog import access, listing, namespaces
from headgate.lakehouse.catalog.endpoints import LISTS, LOADS, body_of, read_body
from headgate.lakehouse.catalog.names import from_json, namespace
from headgate.lakehouse.catalog.responses import empty, json_response
from headgate.platform.http.guards import SignedIn
from headgate.platform.http.middleware import IS_HEAD
from headgate.platform.http.routes import Audit, GovernedRouter
from headgate.platform.unit_of_work.stages import Stages

router = GovernedRouter(prefix="/iceberg/v1", tags=["catalog"], include_in_schema=False)


@router.governed(
    "GET", "/namespaces", SignedIn("sees the layers that they may see"), Audit.nothing, staged=True, limiter=LISTS
)
def list_namespaces(
    stages: Stages,
    parent: str | None = None,
    page_token: Annotated[str | None, Query(alias="pageToken")] = None,
    page_size: Annotated[int | None, Query(alias="pageSize", ge=1)] = None,
) -> Response:
    """The layers that the caller may see. Layers contain no namespaces."""
    if parent:
        ident = namespace(parent)
        stages.read(lambda call: access.require_layer(call, "see", ident))
        return json_response({"namespaces": [], "next-page-token": None})
    name_page = stages.read(lambda call: listing.namespaces(call, page_token, page_size))
    return json_response({"namespaces": name_page.items, "next-page-token": name_page.following})


@router.governed(
    "POST",
    "/namespaces",
    SignedIn("creates a layer with create_layer"),
    Audit.changes,
    staged=True,
    limiter=LOADS,
    wait=read_body,
)
def create_namespace(stages: Stages, request: Request) -> Response:
    """Create a layer."""
    body = body_of(request)
    ident = from_json(body, is_table=False)
    kept = stages.write(lambda call: namespaces.create(call, ident, body.get("properties")))
    return json_response({"namespace": [ident.layer_key], "properties": kept})


@router.governed(
    "GET",
    "/namespaces/{namespace_}",
    SignedIn("sees a layer that they may see"),
    Audit.nothing,
    staged=True,
    limiter=LOADS,
)
def load_namespace(stages: Stages, request: Request, namespace_: str) -> Response:
    """A layer's properties; for a HEAD request, whether the layer exists."""
    ident = namespace(namespace_)
    values = stages.read(lambda call: namespaces.properties(call, ident))
    if request.scope.get(IS_HEAD):
        return empty()
    return json_response({"namespace": [ident.layer_key], "properties": values})


@router.governed(
    "DELETE",
    "/namespaces/{namespace_}",
    SignedIn("drops an empty layer with Manager"),
    Audit.changes,
    staged=True,
    limiter=LOADS,
)
def drop_namespace(stages: Stages, namespace_: str) -> Response:
    """Drop an empty layer."""
    stages.write(lambda call: namespaces.drop(call, namespace(namespace_)))
    return empty()


@router.governed(
    "POST",
    "/namespaces/{namespace_}/properties",
    SignedIn("changes the comment with Editor"),
    Audit.changes,
    staged=True,
    limiter=LOADS,
    wait=read_body,
)
def change_namespace_properties(stages: Stages, request: Request, namespace_: str) -> Response:
    """Set or remove properties of a layer. The property `comment` is its description."""
    body = body_of(request)
    return json_response(stages.write(lambda call: namespaces.change(call, namespace(namespace_), body)))
