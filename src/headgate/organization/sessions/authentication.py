"""Authentication of members, by an API token in a header or a session cookie."""

from datetime import datetime

from fastapi import Request
from sqlalchemy import Connection

from headgate.kit.errors import NotSignedIn
from headgate.organization.sessions import service as sessions
from headgate.organization.sessions.cookies import session_cookie
from headgate.organization.tokens import service as tokens
from headgate.platform.http.authentication import SAFE_METHODS, bearer_secret, refuse_cross_site
from headgate.platform.unit_of_work.call import Caller
from headgate.settings.settings import Settings


def authenticate(connection: Connection, request: Request, settings: Settings, now: datetime) -> Caller:
    """The calling member; raises NotSignedIn. A header takes precedence over a cookie."""
    secret = bearer_secret(request)
    if secret is not None:
        return by_token(connection, secret, now)
    secret = request.cookies.get(session_cookie(request), "")
    session = sessions.identify(connection, secret, now, settings.sign_in) if secret else None
    if session is None:
        raise NotSignedIn
    if request.method not in SAFE_METHODS:
        refuse_cross_site(request, settings, must_tell=True)
    return Caller(session.member, session=session.id, seen=session.seen, tainted=session.tainted)


def by_token(connection: Connection, secret: str, now: datetime) -> Caller:
    """The member of this API token; raises NotSignedIn."""
    identity = tokens.identify(connection, secret, now)
    if identity is None:
        raise NotSignedIn
    return Caller(identity.member, identity.token, identity.narrowing, seen=identity.seen, tainted=identity.tainted)
