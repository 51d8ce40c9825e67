"""Resolves a host name once, validates all its addresses, and connects only to these, within one deadline.

The check happens where connections are made, so it cannot be bypassed by a redirect, a changing DNS response, or a URL
that parsers read differently.
"""

import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any

import httpcore2

from headgate.kit.call_errors import Unreachable
from headgate.kit.hosts import Address, Host
from headgate.kit.urls import RequestTarget
from headgate.outgoing.addresses import Allowed, refusal

Resolver = Callable[[str], Sequence[str]]
"""Resolves all addresses of a host name; OSError if there are none."""

_LOOPBACK = (IPv4Address("127.0.0.1"), IPv6Address("::1"))
_PIECE = 16 << 10


def system_resolver(name: str) -> list[str]:
    """The addresses of a name from the system resolver."""
    return [str(result[4][0]) for result in socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)]


def remaining_seconds(deadline: float | None) -> float:
    """The seconds until a deadline; raises a timeout if it has passed or is missing."""
    seconds = (deadline or 0.0) - time.monotonic()
    if seconds <= 0:
        raise httpcore2.TimeoutException
    return seconds


class Guard:
    """Decides which hosts may be called."""

    def __init__(self, allowed: Allowed, resolver: Resolver) -> None:
        self._allowed, self._resolver = allowed, resolver

    def check(self, target: RequestTarget) -> None:
        """Validate what the URL itself contains: an address, or a name that always means this machine."""
        self.check_host(target.host, target.spelt)

    def check_host(self, host: Host, spelt: str | None = None) -> None:
        """Validate a host without a URL."""
        if isinstance(host, str):
            if self._is_local(host):
                raise refusal(host)
        elif not self._allowed.permits(host):
            raise refusal(host, spelt)

    def _is_local(self, name: str) -> bool:
        """Whether a name means this machine without a DNS lookup and is not allowed."""
        if name in self._allowed.names or not f".{name}".endswith(".localhost"):
            return False
        return not any(self._allowed.permits(address) for address in _LOOPBACK)

    def addresses(self, host: Host, deadline: float) -> list[Address]:
        """The addresses of a host. If any is not permitted, the host is refused."""
        if not isinstance(host, str):
            results = [host]
        else:
            results = self._resolve(host, deadline)
            if host in self._allowed.names:
                return results
        if not all(self._allowed.permits(address) for address in results):
            raise refusal(host)
        return results

    def _resolve(self, name: str, deadline: float) -> list[Address]:
        """Resolve in a thread, because the system resolver has no timeout and a hostile DNS server may be slow."""
        answer: Future[Sequence[str]] = Future()

        def ask() -> None:
            try:
                answer.set_result(self._resolver(name))
            except Exception as error:  # noqa: BLE001 - handed to whoever waits
                answer.set_exception(error)

        threading.Thread(target=ask, daemon=True, name="headgate-resolve").start()
        try:
            results = [ip_address(text) for text in answer.result(remaining_seconds(deadline))]
        except TimeoutError:
            raise httpcore2.ConnectTimeout from None
        except (OSError, UnicodeError):
            results = []
        if not results:
            raise Unreachable(f"cannot resolve {name}: the name has no address")
        return list(dict.fromkeys(results))


class GuardedBackend(httpcore2.NetworkBackend):
    """Opens the connections of a pool. The pool's timeout is used as the absolute deadline."""

    def __init__(self, guard: Guard, silent_seconds: float) -> None:
        self._guard, self._plain = guard, httpcore2.SyncBackend()
        self._silent = silent_seconds

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.NetworkStream:
        """Connect to a validated address of this host; each attempt gets a share of the remaining time."""
        addresses = self._guard.addresses(_read(host), timeout or 0.0)
        failure: Exception = httpcore2.ConnectError()
        for number, address in enumerate(addresses):
            share = remaining_seconds(timeout) / (len(addresses) - number)
            try:
                stream = self._plain.connect_tcp(str(address), port, share, local_address, socket_options)
                return _Timed(stream, self._silent)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                failure = error
        raise failure


def _read(host: str) -> Host:
    """Parse the host from the pool, which is already normalized."""
    try:
        return ip_address(host)
    except ValueError:
        return host


class _Timed(httpcore2.NetworkStream):
    """A reusable connection with a deadline per call and a limit on silence."""

    def __init__(self, stream: httpcore2.NetworkStream, silent_seconds: float) -> None:
        self._stream, self._silent = stream, silent_seconds

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, min(remaining_seconds(timeout), self._silent))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        for start in range(0, len(buffer), _PIECE):
            self._stream.write(buffer[start : start + _PIECE], min(remaining_seconds(timeout), self._silent))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.NetworkStream:
        try:
            return _Timed(
                self._stream.start_tls(ssl_context, server_hostname, remaining_seconds(timeout)), self._silent
            )
        except httpcore2.ConnectError as error:
            cause = error.__cause__
            words = cause.verify_message if isinstance(cause, ssl.SSLCertVerificationError) else "no TLS there"
            raise Unreachable(f"no safe connection to {server_hostname}: {words}") from None

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)
