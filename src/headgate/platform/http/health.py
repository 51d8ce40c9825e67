"""Liveness, readiness and metrics of the process."""

import hmac
import os

from fastapi import Request, Response
from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, CollectorRegistry, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector
from pydantic import BaseModel, Field

from headgate import __version__
from headgate.kit.database import fetch
from headgate.kit.errors import NotFound, NotSignedIn
from headgate.platform.http.guards import Public
from headgate.platform.http.routes import Audit, GovernedRouter
from headgate.platform.unit_of_work.call import Call

router = GovernedRouter(tags=["operations"])


class Health(BaseModel):
    """The health of the process."""

    status: str = Field(examples=["ok"])
    version: str = Field(examples=["0.1.0"])


@router.governed("GET", "/healthz", Public("says that the process lives"), Audit.nothing, offline=True)
def healthz(call: Call) -> Health:
    """Responds while the process is alive."""
    return Health(status="ok", version=__version__)


@router.governed("GET", "/readyz", Public("says that the process can serve"), Audit.nothing, quick=True)
def readyz(call: Call) -> Health:
    """Responds while the database does."""
    fetch(call.connection, "SELECT 1 FROM organization LIMIT 1", {})
    return Health(status="ready", version=__version__)


@router.governed(
    "GET", "/metrics", Public("open, by token, or off, as `server.metrics` says"), Audit.nothing, text="text/plain"
)
def metrics(call: Call, request: Request) -> Response:
    """Metrics of all server processes, for Prometheus."""
    settings = call.settings.server
    if settings.metrics == "off":
        raise NotFound
    if settings.metrics == "token":
        expected = settings.metrics_token.get_secret_value() if settings.metrics_token else ""
        presented = request.headers.get("authorization", "").removeprefix("Bearer ")
        if not expected or not hmac.compare_digest(expected.encode(), presented.encode()):
            raise NotSignedIn
    registry = REGISTRY
    if "PROMETHEUS_MULTIPROC_DIR" in os.environ:
        registry = CollectorRegistry()
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)
