"""A strict URL parser: ambiguous URLs are rejected."""

import re
from dataclasses import dataclass
from urllib.parse import urljoin

import httpx2 as httpx

from headgate.kit.call_errors import CallRefused
from headgate.kit.hosts import Host, read_host

MAX_LENGTH = 4096
_PORTS = {"http": 80, "https": 443}
_URL = re.compile(r"(?P<scheme>https?)://(?P<authority>[^/?#]*)(?P<rest>[^#]*)(?:#.*)?", re.IGNORECASE)
_AUTHORITY = re.compile(r"(?P<host>\[[^\[\]]*\]|[^\[\]:]+)(?::(?P<port>[0-9]{0,5}))?")


@dataclass(frozen=True)
class RequestTarget:
    """The target of a request."""

    url: httpx.URL
    host: Host
    spelt: str
    """The host as it was typed."""

    @property
    def origin(self) -> tuple[str, str, int]:
        """Scheme, host and port: what secrets belong to."""
        return self.url.scheme, str(self.host), self.url.port or _PORTS[self.url.scheme]

    def join(self, location: str) -> "RequestTarget":
        """The target of a redirect."""
        try:
            return read_url(urljoin(str(self.url), location))
        except ValueError:
            raise CallRefused("the location is not a URL") from None


def read_url(url: str) -> RequestTarget:
    """Parse a URL, or say what is wrong with it."""
    if len(url) > MAX_LENGTH:
        raise CallRefused(f"the URL is longer than {MAX_LENGTH} characters")
    if not url.isprintable() or " " in url or "\\" in url:
        raise CallRefused("the URL has spaces, backslashes or control characters; write them as %20, %5C and so on")
    match = _URL.fullmatch(url)
    if not match:
        raise CallRefused("the URL must start with http:// or https://")
    if "@" in match["authority"]:
        raise CallRefused("the URL has a user name or password before the host; send them in a header instead")
    place = _AUTHORITY.fullmatch(match["authority"])
    if not place or (place["port"] and not 1 <= int(place["port"]) <= 65535):
        raise CallRefused("the URL must have a host and, if any, a port from 1 to 65535")
    host = read_host(place["host"])
    return RequestTarget(_rebuilt(match["scheme"].lower(), host, place["port"], match["rest"]), host, place["host"])


def _rebuilt(scheme: str, host: Host, port: str | None, rest: str) -> httpx.URL:
    name = f"[{host}]" if ":" in str(host) else str(host)
    after = rest if rest.startswith("/") else f"/{rest}"
    try:
        return httpx.URL(f"{scheme}://{name}{f':{port}' if port else ''}{after}")
    except httpx.InvalidURL:
        raise CallRefused("the URL cannot be read") from None
