"""Who calls, and whether a browser was tricked into it. The rooms above know how a caller proves who they are."""

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
"""Tells who calls by what the request brings, or raises NotSignedIn."""

OPERATOR_SCOPE = "headgate.operator"
"""Set in the ASGI scope by a process on the machine itself; it cannot come over the network."""

NOBODY = Caller("")
WORKER_FAILED = "A worker token is required; `headgate worker token` prints it on the server"
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


def caller(connection: Connection, request: Request, settings: Settings, now: datetime) -> Caller:
    """Who calls, or NotSignedIn. The application says which authenticator decides below which path."""
    if request.scope.get(OPERATOR_SCOPE):
        return OPERATOR
    authenticators: Mapping[str, Authenticator] = request.app.state.authenticators
    path = request.scope["path"]
    authenticate = next(authenticators[prefix] for prefix in authenticators if path.startswith(prefix))
    return authenticate(connection, request, settings, now)


def bearer_secret(request: Request) -> str | None:
    """The secret in the header, empty if the header has another scheme; None without a header."""
    header = request.headers.get("authorization")
    if header is None:
        return None
    scheme, _, secret = header.partition(" ")
    return secret.strip() if scheme.lower() == "bearer" else ""


def worker(request: Request, secret: str) -> Caller:
    """The worker that calls, if it knows the secret; else NotSignedIn."""
    if not hmac.compare_digest((bearer_secret(request) or "").encode(), secret.encode()):
        raise NotSignedIn(WORKER_FAILED)
    return WORKER


def refuse_cross_site(request: Request, settings: Settings, *, must_tell: bool) -> None:
    """Refuse a request that another site made a browser send. Browsers tell; `must_tell` refuses one that does not."""
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
