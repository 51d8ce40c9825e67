"""The egress proxy for programs that open connections themselves, such as Spark: SOCKS5 and HTTP CONNECT.

It connects only to hosts declared by active work, and to Headgate's own services. It resolves each name once per
connection and validates every address as for all outgoing calls; the programs behind it resolve nothing. Work that
sends its ticket (HTTP, or SOCKS5 with a password) reaches only its own hosts. A program that runs several pieces of
work and cannot send tickets reaches the hosts of all of them.
"""

import base64
import errno
import hmac
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from ipaddress import ip_address

import httpcore2

from headgate.kit.call_errors import CallRefused, OutgoingError, Unreachable
from headgate.kit.hosts import Host, read_host
from headgate.kit.log import get_logger
from headgate.outgoing.addresses import Allowed
from headgate.outgoing.network import Guard, Resolver, remaining_seconds, system_resolver
from headgate.outgoing.proxy_protocols import (
    ConnectRequest,
    ProtocolError,
    read_http_request,
    read_socks_request,
    send_http_reply,
    send_socks_reply,
)

DIAL_SECONDS = 15.0
GREETING_SECONDS = 30.0
ACCEPT_AGAIN_SECONDS = 0.1
MAX_CONNECTIONS = 1000
_CHUNK = 1 << 18
_KEPT = 20
_log = get_logger("headgate.outgoing")

Address = tuple[str, int]


@dataclass(eq=False)
class ProxyTicket:
    """The hosts that one piece of work may reach, and its failed connections."""

    hosts: frozenset[tuple[Host, int]]
    user: str = field(default_factory=lambda: secrets.token_hex(8))
    password: str = field(default_factory=lambda: secrets.token_urlsafe(24), repr=False)
    refused: list[str] = field(default_factory=list)
    """Connections that are refused permanently, with reasons."""

    failed: list[str] = field(default_factory=list)
    """Connections that failed this time."""


class Egress:
    """The proxy. `always` are Headgate's own services by the requested address; they are not validated."""

    def __init__(
        self,
        allow: Iterable[str],
        always: Mapping[Address, Address] | None = None,
        resolver: Resolver = system_resolver,
    ) -> None:
        self._guard = Guard(Allowed.of(allow), resolver)
        self._always = dict(always or {})
        self._lock = threading.Lock()
        self._tickets: dict[str, ProxyTicket] = {}
        self._listeners: list[socket.socket] = []
        self._open: set[socket.socket] = set()

    def serve(
        self,
        listener: socket.socket,
        may_come: Callable[[socket.socket], bool] = lambda _: True,
        taken: Callable[[socket.socket], socket.socket] = lambda near: near,
    ) -> None:
        """Accept connections in separate threads: direct ones, or those handed over by each."""
        self._listeners.append(listener)
        arguments = (listener, may_come, taken)
        threading.Thread(target=self._accept, args=arguments, daemon=True, name="egress").start()

    @contextmanager
    def admit(self, hosts: Iterable[Address]) -> Iterator[ProxyTicket]:
        """Admit work to these hosts while this context is active; raises CallRefused or Unreachable."""
        ticket = ProxyTicket(frozenset((read_host(_bare(host)), port) for host, port in hosts))
        for host, _ in ticket.hosts:
            self._guard.addresses(host, time.monotonic() + DIAL_SECONDS)
        with self._lock:
            self._tickets[ticket.user] = ticket
        try:
            yield ticket
        finally:
            with self._lock:
                del self._tickets[ticket.user]

    def close(self) -> None:
        """Close the listener and all connections."""
        for listener in self._listeners:
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        with self._lock:
            under_way = list(self._open)
        for connection in under_way:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    # Connections, each in a separate thread

    def _accept(
        self,
        listener: socket.socket,
        may_come: Callable[[socket.socket], bool],
        taken: Callable[[socket.socket], socket.socket],
    ) -> None:
        while True:
            try:
                near, _ = listener.accept()
            except OSError as error:
                if error.errno in {errno.EBADF, errno.EINVAL}:
                    # The listener was closed. Other errors, such as missing file descriptors, are transient.
                    return
                time.sleep(ACCEPT_AGAIN_SECONDS)
                continue
            if len(self._open) >= MAX_CONNECTIONS or not may_come(near):
                near.close()
                continue
            threading.Thread(target=self._come, args=(near, taken), daemon=True, name="egress").start()

    def _come(self, came: socket.socket, taken: Callable[[socket.socket], socket.socket]) -> None:
        came.settimeout(GREETING_SECONDS)
        try:
            with self._counted(came):
                near = taken(came)
        except OSError:
            came.close()
            return
        if near is not came:
            came.close()
        self._take(near)

    def _take(self, near: socket.socket) -> None:
        with near, self._counted(near):
            near.settimeout(GREETING_SECONDS)
            try:
                first = near.recv(1)
                socks = first == b"\x05"
                wanted = read_socks_request(near) if socks else read_http_request(near, first)
            except (OSError, ProtocolError):
                return
            answer = send_socks_reply if socks else send_http_reply
            tickets = self._of(wanted)
            if tickets is None:
                answer(near, "password", "The ticket is not known")
                return
            far, trouble, why = self._dialled(wanted, tickets)
            with suppress(OSError):
                answer(near, trouble, why)
            if far is not None:
                with far, self._counted(far):
                    _join(near, far)

    @contextmanager
    def _counted(self, connection: socket.socket) -> Iterator[None]:
        with self._lock:
            self._open.add(connection)
        try:
            yield
        finally:
            with self._lock:
                self._open.discard(connection)

    def _of(self, wanted: ConnectRequest) -> list[ProxyTicket] | None:
        """The tickets that apply to a connection; None for an unknown one."""
        with self._lock:
            if wanted.user is None:
                return list(self._tickets.values())
            proxy_ticket = self._tickets.get(wanted.user)
        if proxy_ticket is None or not hmac.compare_digest(proxy_ticket.password.encode(), wanted.password.encode()):
            return None
        return [proxy_ticket]

    def _dialled(self, wanted: ConnectRequest, tickets: list[ProxyTicket]) -> tuple[socket.socket | None, str, str]:
        """A connection; or None, with the kind of error and its reason."""
        ours = self._always.get((wanted.host, wanted.port))
        if ours is not None:
            return _our_own(ours)
        deadline = time.monotonic() + DIAL_SECONDS
        concerned = tickets
        try:
            host = read_host(_bare(wanted.host))
            concerned, addresses = self._judged(host, wanted.port, tickets, deadline)
            return _connected(addresses, wanted.port, deadline), "", ""
        except CallRefused as error:
            why = f"No connection to {wanted.host}:{wanted.port}: {error}"
            _note(concerned, "refused", why)
            return None, "refused", why
        except Unreachable as error:
            why = str(error)
        except (OSError, httpcore2.TimeoutException, OutgoingError) as error:
            told = getattr(error, "strerror", None) or "it did not answer in time"
            why = f"{wanted.host}:{wanted.port} cannot be reached: {told}"
        _note(concerned, "failed", why)
        return None, "unreachable", why

    def _judged(
        self, host: Host, port: int, tickets: list[ProxyTicket], deadline: float
    ) -> tuple[list[ProxyTicket], list[str]]:
        """The tickets that declare a host, and its addresses. A program may also request an address that it resolved
        itself.
        """
        concerned = [ticket for ticket in tickets if (host, port) in ticket.hosts]
        if concerned:
            return concerned, [str(address) for address in self._guard.addresses(host, deadline)]
        if not isinstance(host, str):
            for entry in tickets:
                for name, declared in entry.hosts:
                    if declared == port and host in self._guard.addresses(name, deadline):
                        return [entry], [str(host)]
        raise CallRefused("this run did not declare that it goes there")


