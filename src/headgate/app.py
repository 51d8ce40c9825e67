"""The application: routes, errors and the outermost layer, put together."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI

import headgate.schema  # noqa: F401 - every table, also those that no route reads
from headgate import __version__
from headgate.job_kinds import register_all
from headgate.kit.batch_writer import Batches
from headgate.kit.database import Database
from headgate.lakehouse import engine_authentication
from headgate.lakehouse.catalog import endpoints as catalog
from headgate.lakehouse.catalog import errors as iceberg
from headgate.lakehouse.catalog import namespace_endpoints, oauth, signing_endpoints, view_endpoints
from headgate.lakehouse.completion import endpoints as names
from headgate.lakehouse.files import endpoints as files
from headgate.lakehouse.integrations import endpoints as integrations
from headgate.lakehouse.layers import endpoints as layers
from headgate.lakehouse.maintenance import endpoints as maintenance
from headgate.lakehouse.saved_queries import endpoints as saved
from headgate.lakehouse.sql import endpoints as workbench
from headgate.lakehouse.sql import worker_endpoints as workers
from headgate.lakehouse.tables import endpoints as tables
from headgate.lakehouse.trash import endpoints as deleted
from headgate.lakehouse.uploads import endpoints as uploads
from headgate.lakehouse.volumes import endpoints as volumes
from headgate.marts.destinations import endpoints as destinations
from headgate.organization.access import authzen
from headgate.organization.access import endpoints as governance
from headgate.organization.access_requests import endpoints as requests
from headgate.organization.audit_log import endpoints as audit
from headgate.organization.contexts import endpoints as contexts
from headgate.organization.groups import endpoints as groups
from headgate.organization.invitations import endpoints as invitations
from headgate.organization.members import endpoints as members
from headgate.organization.profile import endpoints as organization
from headgate.organization.sessions import endpoints as sessions
from headgate.organization.sessions.authentication import authenticate
from headgate.organization.sessions.uses import note_uses
from headgate.organization.tokens import endpoints as tokens
from headgate.pipelines import endpoints as pipelines
from headgate.pipelines.lineage import endpoints as lineage
from headgate.pipelines.runs import endpoints as runs
from headgate.pipelines.runs import worker_endpoints as run_workers
from headgate.pipelines.triggers import endpoints as triggers
from headgate.platform.audit.events import record
from headgate.platform.audit.signatures import sign_events
from headgate.platform.connection_checks import endpoints as connection_checks
from headgate.platform.http import health, problems
from headgate.platform.http.middleware import Edge, body_limits
from headgate.platform.jobs import worker_endpoints as jobs
from headgate.platform.notifications import endpoints as notifications
from headgate.platform.resources import endpoints as resources
from headgate.platform.secrets.installation_keys import key_file
from headgate.platform.unit_of_work.services import Services
from headgate.platform.webhooks import endpoints as webhooks
from headgate.settings.settings import Settings
from headgate.spaces.connections import endpoints as connections
from headgate.spaces.spaces import endpoints as spaces
from headgate.web import endpoints as web
from headgate.worlds import endpoints as worlds

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
    worlds.router,
    requests.router,
    files.router,
    uploads.router,
    audit.router,
    authzen.router,
    oauth.router,
    namespace_endpoints.router,
    catalog.router,
    view_endpoints.router,
    signing_endpoints.router,
    workbench.router,
    saved.router,
    workers.router,
    spaces.router,
    connections.router,
    destinations.router,
    connection_checks.router,
    pipelines.router,
    lineage.router,
    integrations.router,
    triggers.router,
    runs.router,
    run_workers.router,
    maintenance.router,
    jobs.router,
)


def create_app(settings: Settings, database: Database | None = None) -> FastAPI:
    """The application for these settings."""
    register_all()
    result = database or Database(settings.database_url, pool_size=settings.database.pool_size)
    sign_events(result, lambda: key_file(settings).key("audit"))

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        app.state.services.watch.close()
        app.state.services.batches.close()
        app.state.services.uses.close()
        result.close()

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
        result,
        Batches(result, record, "audit events"),
        Batches(result, note_uses, "times of use"),
        key_file(settings),
    )
    for router in ROUTERS:
        app.include_router(router)
    app.state.authenticators = {iceberg.PREFIX: engine_authentication.authenticate, "": authenticate}
    problems.install(app, {iceberg.PREFIX: iceberg.respond})
    problems.describe(app)
    app.add_middleware(Edge, limits=body_limits(settings))
    return app
