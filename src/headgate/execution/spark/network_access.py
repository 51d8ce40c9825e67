"""The addresses that a sandboxed server may reach: the catalog and the bucket's object store."""

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urlsplit

from headgate.settings.settings import Settings
from headgate.warehouse.address import address_of

_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True)
class Route:
    """An outside address, and the loopback address for it inside the sandbox."""

    host: str
    port: int
    inside: str

    @property
    def name(self) -> str | None:
        """The host name that must resolve to the inner address; None if the outer one is an IP address."""
        return None if _is_address(self.host) or self.host == "localhost" else self.host


def routes(addresses: Iterable[tuple[str, int]], *, keep: bool = False) -> list[Route]:
    """A route for each address. Host names stay the same inside, each at a separate loopback address.

    With `keep`, IP addresses stay the same too, and must be added to the inner network.
    """
    routes: list[Route] = []
    names: dict[str, str] = {}
    for host, port in dict.fromkeys(addresses):
        if _is_address(host) or host == "localhost":
            inside = host if keep and host != "localhost" else "127.0.0.1"
        else:
            inside = names.setdefault(host, f"127.0.0.{len(names) + 2}")
        routes.append(Route(host, port, inside))
    return routes


def allowed(settings: Settings, catalog_url: str) -> list[tuple[str, int]]:
    """The addresses that a server with these settings may reach."""
    results = [address(catalog_url)]
    if settings.warehouse_url.startswith("s3://"):
        bucket = address_of(settings)
        results.append(address(f"{bucket.scheme}://{bucket.request_host}"))
    return results


def address(url: str) -> tuple[str, int]:
    """The host and port of a URL."""
    parts = urlsplit(url)
    return parts.hostname or "localhost", parts.port or _PORTS.get(parts.scheme, 80)


def sandbox_url(url: str) -> str:
    """A URL for use in the sandbox: an outer IP address is replaced by its loopback address."""
    parts = urlsplit(url)
    host = parts.hostname or "localhost"
    if not _is_address(host) or ipaddress.ip_address(host).is_loopback:
        return url
    return parts._replace(netloc=f"127.0.0.1:{address(url)[1]}").geturl()


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
