"""The HTTP client for all URLs given by members."""

import re
import ssl
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from json import dumps
from typing import Any, TypeVar

import httpcore2
import httpx2 as httpx

from headgate import __version__
from headgate.kit.call_errors import CallRefused, TooLarge, Unreachable
from headgate.kit.urls import RequestTarget, read_url
from headgate.outgoing.addresses import Allowed
from headgate.outgoing.network import Guard, GuardedBackend, Resolver, system_resolver
from headgate.settings.outgoing import OutgoingSettings

MAX_REDIRECTS = 5
IDLE_CONNECTIONS = 20
IDLE_SECONDS = 5.0
_INFLATED = 64 << 10
_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"})
_BECOME_GET = frozenset({301, 302, 303})
_KEEP_METHOD = frozenset({307, 308})
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e]*")
_OURS = re.compile(
    r"host|content-length|transfer-encoding|connection|keep-alive|te|trailer|upgrade|expect|accept-encoding|proxy-.*"
)
_OF_BODY = re.compile(r"content-.*|idempotency-key")
# Any other header may contain a secret, because members choose the names.
_FOR_ANYONE = frozenset(
    {"accept", "accept-encoding", "accept-language", "content-type", "idempotency-key", "user-agent"}
)


@dataclass(frozen=True)
class Response:
    """A response with its original headers and its decompressed body."""

    status: int
    headers: httpx.Headers
    body: bytes


@dataclass(frozen=True)
class StreamedResponse:
    """A response with a streamed, decompressed body of any size."""

    status: int
    headers: httpx.Headers
    url: str
    """The final URL after redirects."""

    pieces: Iterator[bytes]


@dataclass(frozen=True)
class _Ask:
    """One request of a call; a redirect creates the next one."""

    method: str
    target: RequestTarget
    headers: Mapping[str, str]
    body: bytes | None

    def redirected(self, status: int, location: str) -> "_Ask":
        target = self.target.join(location)
        if (self.target.url.scheme, target.url.scheme) == ("https", "http"):
            raise CallRefused(f"{target.host} would be called by http, although the call began by https")
        method, body, headers = self.method, self.body, self.headers
        if target.origin != self.target.origin:
            headers = {name: value for name, value in headers.items() if name in _FOR_ANYONE}
        if status in _BECOME_GET and method not in ("GET", "HEAD"):
            method, body = "GET", None
            headers = {name: value for name, value in headers.items() if not _OF_BODY.fullmatch(name)}
        return _Ask(method, target, headers, body)

    def core(self, deadline: float) -> httpcore2.Request:
        request = httpx.Request(self.method, self.target.url, headers=dict(self.headers), content=self.body)
        url = request.url
        return httpcore2.Request(
            self.method,
            httpcore2.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
            headers=request.headers.raw,
            content=request.content,
            extensions={"timeout": {"connect": deadline, "read": deadline, "write": deadline}},
        )


