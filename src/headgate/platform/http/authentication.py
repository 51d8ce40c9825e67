"""Authentication of requests, and protection against cross-site requests. Other packages implement the
authenticators.
"""

import hmac
from collections.abc import Callable, Mapping
from datetime import datetime
from urllib.parse import urlsplit

from fastapi import Request
from sqlalchemy import Connection

from headgate.kit.errors import CrossSite, NotSignedIn
from headgate.platform.unit_of_work.call import OPERATOR, WORKER, Caller
from headgate.settings.settings import Settings

Authenticator = Callable[[Connection, Request, Settings, datetime], Caller]
"""Identifies the caller of a request, or raises NotSignedIn."""

OPERATOR_SCOPE = "headgate.operator"
"""Set in the ASGI scope by a process on the machine itself; it cannot be set over the network."""

NOBODY = Caller("")
WORKER_FAILED = "A worker token is required; `headgate worker token` prints it on the server"
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


def caller(connection: Connection, request: Request, settings: Settings, now: datetime) -> Caller:
    """The caller of a request, or NotSignedIn. The application chooses the authenticator by path."""
    if request.scope.get(OPERATOR_SCOPE):
        return OPERATOR
    authenticators: Mapping[str, Authenticator] = request.app.state.authenticators
    path = request.scope["path"]
    authenticate = next(authenticators[prefix] for prefix in authenticators if path.startswith(prefix))
    return authenticate(connection, request, settings, now)


def bearer_secret(request: Request) -> str | None:
    """The bearer token in the header, empty for another scheme; None without a header."""
    header = request.headers.get("authorization")
    if header is None:
        return None
    scheme, _, secret = header.partition(" ")
    return secret.strip() if scheme.lower() == "bearer" else ""


def worker(request: Request, secret: str) -> Caller:
    """The worker with this secret; otherwise NotSignedIn."""
    if not hmac.compare_digest((bearer_secret(request) or "").encode(), secret.encode()):
        raise NotSignedIn(WORKER_FAILED)
    return WORKER


def refuse_cross_site(request: Request, settings: Settings, *, must_tell: bool) -> None:
    """Refuse a cross-site browser request. `must_tell` also refuses requests without the browser's headers."""
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    if site is not None:
        is_ours = site == "same-origin"
    elif origin is not None:
        is_ours = origin in _own_origins(request, settings)
    else:
        is_ours = not must_tell
    if not is_ours:
        raise CrossSite


def _own_origins(request: Request, settings: Settings) -> set[str]:
    origins = {f"{request.url.scheme}://{request.headers.get('host', '')}"}
    if settings.server.public_url:
        public = urlsplit(settings.server.public_url)
        origins.add(f"{public.scheme}://{public.netloc}")
    return origins
