"""How commands reach the API: over HTTP as a member, or in this process as the operator of this machine."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any

import httpx2 as httpx

from headgate.cli.credentials import stored
from headgate.kit.credentials import Sort, has_form, is_well_formed
from headgate.kit.errors import NotFound, Problem
from headgate.kit.ids import kind_of

if TYPE_CHECKING:
    from headgate.client.file_transfer import Transfer

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

    def request(self, method: str, path: str, body: Any = None, **parameters: Any) -> Any:
        """Any method; the answer."""
        given = {name: value for name, value in parameters.items() if value is not None}
        more = {} if body is None else {"json": body}
        return self._answer(self._http.request(method, path, params=given, **more))

    @cached_property
    def transfer(self) -> "Transfer":
        """Files of volumes, sent and fetched."""
        from headgate.client.file_transfer import Transfer

        return Transfer(self._http, self._answer)

    def read(self, path: str, **parameters: Any) -> Iterator[bytes]:
        """The bytes of an answer, as they come."""
        given = {name: value for name, value in parameters.items() if value is not None}
        accept = {"Accept": given.pop("accept", "*/*")}
        with self._http.stream("GET", path, params=given, headers=accept) as response:
            if not response.is_success:
                response.read()
                self._answer(response)
            yield from response.iter_bytes()

    @staticmethod
    def _answer(response: httpx.Response) -> Any:
        is_json = "json" in response.headers.get("content-type", "")
        if response.is_success:
            return response.json() if is_json else response.text
        if response.status_code == 401 and "Authorization" in response.request.headers:
            detail = f"the server does not know this token; it may have ended. Set {TOKEN_VARIABLE} to another"
            raise RemoteProblem({"detail": detail}, 401)
        body = response.json() if is_json else {}
        if body.get("detail") == NotFound.title:
            body["detail"] = _missing(response.url.path)
        raise RemoteProblem(body, response.status_code)


def _missing(path: str) -> str:
    """That there is nothing at a path, with the id that it names."""
    named = [part for part in path.split("/") if kind_of(part)]
    if not named:
        return NotFound.title
    return f"There is no {str(kind_of(named[-1])).replace('_', ' ')} {named[-1]} that you may see"


def server_address(given: str | None = None) -> str:
    """The server that is meant: given, named by the environment, or on this machine."""
    address = (given or os.environ.get(SERVER_VARIABLE) or DEFAULT_SERVER).rstrip("/")
    if not address.startswith(("http://", "https://")):
        raise RemoteProblem({"detail": f"{SERVER_VARIABLE}: write http:// or https:// before {address!r}"}, 422)
    return address


@contextmanager
def over_http(address: str, headers: dict[str, str]) -> Iterator[httpx.Client]:
    """A connection to a server; what goes wrong on the way is a problem in words."""
    try:
        with httpx.Client(base_url=address, headers=headers, timeout=60) as http:
            yield http
    except httpx.TransportError as error:
        detail = f"cannot reach {address}: {str(error).rstrip('.')}; is `headgate up` running?"
        raise RemoteProblem({"detail": detail}, 503) from None
    except (httpx.InvalidURL, httpx.UnsupportedProtocol):
        raise RemoteProblem({"detail": f"{SERVER_VARIABLE}: {address!r} is not an address"}, 422) from None


@contextmanager
def connect() -> Iterator[Client]:
    """A client: by the token of the environment or of `headgate login`, or of this machine's own installation."""
    token, server = os.environ.get(TOKEN_VARIABLE), os.environ.get(SERVER_VARIABLE)
    kept = None if token else stored()
    if kept is not None and server in {None, kept.server}:
        token, server = kept.token, kept.server
    if not token and not server:
        with _local() as local:
            yield Client(local)
        return
    if not token:
        raise RemoteProblem({"detail": f"set {TOKEN_VARIABLE}, or sign in with `headgate login`"}, 401)
    if has_form(token, Sort.token) and not is_well_formed(token, Sort.token):
        detail = f"{TOKEN_VARIABLE} has the form of a token, but a character is wrong; copy it again"
        raise RemoteProblem({"detail": detail}, 422)
    if not is_well_formed(token, Sort.token):
        raise RemoteProblem({"detail": f"{TOKEN_VARIABLE} holds no token; one looks like hgt_ and 38 more"}, 422)
    with over_http(server_address(server), {"Authorization": f"Bearer {token}"}) as http:
        yield Client(http)


@contextmanager
def _local() -> Iterator[httpx.Client]:
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

    with TestClient(as_operator, raise_server_exceptions=False) as client:
        yield client