class Outgoing:
    """Calls URLs given by members if they are public or in `outgoing.allow`. Thread-safe."""

    def __init__(
        self,
        settings: OutgoingSettings,
        *,
        resolver: Resolver = system_resolver,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        self._settings = settings
        self._guard = Guard(Allowed.of(settings.allow), resolver)
        # The pool itself instead of a client, which would keep cookies, read .netrc and use proxies.
        self._pool = httpcore2.ConnectionPool(
            ssl_context=ssl_context or httpx.create_ssl_context(),
            max_connections=None,
            max_keepalive_connections=IDLE_CONNECTIONS,
            keepalive_expiry=IDLE_SECONDS,
            network_backend=GuardedBackend(self._guard, settings.timeout_seconds),
        )

    def request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        content: bytes | None = None,
        json: Any = None,
        idempotency_key: str | None = None,
        redirects: bool = True,
    ) -> Response:
        """Call a URL and return its final response with any status; raises OutgoingError.

        A redirect may turn a POST into a GET, which sends no data: without `redirects`, the redirect itself is the
        response.
        """
        deadline = time.monotonic() + self._settings.timeout_seconds
        if method.upper() not in _METHODS:
            raise CallRefused(f"the method must be one of {', '.join(sorted(_METHODS))}")
        if content is not None and json is not None:
            raise ValueError("give content or json, not both")
        ask = _Ask(method.upper(), read_url(url), _headers(headers or {}, idempotency_key), content)
        if json is not None:
            body = dumps(json, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
            ask = replace(ask, body=body, headers={"content-type": "application/json", **ask.headers})
        return self._follow(ask, deadline, self._send) if redirects else self._send(ask, deadline)

    @contextmanager
    def stream(
        self, url: str, *, headers: Mapping[str, str] | None = None, seconds: float | None = None
    ) -> Iterator[StreamedResponse]:
        """GET a URL with a large response, following redirects, within `seconds`; raises OutgoingError.

        The server may be silent for at most `outgoing.timeout_seconds`. The caller limits the size.
        """
        deadline = time.monotonic() + (seconds or self._settings.timeout_seconds)
        ask = _Ask("GET", read_url(url), _headers(headers or {}, None) | {"accept-encoding": "identity"}, None)
        opened = self._follow(ask, deadline, self._open)
        with _plainly(opened.ask.target, self._settings):
            try:
                pieces = _unpacked(opened.response.iter_stream(), opened.headers)
                yield StreamedResponse(opened.status, opened.headers, str(opened.ask.target.url), pieces)
            finally:
                opened.response.close()

    def close(self) -> None:
        """Close all connections."""
        self._pool.close()

    def _follow(self, ask: _Ask, deadline: float, send: Callable[[_Ask, float], "_A"]) -> "_A":
        first = ask.target.host
        answer = send(ask, deadline)
        for _ in range(MAX_REDIRECTS):
            location = _location(answer)
            if location is None:
                return answer
            try:
                ask = ask.redirected(answer.status, location)
                answer = send(ask, deadline)
            except CallRefused as error:
                raise CallRefused(f"redirected by {first}: {error}") from None
        if _location(answer) is None:
            return answer
        raise CallRefused(f"{first} redirects more than {MAX_REDIRECTS} times")

    def _open(self, ask: _Ask, deadline: float) -> "_Opened":
        """Send a request and read the response head, and the body of a redirect, which is discarded."""
        self._guard.check(ask.target)
        with _plainly(ask.target, self._settings):
            response = self._pool.handle_request(ask.core(deadline))
            opened = _Opened(response.status, httpx.Headers(response.headers), ask, response)
            if _location(opened) is not None:
                response.close()
            return opened

    def _send(self, ask: _Ask, deadline: float) -> Response:
        opened = self._open(ask, deadline)
        answer = Response(opened.status, opened.headers, b"")
        if _location(answer) is not None:
            return answer
        with _plainly(ask.target, self._settings):
            try:
                return replace(answer, body=self._body(opened.response.iter_stream(), answer.headers))
            finally:
                opened.response.close()

    def _body(self, pieces: Iterable[bytes], headers: httpx.Headers) -> bytes:
        """Read a body; the limit applies to the compressed and the decompressed size."""
        limit = self._settings.max_response_bytes
        body = bytearray()
        for piece in _limited(_unpacked(_limited(pieces, limit), headers), limit):
            body += piece
        return bytes(body)


@dataclass(frozen=True)
class _Opened:
    """A response whose head was read."""

    status: int
    headers: httpx.Headers
    ask: _Ask
    response: httpcore2.Response


_A = TypeVar("_A", Response, _Opened)


class _Garbled(Exception):
    """The response has an unexpected encoding or is corrupt."""


class _Overflow(Exception):
    """The response exceeds the size limit."""


def check_url(
    url: str, settings: OutgoingSettings, *, resolve: bool = False, resolver: Resolver = system_resolver
) -> None:
    """Validate a URL when it is saved: its form and literal address, and with `resolve` also the addresses of its host
    name.
    """
    guard, target = Guard(Allowed.of(settings.allow), resolver), read_url(url)
    guard.check(target)
    if resolve:
        with _plainly(target, settings):
            guard.addresses(target.host, time.monotonic() + settings.timeout_seconds)


def _headers(given: Mapping[str, str], idempotency_key: str | None) -> dict[str, str]:
    headers = {"user-agent": f"Headgate/{__version__}", "accept": "*/*"}
    for name, value in given.items():
        if not _HEADER_NAME.fullmatch(name):
            raise CallRefused("a header's name has characters that it cannot have")
        if _OURS.fullmatch(name.lower()):
            raise CallRefused(f"the header {name} is not for members to set")
        headers[name.lower()] = value
    if idempotency_key is not None:
        headers["idempotency-key"] = idempotency_key
    for name, value in headers.items():
        if not _HEADER_VALUE.fullmatch(value):
            raise CallRefused(f"the header {name} has a value with characters other than printable ASCII")
    return {name: value.strip() for name, value in headers.items()} | {"accept-encoding": "gzip"}


def _location(answer: "Response | _Opened") -> str | None:
    return answer.headers.get("location") if answer.status in _BECOME_GET | _KEEP_METHOD else None


def _limited(pieces: Iterable[bytes], limit: int) -> Iterator[bytes]:
    total = 0
    for piece in pieces:
        total += len(piece)
        if total > limit:
            raise _Overflow
        yield piece


def _unpacked(pieces: Iterable[bytes], headers: httpx.Headers) -> Iterator[bytes]:
    encoding = headers.get("content-encoding", "").strip().lower()
    if encoding in ("gzip", "x-gzip"):
        return _inflated(pieces)
    if encoding not in ("", "identity"):
        raise _Garbled
    return iter(pieces)


def _inflated(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Decompress gzip in small steps; data after its end is ignored."""
    inflater = zlib.decompressobj(zlib.MAX_WBITS | 16)
    started = False
    for piece in pieces:
        started, rest = True, piece
        while not inflater.eof and (result := inflater.decompress(rest, _INFLATED)):
            yield result
            rest = inflater.unconsumed_tail
    if started and not inflater.eof:
        raise _Garbled


@contextmanager
def _plainly(target: RequestTarget, settings: OutgoingSettings) -> Iterator[None]:
    """Translate low-level errors into messages without resolved addresses."""
    host, port = target.origin[1:]
    try:
        yield
    except _Overflow:
        limit = f"{settings.max_response_bytes} bytes; outgoing.max_response_bytes sets this"
        raise TooLarge(f"the answer of {host} has more than {limit}") from None
    except (_Garbled, zlib.error):
        raise Unreachable(f"the answer of {host} is packed in a way that was not asked for, or damaged") from None
    except httpcore2.TimeoutException:
        limit = f"{settings.timeout_seconds:g} seconds; outgoing.timeout_seconds sets this"
        raise Unreachable(f"{host} did not answer within {limit}") from None
    except httpcore2.ConnectError:
        raise Unreachable(f"{host} accepts no connections on port {port}") from None
    except (httpcore2.NetworkError, httpcore2.ProtocolError):
        raise Unreachable(f"{host} closed the connection, or did not answer with HTTP") from None
