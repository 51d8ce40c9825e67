"""Resolves a name once, judges every address of the answer, and connects to none but these, within one deadline.

The judgement stands where connections are made, so nothing can be called around it: not by a redirect, not by a name
whose answer changes, not by a URL that two parsers read differently.
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
"""Gives all addresses of a host name; OSError if there are none."""

_LOOPBACK = (IPv4Address("127.0.0.1"), IPv6Address("::1"))
_PIECE = 16 << 10


def system_resolver(name: str) -> list[str]:
    """The addresses that this machine finds for a name."""
    return [str(result[4][0]) for result in socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)]


def remaining_seconds(deadline: float | None) -> float:
    """The seconds until a deadline; a timeout if it has passed, or if there is none."""
    seconds = (deadline or 0.0) - time.monotonic()
    if seconds <= 0:
        raise httpcore2.TimeoutException
    return seconds


class Guard:
    """Says where calls may go."""

    def __init__(self, allowed: Allowed, resolver: Resolver) -> None:
        self._allowed, self._resolver = allowed, resolver

    def check(self, target: RequestTarget) -> None:
        """Judge what the URL says by itself: an address, or a name that always means this machine."""
        self.check_host(target.host, target.spelt)

    def check_host(self, host: Host, spelt: str | None = None) -> None:
        """The same of a host that stands alone."""
        if isinstance(host, str):
            if self._is_local(host):
                raise refusal(host)
        elif not self._allowed.permits(host):
            raise refusal(host, spelt)

    def _is_local(self, name: str) -> bool:
        """Whether a name means this machine without asking anyone, and nothing permits that."""
        if name in self._allowed.names or not f".{name}".endswith(".localhost"):
            return False
        return not any(self._allowed.permits(address) for address in _LOOPBACK)

    def addresses(self, host: Host, deadline: float) -> list[Address]:
        """The addresses of a host, all of them judged: one that is not permitted spoils the answer."""
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
        """Ask in a thread, since the system's resolver knows no timeout and a hostile name server takes its time."""
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
    """Makes the connections of a pool. What the pool calls a timeout is here the moment when all must be over."""

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
        """Connect to an address of this host that was judged; each gets its share of the time that is left."""
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
    """What the pool was told to connect to, which is already in its usual spelling."""
    try:
        return ip_address(host)
    except ValueError:
        return host


class _Timed(httpcore2.NetworkStream):
    """A connection, used by one call after the other, each with its own deadline, and never silent for long."""

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
