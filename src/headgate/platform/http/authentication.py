"""Who calls: by a token in a header, or by a session in a cookie, and whether a browser was tricked into it."""

import hmac
from datetime import datetime
from urllib.parse import urlsplit

from fastapi import Request
from sqlalchemy import Connection

from headgate.kit.errors import CrossSite, NotSignedIn
from headgate.lakehouse.catalog.work_tokens import identify_work
from headgate.lakehouse.maintenance.rewrite_tokens import identify_rewriting
from headgate.organization.sessions import service as sessions
from headgate.organization.sessions.cookies import session_cookie
from headgate.organization.tokens import service as tokens
from headgate.platform.http.call import OPERATOR, SYSTEM, WORKER, Caller
from headgate.settings.settings import Settings

OPERATOR_SCOPE = "headgate.operator"
"""Set in the ASGI scope by a process on the machine itself; it cannot come over the network."""

NOBODY = Caller("")
WORKER_FAILED = "Send this installation's worker secret; `headgate worker token` prints it on the server's machine"
CATALOG = "/iceberg/"
"""Where the catalog is: the only place for work tokens, and one where no session counts."""
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})


def caller(connection: Connection, request: Request, settings: Settings, now: datetime) -> Caller:
    """Who calls, or NotSignedIn."""
    if request.scope.get(OPERATOR_SCOPE):
        return OPERATOR
    header = request.headers.get("authorization")
    if request.scope["path"].startswith(CATALOG):
        return _of_engine(connection, header or "", now)
    if header is not None:
        scheme, _, secret = header.partition(" ")
        identity = tokens.identify(connection, secret.strip(), now) if scheme.lower() == "bearer" else None
        if identity is None:
            raise NotSignedIn
        return _by_token(identity)
    secret = request.cookies.get(session_cookie(request), "")
    session = sessions.identify(connection, secret, now, settings.sign_in) if secret else None
    if session is None:
        raise NotSignedIn
    if request.method not in _SAFE:
        refuse_cross_site(request, settings, must_tell=True)
    return Caller(session.member, session=session.id, seen=session.seen, tainted=session.tainted)


def _by_token(identity: tokens.Identity) -> Caller:
    return Caller(identity.member, identity.token, identity.narrowing, seen=identity.seen, tainted=identity.tainted)


def _of_engine(connection: Connection, header: str, now: datetime) -> Caller:
    """Who calls the catalog: an engine, by an API token or a work token."""
    scheme, _, secret = header.partition(" ")
    secret = secret.strip() if scheme.lower() == "bearer" else ""
    work = identify_work(connection, secret, now)
    if work is not None:
        return Caller(work.member, work.token, work.narrowing, seen=now, work=work.work)
    rewriting = identify_rewriting(connection, secret, now)
    if rewriting is not None:
        narrowing, task = rewriting
        return Caller(SYSTEM.member, narrowing=narrowing, seen=now, work=task, system=True)
    identity = tokens.identify(connection, secret, now)
    if identity is None:
        raise NotSignedIn
    return _by_token(identity)


def worker(request: Request, secret: str) -> Caller:
    """The worker that calls, if it knows the secret; else NotSignedIn."""
    scheme, _, presented = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not hmac.compare_digest(presented.strip().encode(), secret.encode()):
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
