"""Connection checks of REST APIs: reachability and credentials."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

from headgate.execution.connection_checks.checks import CheckRequest, Streams, outgoing
from headgate.execution.sources.rest.auth import Credentials
from headgate.execution.sources.rest.requests import Auth
from headgate.execution.sources.rest.wire import HttpResponse
from headgate.execution.steps.context import StepFailed
from headgate.outgoing.client import Outgoing, Response

_SECRETS = {"bearer": "token", "basic": "password", "api_key": "token", "oauth2": "client_secret"}
_UNAUTHORIZED = frozenset({401, 403})


def test(asked: CheckRequest) -> str:
    """Request the base URL, or a path below it."""
    client = Outgoing(asked.settings.outgoing)
    try:
        with outgoing():
            answer = _get(asked, client)
    finally:
        client.close()
    if answer.status in _UNAUTHORIZED:
        told = (
            f"The API rejects the credentials for this path with status {answer.status}; check the credentials "
            "and their permissions"
        )
        raise StepFailed("WRONG_CREDENTIALS", told)
    if answer.status >= 500:
        raise StepFailed(
            "FAILED_THERE", f"The API has an internal error (status {answer.status}); try again later", passing=True
        )
    if answer.status >= 400 and asked.path:
        raise StepFailed("NO_SUCH_PATH", f"The API answers {answer.status} for {asked.path}; check the path")
    return f"The API answers {answer.status}" + ("" if asked.path else "; to test a request, give a path that exists")


def discover(asked: CheckRequest) -> Streams:
    """Not supported: REST APIs have no standard for discovery."""
    return Streams(asked.limit)


def _get(asked: CheckRequest, client: Outgoing) -> Response:
    config = asked.config
    shown = Credentials(auth_of(asked), lambda *sent: post(client, *sent))
    url = config["base_url"] + quote(asked.path, safe="/%:@!$&'()*+,;=~-._")
    if parameters := shown.parameters():
        url = f"{url}?{urlencode(parameters)}"
    return client.request("GET", url, headers={**config["headers"], **shown.headers()})


def auth_of(asked: CheckRequest) -> Auth:
    """The credentials for requests, from the configuration and secrets."""
    auth: dict[str, Any] = asked.config["auth"]
    style = auth["style"]
    if style == "none":
        return Auth()
    secret = asked.secret(_SECRETS[style])
    if style == "basic":
        return Auth("basic", auth["user"], secret)
    if style == "api_key":
        return Auth(auth["place"], auth["name"], secret)
    if style == "oauth2":
        told = (auth["token_url"], auth["scope"], auth["audience"])
        return Auth("oauth2", auth["client_id"], secret, *told, in_body=auth["sent_in"] == "body")
    return Auth("bearer", secret=secret)


def post(client: Outgoing, url: str, headers: Mapping[str, str], body: bytes) -> HttpResponse:
    """Post a form to a token endpoint."""
    response = client.request("POST", url, headers=headers, content=body)
    return HttpResponse(response.status, dict(response.headers), response.body)
