"""Applications of one process that share their routes.

FastAPI puts the routes of an application together at its first request, which takes longer than most tests do. They
depend on nothing that applications differ by: what a request needs, it gets from the application that it came to.
"""

from fastapi import FastAPI
from starlette.routing import BaseRoute, Route

from headgate.app import create_app
from headgate.kit.database import Database
from headgate.settings.settings import Settings

_shared: list[BaseRoute] = []


def app_for(settings: Settings, database: Database | None = None) -> FastAPI:
    """The application for these settings, with the routes of the first one."""
    app = create_app(settings, database)
    routes = app.router.routes
    if not _shared:
        _shared.extend(routes)
    # The document of the API is about its own application.
    routes[:] = [own if isinstance(own, Route) else first for own, first in zip(routes, _shared, strict=True)]
    return app
