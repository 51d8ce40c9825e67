"""Connections to hosts given by members over protocols other than HTTP: resolved once, validated, connected by
address.
"""

import socket
import time
from dataclasses import dataclass

import httpcore2

from headgate.kit.call_errors import Unreachable
from headgate.kit.hosts import Address, read_host
from headgate.outgoing.addresses import Allowed
from headgate.outgoing.network import Guard, Resolver, remaining_seconds, system_resolver
from headgate.settings.outgoing import OutgoingSettings


@dataclass(frozen=True, slots=True)
class ResolvedHost:
    """A host with validated addresses: connect only to these, whatever its name resolves to later."""

    name: str
    port: int
    addresses: tuple[Address, ...]

    def connect(self, deadline: float) -> socket.socket:
        """Connect to one of the addresses; each attempt gets a share of the remaining time."""
        for number, address in enumerate(self.addresses):
            try:
                share = remaining_seconds(deadline) / (len(self.addresses) - number)
                return socket.create_connection((str(address), self.port), share)
            except httpcore2.TimeoutException:
                break
            except OSError:
                continue
        words = "timed out" if time.monotonic() >= deadline else f"accepts no connections on port {self.port}"
        raise Unreachable(f"{self.name} {words}")


def check_host(text: str, settings: OutgoingSettings) -> None:
    """Validate a host when it is saved: its literal address, or a name that always means this machine; raises
    CallRefused.
    """
    Guard(Allowed.of(settings.allow), system_resolver).check_host(_host(text), text)


def dial(
    text: str, port: int, settings: OutgoingSettings, deadline: float, resolver: Resolver | None = None
) -> ResolvedHost:
    """Resolve a host and validate all its addresses; raises CallRefused or Unreachable."""
    host, guard = _host(text), Guard(Allowed.of(settings.allow), resolver or system_resolver)
    guard.check_host(host, text)
    try:
        results = guard.addresses(host, deadline)
    except httpcore2.TimeoutException:
        raise Unreachable(f"{text} could not be looked up in time") from None
    return ResolvedHost(text, port, tuple(results))


def _host(text: str) -> str | Address:
    return read_host(f"[{text}]" if ":" in text and not text.startswith("[") else text)
