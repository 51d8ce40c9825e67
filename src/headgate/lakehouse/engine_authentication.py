"""Authentication of engines at the catalog, by an API token or a work token. Sessions are not accepted."""

from datetime import datetime

from fastapi import Request
from sqlalchemy import Connection

from headgate.lakehouse.catalog.work_tokens import identify_work
from headgate.lakehouse.maintenance.rewrite_tokens import identify_rewriting
from headgate.organization.sessions.authentication import by_token
from headgate.platform.http.authentication import bearer_secret
from headgate.platform.unit_of_work.call import SYSTEM, Caller
from headgate.settings.settings import Settings


def authenticate(connection: Connection, request: Request, settings: Settings, now: datetime) -> Caller:
    """The caller of an engine's request; raises NotSignedIn."""
    secret = bearer_secret(request) or ""
    work = identify_work(connection, secret, now)
    if work is not None:
        return Caller(work.member, work.token, work.narrowing, seen=now, work=work.work)
    rewriting = identify_rewriting(connection, secret, now)
    if rewriting is not None:
        narrowing, task = rewriting
        return Caller(SYSTEM.member, narrowing=narrowing, seen=now, work=task, system=True)
    return by_token(connection, secret, now)
