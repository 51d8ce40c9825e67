"""Endpoints for remote signing and temporary credentials, for engines that read a warehouse in a bucket."""

from fastapi import Request, Response

from headgate.lakehouse.catalog import credentials, signing
from headgate.lakehouse.catalog.endpoints import LOADS, body_of, read_body
from headgate.lakehouse.catalog.names import table
from headgate.lakehouse.catalog.responses import json_response
from headgate.platform.http.guards import SignedIn
from headgate.platform.http.routes import Audit, GovernedRouter
from headgate.platform.unit_of_work.stages import Stages

router = GovernedRouter(prefix="/iceberg/v1", tags=["catalog"], include_in_schema=False)

_NO_STORE = "no-store"
"""Without this, clients cache signatures for the whole process by method, region and URI."""


def _answer(body: dict[str, object]) -> Response:
    response = json_response(body)
    response.headers["Cache-Control"] = _NO_STORE
    return response


@router.governed(
    "POST",
    "/signer/{table_id}",
    SignedIn("has requests for a table's files signed: reads with Viewer, writes with Editor"),
    Audit.reads,
    staged=True,
    limiter=LOADS,
    wait=read_body,
)
def sign_storage_request(stages: Stages, request: Request, table_id: str) -> Response:
    """Sign a request to the object store for a table's files. Each request is authorized."""
    wish = signing.described(body_of(request))
    wanted = stages.read(lambda call: signing.allowed(call, wish, table_id))
    return _answer(signing.sign(stages.services.store, wish, wanted))


@router.governed(
    "POST",
    "/namespaces/{namespace_}/tables/{table_}/sign",
    SignedIn("has requests for a table's files signed: reads with Viewer, writes with Editor"),
    Audit.reads,
    staged=True,
    limiter=LOADS,
    wait=read_body,
)
def sign_storage_request_by_name(stages: Stages, request: Request, namespace_: str, table_: str) -> Response:
    """Sign a request at the path of the specification."""
    wish, ident = signing.described(body_of(request)), table(namespace_, table_)
    wanted = stages.read(lambda call: signing.allowed(call, wish, signing.table_of(call, ident)))
    return _answer(signing.sign(stages.services.store, wish, wanted))


@router.governed(
    "GET",
    "/namespaces/{namespace_}/tables/{table_}/credentials",
    SignedIn("gets keys for a table's files: to read with Viewer, to write too with Editor"),
    Audit.reads,
    staged=True,
    limiter=LOADS,
)
def get_table_credentials(stages: Stages, namespace_: str, table_: str) -> Response:
    """Temporary credentials for the files of one table."""
    ident = table(namespace_, table_)
    grant = stages.read(lambda call: credentials.granted(call, signing.table_of(call, ident)))
    return _answer({"storage-credentials": [credentials.vended_credentials(stages.services, grant)]})