def _our_own(address: Address) -> tuple[socket.socket | None, str, str]:
    try:
        return socket.create_connection(address, DIAL_SECONDS), "", ""
    except OSError as error:
        _log.warning("a part of ours cannot be reached", host=address[0], port=address[1], error=str(error))
        return None, "unreachable", "A part of this installation cannot be reached"


def _bare(host: str) -> str:
    """A host as written in URLs."""
    with suppress(ValueError):
        return f"[{host}]" if ip_address(host).version == 6 else host
    return host


def _note(tickets: list[ProxyTicket], what: str, text: str) -> None:
    _log.warning(f"a connection was {what}", why=text)
    for ticket in tickets:
        results: list[str] = getattr(ticket, what)
        if len(results) < _KEPT:
            results.append(text)


def _connected(addresses: list[str], port: int, deadline: float) -> socket.socket:
    failure: OSError = ConnectionRefusedError()
    for number, address in enumerate(addresses):
        try:
            return socket.create_connection((address, port), remaining_seconds(deadline) / (len(addresses) - number))
        except OSError as error:
            failure = error
    raise failure


def _join(near: socket.socket, far: socket.socket) -> None:
    for end in (near, far):
        end.settimeout(None)
        if end.family != socket.AF_UNIX:
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            end.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    back = threading.Thread(target=_copy, args=(far, near), daemon=True, name="egress")
    back.start()
    _copy(near, far)
    back.join()


def _copy(source: socket.socket, target: socket.socket) -> None:
    room = memoryview(bytearray(_CHUNK))
    with suppress(OSError):
        while size := source.recv_into(room):
            target.sendall(room[:size])
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)
    with suppress(OSError):
        source.shutdown(socket.SHUT_RD)


def authorization(ticket: ProxyTicket) -> str:
    """The proxy authorization header for a ticket."""
    return "Basic " + base64.b64encode(f"{ticket.user}:{ticket.password}".encode()).decode()
