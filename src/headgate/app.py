"""The application: routes, errors and the outermost layer, put together."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI

from headgate import __version__
from headgate.audit import endpoints as audit
from headgate.audit.events import record
from headgate.audit.marks import sign_events
from headgate.catalog import endpoints as catalog
from headgate.catalog import namespace_endpoints as namespaces
from headgate.catalog import oauth
from headgate.catalog import signing_endpoints as signing
from headgate.catalog import view_endpoints as views
from headgate.config import Settings
from headgate.connections import endpoints as connections
from headgate.contexts import endpoints as contexts
from headgate.destinations import endpoints as destinations
from headgate.edge import health, problems
from headgate.edge.middleware import Edge, body_limits
from headgate.edge.services import Services, note_uses
from headgate.errands import endpoints as errands
from headgate.errands import worker_endpoints as errand_workers
from headgate.governance import authzen
from headgate.governance import endpoints as governance
from headgate.groups import endpoints as groups
from headgate.integrations import endpoints as integrations
from headgate.kit.batches import Batches
from headgate.kit.db import Database
from headgate.lakehouse import deleted_endpoints as deleted
from headgate.lakehouse import endpoints as layers
from headgate.lakehouse import files_endpoints as files
from headgate.lakehouse import names_endpoints as names
from headgate.lakehouse import table_endpoints as tables
from headgate.lakehouse import uploads_endpoints as uploads
from headgate.lakehouse import volume_endpoints as volumes
from headgate.maintenance import endpoints as maintenance
from headgate.maintenance import worker_endpoints as maintenance_workers
from headgate.members import endpoints as members
from headgate.members import invitation_endpoints as invitations
from headgate.notifications import endpoints as notifications
from headgate.organization import endpoints as organization
from headgate.pipelines import endpoints as pipelines
from headgate.pipelines import lineage_endpoints as lineage
from headgate.requests import endpoints as requests
from headgate.resources import endpoints as resources
from headgate.runs import endpoints as runs
from headgate.runs import worker_endpoints as run_workers
from headgate.sessions import endpoints as sessions
from headgate.spaces import endpoints as spaces
from headgate.supervisor.preflight import key_file
from headgate.tokens import endpoints as tokens
from headgate.triggers import endpoints as triggers
from headgate.web import endpoints as web
from headgate.webhooks import endpoints as webhooks
from headgate.workbench import endpoints as workbench
from headgate.workbench import saved_endpoints as saved
from headgate.workbench import worker_endpoints as workers
from headgate.workers import endpoints as replaced_workers

DESCRIPTION = """
A self-hosted, governed data platform: one access model from the lakehouse to the report.

Send a token as `Authorization: Bearer …`. Errors are `application/problem+json`, with a `code` for programs and a
`detail` that says what to do. What you may not see answers exactly like what does not exist.
"""

ROUTERS = (
    health.router,
    sessions.router,
    members.router,
    invitations.router,
    groups.router,
    contexts.router,
    organization.router,
    tokens.router,
    notifications.router,
    webhooks.router,
    web.router,
    resources.router,
    layers.router,
    tables.router,
    volumes.router,
    deleted.router,
    names.router,
    governance.router,
    requests.router,
    files.router,
    uploads.router,
    audit.router,
    authzen.router,
    oauth.router,
    namespaces.router,
    catalog.router,
    views.router,
    signing.router,
    workbench.router,
    saved.router,
    workers.router,
    spaces.router,
    connections.router,
    destinations.router,
    errands.router,
    errand_workers.router,
    pipelines.router,
    lineage.router,
    integrations.router,
    triggers.router,
    runs.router,
    run_workers.router,
    maintenance.router,
    maintenance_workers.router,
    replaced_workers.router,
)


def create_app(settings: Settings, database: Database | None = None) -> FastAPI:
    """The application for these settings."""
    found = database or Database(settings.database_url, pool_size=settings.database.pool_size)
    sign_events(found, lambda: key_file(settings).key("audit"))

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        app.state.services.watch.close()
        app.state.services.batches.close()
        app.state.services.uses.close()
        found.close()

    app = FastAPI(
        title="Headgate",
        version=__version__,
        description=DESCRIPTION,
        openapi_url="/api/openapi.json",
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        redirect_slashes=False,
    )
    app.state.services = Services(
        settings,
        found,
        Batches(found, record, "audit events"),
        Batches(found, note_uses, "times of use"),
        key_file(settings),
    )
    for router in ROUTERS:
        app.include_router(router)
    problems.install(app)
    problems.describe(app)
    app.add_middleware(Edge, limits=body_limits(settings))
    return app
