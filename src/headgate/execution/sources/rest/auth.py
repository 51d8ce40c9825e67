"""Authentication of requests: headers, parameters, and access tokens that are fetched and renewed."""

import base64
import json
import re
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import quote, quote_plus, urlencode

from headgate.execution.sources.rest.failures import ApiFailed
from headgate.execution.sources.rest.requests import Auth
from headgate.execution.sources.rest.wire import HttpResponse

_MARGIN = 30.0
_USUAL = 3600.0
_VALUE = re.compile(r"[\x20-\x7e]*")
AGAIN = "set the connection's secret again, and check that it has not expired"
Post = Callable[[str, dict[str, str], bytes], HttpResponse]
"""Posts a form to a URL and returns the response."""


class Credentials:
    """The secrets of a connection as sent in requests."""

    def __init__(self, auth: Auth, post: Post) -> None:
        self._auth, self._post = auth, post
        self._token, self._ends = "", 0.0

    def headers(self) -> dict[str, str]:
        """The headers that authorize a request."""
        auth = self._auth
        match auth.style:
            case "bearer":
                return _header("Authorization", f"Bearer {auth.secret}")
            case "basic":
                return _header("Authorization", _basic(auth.name, auth.secret))
            case "header":
                return _header(auth.name, auth.secret)
            case "oauth2":
                return _header("Authorization", f"Bearer {self._access_token()}")
        return {}

    def parameters(self) -> dict[str, str]:
        """The parameters that authorize a request."""
        return {self._auth.name: self._auth.secret} if self._auth.style == "query" else {}

    def refused(self) -> bool:
        """Handle an unauthorized request; returns whether to retry once with a new token."""
        had = bool(self._token)
        self._token = ""
        return had

    def secrets(self) -> list[str]:
        """Every spelling of a secret that a response could repeat."""
        plain = [value for value in (self._auth.secret, self._token) if value]
        packed = [_basic(self._auth.name, value).partition(" ")[2] for value in plain]
        return [*plain, *packed, *map(quote_plus, plain), *(quote(value, safe="") for value in plain)]

    def _access_token(self) -> str:
        if not self._token or time.monotonic() > self._ends:
            self._fetch()
        return self._token

    def _fetch(self) -> None:
        auth = self._auth
        fields = {"grant_type": "client_credentials", "scope": auth.scope, "audience": auth.audience}
        headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
        if auth.in_body:
            fields |= {"client_id": auth.name, "client_secret": auth.secret}
        else:
            # RFC 6749, 2.3.1: both are form-encoded before they are joined.
            headers |= _header("Authorization", _basic(quote_plus(auth.name), quote_plus(auth.secret)))
        form = urlencode({name: value for name, value in fields.items() if value}).encode("ascii")
        answer = self._post(auth.token_url, headers, form)
        if answer.status != 200:
            why = _reason(answer.body)
            told = (
                f"The token endpoint answered with status {answer.status}{why}; check its address, the client id "
                "and the scope"
            )
            raise ApiFailed("API_UNAUTHORIZED", f"{told}, and {AGAIN}")
        self._token, seconds = _read_token(answer.body)
        self._ends = time.monotonic() + max(seconds - _MARGIN, min(seconds, _MARGIN) / 2)


def _read_token(body: bytes) -> tuple[str, float]:
    try:
        document: Any = json.loads(body)
        token, seconds = document["access_token"], float(document.get("expires_in") or _USUAL)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        token, seconds = None, 0.0
    if not isinstance(token, str) or not token:
        told = "The token endpoint returned no access_token; check the connection's token address"
        raise ApiFailed("API_UNAUTHORIZED", told)
    return token, seconds


def _reason(body: bytes) -> str:
    """The error description of the service, if it follows RFC 6749."""
    try:
        result = json.loads(body)["error"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return ""
    return f" ({result})" if isinstance(result, str) and re.fullmatch(r"[a-z_]{1,60}", result) else ""


def _basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode("ascii")


def _header(name: str, value: str) -> dict[str, str]:
    if not _VALUE.fullmatch(value):
        told = (
            "The connection's secret contains characters that are invalid in a header, such as a line break; set "
            "it again"
        )
        raise ApiFailed("API_UNAUTHORIZED", told)
    return {name: value}
