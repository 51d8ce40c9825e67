"""The additional environment of the platform's Spark: Python, more disk space, and network access only through the
proxy.
"""

import os
import socket
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Address
from pathlib import Path
from urllib.parse import unquote, urlsplit

import headgate
from headgate.execution.spark import network_access
from headgate.execution.spark.conf import Conf
from headgate.outgoing.proxy import Egress
from headgate.settings.settings import Settings

PORT_INSIDE = 1080
RUNS = Path("work", "runs")
"""The folder of runs in the data folder."""


@dataclass(frozen=True)
class ServerEnvironment:
    """The additional environment of a server."""

    egress: Egress | None = None
    read: tuple[Path, ...] = ()
    write: tuple[Path, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)


def for_platform(settings: Settings, catalog_url: str) -> ServerEnvironment:
    """The environment of the platform's server; its proxy must be closed with it."""
    runs = settings.data_dir.absolute() / RUNS
    runs.mkdir(parents=True, exist_ok=True, mode=0o700)
    package = Path(headgate.__file__).resolve().parents[1]
    read = [Path(sys.prefix), package, *_warehouse(settings)]
    environment = {"PYSPARK_PYTHON": sys.executable}
    return ServerEnvironment(egress(settings, catalog_url), tuple(_seen(read)), (runs,), environment)


def egress(settings: Settings, catalog_url: str) -> Egress:
    """The egress proxy, which also leads to Headgate's own services."""
    always = {}
    for route in network_access.routes(network_access.allowed(settings, catalog_url)):
        for host in (route.host, route.inside):
            always[host, route.port] = (route.host, route.port)
    return Egress(settings.outgoing.allow, always)


def proxy_properties(port: int, hosts: str) -> Conf:
    """The properties that make Java connect through the proxy and resolve only the names in a file."""
    return {
        "socksProxyHost": "127.0.0.1",
        "socksProxyPort": str(port),
        # No exceptions, not even this machine's own addresses.
        "socksNonProxyHosts": "",
        "jdk.net.hosts.file": hosts,
    }


def hosts(settings: Settings, catalog_url: str) -> str:
    """The only names that Java resolves itself, for programs that resolve before they connect."""
    routes = network_access.routes(network_access.allowed(settings, catalog_url))
    lines = ["127.0.0.1 localhost", f"127.0.0.1 {socket.gethostname()}"]
    return "\n".join([*lines, *(f"{route.inside} {route.name}" for route in routes if route.name)]) + "\n"


def is_same_user(near: socket.socket) -> bool:
    """Whether a loopback connection comes from a process of the same user."""
    host, port = near.getpeername()
    place = f"{int.from_bytes(IPv4Address(host).packed, 'little'):08X}:{port:04X}"
    for line in Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]:
        fields = line.split()
        if fields[1] == place:
            return int(fields[7]) == os.getuid()
    return False


def _warehouse(settings: Settings) -> list[Path]:
    """The folders of volume files and of staged notebook output."""
    parts = urlsplit(settings.warehouse_url)
    if parts.scheme != "file":
        return []
    folders = [Path(unquote(parts.path), name) for name in ("volumes", "staging")]
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True)
    return folders


def _seen(folders: Iterable[Path]) -> list[Path]:
    return list(dict.fromkeys(folder for folder in folders if folder.is_dir()))
