"""A single request and its response through the egress proxy, limited in size and time."""

import contextlib
import http.client
import socket
import ssl
import threading
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from headgate.execution.sources.rest.failures import ApiFailed
from headgate.execution.sources.rest.requests import Proxy

_PIECE = 64 << 10
_PORTS = {"http": 80, "https": 443}
Origin = tuple[str, str, int]


class NoResponse(Exception):
    """There was no complete response: connection refused, lost or timed out. A retry may succeed.

    `stale` if the connection was reused and the server may have closed it.
    """

    def __init__(self, message: str, *, stale: bool = False) -> None:
        super().__init__(message)
        self.stale = stale


@dataclass(frozen=True)
class HttpResponse:
    """A response with lower-case headers (repeated ones joined by commas) and a decompressed body."""

    status: int
    headers: Mapping[str, str]
    body: bytes


def origin(parts: SplitResult) -> Origin:
    """The scope of secrets: scheme, host and port. ValueError if a part is missing."""
    scheme, host = parts.scheme.lower(), (parts.hostname or "").lower().rstrip(".")
    if scheme not in _PORTS or not host or "@" in parts.netloc or "\\" in parts.netloc:
        raise ValueError("not an address of HTTP")
    return scheme, host, parts.port or _PORTS[scheme]


class OriginConnections:
    """Keep-alive connections, one per origin. Not thread-safe."""

    def __init__(self, proxy: Proxy | None, certificates: str, answer_bytes: int) -> None:
        self._proxy, self._limit = proxy, answer_bytes
        self._certificates = certificates
        self._context: ssl.SSLContext | None = None
        self._open: dict[Origin, http.client.HTTPConnection] = {}

    def send(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None, seconds: float
    ) -> HttpResponse:
        """Send a request and read its response within `seconds`; raises NoResponse, or ApiFailed if it is too large."""
        parts = urlsplit(url)
        place = origin(parts)
        deadline = time.monotonic() + seconds
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        with self._watched(place, deadline) as connection:
            connection.request(method, target, body, {**headers, "Accept-Encoding": "gzip"})
            response = connection.getresponse()
            values = {name.lower(): ", ".join(response.headers.get_all(name) or ()) for name in response.headers}
            answer = HttpResponse(
                response.status, values, self._body(response, values.get("content-encoding", ""), place[1])
            )
            if response.will_close:
                self._drop(place)
            return answer

    def close(self) -> None:
        """Close all connections."""
        for place in list(self._open):
            self._drop(place)

    @contextlib.contextmanager
    def _watched(self, place: Origin, deadline: float) -> Iterator[http.client.HTTPConnection]:
        """A connection that is closed at the deadline, however slowly the server sends."""
        host, stale = place[1], place in self._open
        cut = threading.Event()
        watch = threading.Timer(max(deadline - time.monotonic(), 0), self._cut, (place, cut))
        watch.daemon = True
        watch.start()
        whole = False
        try:
            yield self._connection(place, deadline)
            whole = not cut.is_set()
        except ssl.SSLCertVerificationError as error:
            told = (
                f"The TLS connection to {host} failed: {error.verify_message}; set a certificate authority in the "
                "connection"
            )
            raise ApiFailed("API_UNSAFE", told) from None
        except (OSError, http.client.HTTPException, ValueError, zlib.error) as error:
            if not cut.is_set() and not isinstance(error, TimeoutError):
                raise NoResponse(_words(host, place[2], error), stale=stale) from None
        finally:
            watch.cancel()
            if not whole:
                self._drop(place)
        if not whole:
            raise NoResponse(f"{host} timed out")

    def _cut(self, place: Origin, cut: threading.Event) -> None:
        cut.set()
        connection = self._open.get(place)
        if connection is not None and connection.sock is not None:
            with contextlib.suppress(OSError):
                connection.sock.shutdown(socket.SHUT_RDWR)

    def _connection(self, place: Origin, deadline: float) -> http.client.HTTPConnection:
        connection = self._open.get(place)
        if connection is None:
            scheme, host, port = place
            seconds = max(deadline - time.monotonic(), 0.01)
            connection = http.client.HTTPConnection(host, port, timeout=seconds)
            connection.sock, connection.auto_open = self._tunnel(host, port, seconds), 0
            self._open[place] = connection
            if scheme == "https":
                wrapped = self._tls().wrap_socket(connection.sock, server_hostname=host, do_handshake_on_connect=False)
                connection.sock, connection.default_port = wrapped, 443
                wrapped.do_handshake()
        if connection.sock is not None:
            connection.sock.settimeout(max(deadline - time.monotonic(), 0.01))
        return connection

    def _tunnel(self, host: str, port: int, seconds: float) -> socket.socket:
        if self._proxy is None:
            return socket.create_connection((host, port), seconds)
        near = socket.create_connection((self._proxy.host, self._proxy.port), seconds)
        try:
            name = f"[{host}]" if ":" in host else host
            lines = [f"CONNECT {name}:{port} HTTP/1.1", f"Host: {name}:{port}"]
            if self._proxy.authorization:
                lines.append(f"Proxy-Authorization: {self._proxy.authorization}")
            near.sendall("\r\n".join([*lines, "", ""]).encode("ascii"))
            with contextlib.closing(http.client.HTTPResponse(near, method="CONNECT")) as answer:
                answer.begin()
                if answer.status != 200:
                    self._refused(answer, host)
        except BaseException:
            near.close()
            raise
        return near

    def _refused(self, answer: http.client.HTTPResponse, host: str) -> None:
        """Raise an error that says why the proxy refused the connection."""
        said = answer.fp.read(_PIECE).decode("utf-8", "replace").strip() if answer.fp else ""
        reason = said or answer.reason or f"there is no route to {host}"
        if answer.status == 403:
            raise ApiFailed("ADDRESS_REFUSED", reason)
        raise NoResponse(reason)

    def _tls(self) -> ssl.SSLContext:
        if self._context is None:
            self._context = ssl.create_default_context()
            with contextlib.suppress(ImportError):
                import certifi  # noqa: PLC0415 - may not be there

                self._context.load_verify_locations(certifi.where())
            if self._certificates:
                self._context.load_verify_locations(cadata=self._certificates)
        return self._context

    def _body(self, response: http.client.HTTPResponse, encoding: str, host: str) -> bytes:
        """The body; the limit applies to the compressed and the decompressed size."""
        pieces: Iterable[bytes] = iter(lambda: response.read(_PIECE), b"")
        if encoding.strip().lower() in ("gzip", "x-gzip"):
            pieces = _inflated(self._bounded(pieces, host))
        elif encoding.strip().lower() not in ("", "identity"):
            raise ValueError("packed in a way that was not asked for")
        return b"".join(self._bounded(pieces, host))

    def _bounded(self, pieces: Iterable[bytes], host: str) -> Iterator[bytes]:
        total = 0
        for piece in pieces:
            total += len(piece)
            if total > self._limit:
                told = f"A response of {host} is larger than {self._limit:,} bytes; request fewer rows per page"
                raise ApiFailed("API_TOO_LARGE", told)
            yield piece

    def _drop(self, place: Origin) -> None:
        connection = self._open.pop(place, None)
        if connection is not None:
            connection.close()


def _inflated(pieces: Iterable[bytes]) -> Iterator[bytes]:
    inflater = zlib.decompressobj(zlib.MAX_WBITS | 16)
    started = False
    for piece in pieces:
        started, rest = True, piece
        while not inflater.eof and (result := inflater.decompress(rest, _PIECE)):
            yield result
            rest = inflater.unconsumed_tail
    if started and not inflater.eof:
        raise ValueError("broken off")


def _words(host: str, port: int, error: Exception) -> str:
    if isinstance(error, socket.gaierror):
        return f"cannot resolve {host}: the name has no address"
    if isinstance(error, ConnectionRefusedError):
        return f"{host} accepts no connections on port {port}"
    if isinstance(error, ssl.SSLError):
        return f"{host} does not speak TLS on port {port}"
    return f"{host} closed the connection, or did not answer with HTTP"
