"""Credentials of requests, from a connection's configuration and secrets."""

from collections.abc import Mapping

from headgate.contracts.external_systems.kinds import BasicAuth, BearerAuth, Http, KeyAuth, OAuthAuth
from headgate.execution.sources.rest.failures import ApiFailed
from headgate.execution.sources.rest.requests import Auth
from headgate.execution.sources.rest.wire import HttpResponse
from headgate.execution.steps.context import StepFailed
from headgate.kit.call_errors import OutgoingError
from headgate.outgoing.client import Outgoing


def authorized(place: Http, secrets: Mapping[str, str]) -> Auth:
    """The credentials of requests."""
    auth = place.auth
    match auth:
        case BearerAuth():
            return Auth("bearer", secret=secret(secrets, "token"))
        case BasicAuth():
            return Auth("basic", auth.user, secret(secrets, "password"))
        case KeyAuth():
            return Auth(auth.place, auth.name, secret(secrets, "token"))
        case OAuthAuth():
            told = (auth.token_url, auth.scope, auth.audience)
            result = secret(secrets, "client_secret")
            return Auth("oauth2", auth.client_id, result, *told, in_body=auth.sent_in == "body")
    return Auth()


def secret(secrets: Mapping[str, str], name: str) -> str:
    """A required secret; StepFailed if it is not set."""
    if name not in secrets:
        told = f"The {name.replace('_', ' ')} is not set, or was cleared when the host changed; set it again"
        raise StepFailed("MISSING_SECRET", told)
    return secrets[name]


def posted(outgoing: Outgoing, url: str, headers: Mapping[str, str], body: bytes) -> HttpResponse:
    """Post a form to a token endpoint."""
    try:
        response = outgoing.request("POST", url, headers=headers, content=body)
    except OutgoingError as error:
        raise ApiFailed("API_UNREACHABLE", f"Could not reach the token endpoint: {error}", passing=True) from None
    return HttpResponse(response.status, response.headers, response.body)
