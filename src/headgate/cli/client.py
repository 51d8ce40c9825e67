"""The API client of the commands: over HTTP as a member, or in process as the operator of the local installation."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from headgate.cli.credentials import stored
from headgate.client import Headgate
from headgate.kit.credentials import Sort, has_form, is_well_formed
from headgate.kit.errors import Invalid, NotSignedIn

SERVER_VARIABLE = "HEADGATE_SERVER_URL"
TOKEN_VARIABLE = "HEADGATE_TOKEN"  # noqa: S105 - the name of a variable
DEFAULT_SERVER = "http://127.0.0.1:8420"


def server_address(given: str | None = None) -> str:
    """The server address: from the option, the environment, or the local installation."""
    address = (given or os.environ.get(SERVER_VARIABLE) or DEFAULT_SERVER).rstrip("/")
    if not address.startswith(("http://", "https://")):
        raise Invalid(f"{SERVER_VARIABLE}: {address!r} has no scheme; it must start with http:// or https://")
    return address


@contextmanager
def connect() -> Iterator[Headgate]:
    """A client with the token from the environment or from `headgate login`, else of the local installation."""
    token, server = os.environ.get(TOKEN_VARIABLE), os.environ.get(SERVER_VARIABLE)
    login = None if token else stored()
    if login is not None and server in {None, login.server}:
        token, server = login.token, login.server
    if not token and not server:
        with _local() as local:
            yield local
        return
    with Headgate(server_address(server), _checked(token)) as client:
        yield client


def _checked(token: str | None) -> str:
    if not token:
        raise NotSignedIn(f"no token: set {TOKEN_VARIABLE}, or run `headgate login`")
    if is_well_formed(token, Sort.token):
        return token
    if has_form(token, Sort.token):
        raise Invalid(f"{TOKEN_VARIABLE}: the checksum of the token is wrong; copy the token again")
    raise Invalid(f"{TOKEN_VARIABLE} is not a token; a token is hgt_ followed by 38 characters")


@contextmanager
def _local() -> Iterator[Headgate]:
    from starlette.testclient import TestClient
    from starlette.types import Receive, Scope, Send

    from headgate.app import create_app
    from headgate.platform.http.authentication import OPERATOR_SCOPE
    from headgate.platform.http.logs import configure
    from headgate.settings.log import LogSettings
    from headgate.settings.settings import load
    from headgate.supervisor.preflight import check

    settings = load()
    check(settings)
    configure(LogSettings(level="error"))
    app = create_app(settings)

    async def as_operator(scope: Scope, receive: Receive, send: Send) -> None:
        scope[OPERATOR_SCOPE] = True
        await app(scope, receive, send)

    with TestClient(as_operator, raise_server_exceptions=False) as http:
        yield Headgate(str(http.base_url), http=http)
