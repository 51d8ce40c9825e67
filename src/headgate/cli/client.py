"""How commands reach the API: over HTTP as a member, or in this process as the operator of this machine."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx2 as httpx

from headgate.errors import Problem
from headgate.kit.secrets import Sort, is_well_formed

SERVER_VARIABLE = "HEADGATE_SERVER_URL"
TOKEN_VARIABLE = "HEADGATE_TOKEN"  # noqa: S105 - the name of a variable
DEFAULT_SERVER = "http://127.0.0.1:8420"


class RemoteProblem(Problem):
    """A problem that the server answered with."""

    def __init__(self, body: dict[str, Any], status: int) -> None:
        super().__init__(str(body.get("detail") or body.get("title") or f"the server answered {status}"))
        self.status = status  # type: ignore[misc]
        self.more = body


class Client:
    """The API, as commands use it."""

    def __init__(self, http: httpx.Client) -> None:
        self._http = http

    def get(self, path: str, **parameters: Any) -> Any:
        """GET; the answer."""
        given = {name: value for name, value in parameters.items() if value is not None}
        return self._answer(self._http.get(path, params=given))

    def post(self, path: str, body: Any) -> Any:
        """POST; the answer."""
        return self._answer(self._http.post(path, json=body))

    @staticmethod
    def _answer(response: httpx.Response) -> Any:
        is_json = "json" in response.headers.get("content-type", "")
        if response.is_success:
            return response.json() if is_json else response.text
        if response.status_code == 401:
            detail = f"the server does not know this token; it may have ended. Set {TOKEN_VARIABLE} to another"
            raise RemoteProblem({"detail": detail}, 401)
        raise RemoteProblem(response.json() if is_json else {}, response.status_code)


@contextmanager
def connect() -> Iterator[Client]:
    """A client: of the server that the environment names, or of this machine's own installation."""
    token, server = os.environ.get(TOKEN_VARIABLE), os.environ.get(SERVER_VARIABLE)
    if token or server:
        if not token:
            raise RemoteProblem({"detail": f"{SERVER_VARIABLE} is set, so set {TOKEN_VARIABLE} too"}, 401)
        if not is_well_formed(token, Sort.token):
            raise RemoteProblem({"detail": f"{TOKEN_VARIABLE} holds no token; one looks like hgt_ and 38 more"}, 422)
        if server and not server.startswith(("http://", "https://")):
            raise RemoteProblem({"detail": f"{SERVER_VARIABLE}: write http:// or https:// before {server!r}"}, 422)
        headers = {"Authorization": f"Bearer {token}"}
        try:
            with httpx.Client(base_url=server or DEFAULT_SERVER, headers=headers, timeout=60) as http:
                yield Client(http)
        except httpx.TransportError as error:
            address = server or DEFAULT_SERVER
            raise RemoteProblem(
                {"detail": f"cannot reach {address}: {error}; is `headgate up` running?"}, 503
            ) from None
        except (httpx.InvalidURL, httpx.UnsupportedProtocol):
            raise RemoteProblem({"detail": f"{SERVER_VARIABLE}: {server!r} is not an address"}, 422) from None
    else:
        with _local() as http:
            yield Client(http)


@contextmanager
def _local() -> Iterator[httpx.Client]:
    from starlette.testclient import TestClient
    from starlette.types import Receive, Scope, Send

    from headgate.app import create_app
    from headgate.config import LogSettings, load
    from headgate.edge.identity import OPERATOR_SCOPE
    from headgate.edge.logs import configure
    from headgate.supervisor.preflight import check

    settings = load()
    check(settings)
    configure(LogSettings(level="error"))
    app = create_app(settings)

    async def as_operator(scope: Scope, receive: Receive, send: Send) -> None:
        scope[OPERATOR_SCOPE] = True
        await app(scope, receive, send)

    with TestClient(as_operator, raise_server_exceptions=False) as client:
        yield client
