"""The outermost middleware: request ids, limits, security headers, access logs and metrics."""

import re
import secrets
import time
from dataclasses import dataclass

from prometheus_client import Counter, Histogram
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headgate.kit.errors import NotFound, TooLarge
from headgate.kit.log import get_logger
from headgate.platform.http.problems import handle, respond
from headgate.settings.settings import Settings

REQUESTS = Counter("headgate_http_requests", "Requests by route and status.", ("method", "route", "status"))
SECONDS = Histogram(
    "headgate_http_request_seconds",
    "Seconds to answer, by route.",
    ("method", "route"),
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)

SECURITY_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
)
_NO_STORE = (b"cache-control", b"no-store")
_HSTS = (b"strict-transport-security", b"max-age=31536000; includeSubDomains")
_CONTROLS = re.compile(r"(?!/iceberg/).*[\x00-\x1f\x7f]|.*[\x00-\x1e\x7f]", re.DOTALL)
"""In the catalog, the last of these separates the levels of a namespace."""
_REQUEST_ID = re.compile(rb"[A-Za-z0-9._:-]{1,64}")
_log = get_logger("headgate.http")


_COMMITS = "warehouse.max_commit_bytes"
IS_HEAD = "headgate.is_head"
"""Set in the ASGI scope of a HEAD request, which routes see as a GET."""


@dataclass(frozen=True, slots=True)
class BodyLimit:
    """The maximum body size of matching paths, and the setting that defines it."""

    paths: re.Pattern[str]
    most: int
    setting: str

    def __str__(self) -> str:
        return f"The request is larger than {self.most} bytes, the limit of `{self.setting}`"


def body_limits(settings: Settings) -> tuple[BodyLimit, ...]:
    """The limits of this installation; the first match applies. Only streams may be large."""
    files = settings.warehouse.max_file_bytes
    return (
        BodyLimit(re.compile(r"/api/volumes/[^/]+/files/.+", re.DOTALL), files, "warehouse.max_file_bytes"),
        BodyLimit(re.compile(r"/api/uploads/[^/]+"), files, "warehouse.max_file_bytes"),
        BodyLimit(re.compile(r"/iceberg/.+", re.DOTALL), settings.warehouse.max_commit_bytes, _COMMITS),
        BodyLimit(re.compile(r".*", re.DOTALL), settings.server.max_body_bytes, "server.max_body_bytes"),
    )


class Edge:
    """Wraps the application; plain ASGI, for minimal overhead."""

    def __init__(self, app: ASGIApp, *, limits: tuple[BodyLimit, ...]) -> None:
        self.app, self.limits = app, limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        is_head = scope["method"] == "HEAD"
        if is_head:
            scope = {**scope, "method": "GET", IS_HEAD: True}
        request_id = _request_id(scope)
        scope["headgate.request_id"] = request_id
        started, status, answered = time.perf_counter(), 500, False

        async def send_with_headers(message: Message) -> None:
            nonlocal status, answered
            if message["type"] == "http.response.start":
                status, answered = message["status"], True
                message["headers"] = _headers(message["headers"], request_id, scope)
            await send({**message, "body": b""} if is_head and message["type"] == "http.response.body" else message)

        limit = next(limit for limit in self.limits if limit.paths.fullmatch(scope["path"]))
        try:
            if _CONTROLS.match(scope["path"]):
                # Route patterns would accept a trailing line break as the end of the path.
                await respond(NotFound(), Request(scope))(scope, receive, send_with_headers)
            elif _declared_length(scope) > limit.most:
                await respond(TooLarge(str(limit)), Request(scope))(scope, receive, send_with_headers)
            else:
                await self.app(scope, _Limited(receive, limit), send_with_headers)
        except Exception as error:
            if answered:
                raise
            await handle(Request(scope), error)(scope, receive, send_with_headers)
        finally:
            _observe(scope, status, time.perf_counter() - started, request_id)


class _Limited:
    """Receives a body up to a limit, regardless of its Content-Length."""

    def __init__(self, receive: Receive, limit: BodyLimit) -> None:
        self.receive, self.limit, self.left = receive, limit, limit.most

    async def __call__(self) -> Message:
        message = await self.receive()
        if message["type"] == "http.request":
            self.left -= len(message.get("body", b""))
            if self.left < 0:
                # The end of such a body is unknown, so the connection is closed.
                raise HTTPException(TooLarge.status, str(self.limit), {"Connection": "close"})
        return message


def _request_id(scope: Scope) -> str:
    for name, value in scope["headers"]:
        if name == b"x-request-id" and _REQUEST_ID.fullmatch(value):
            return str(value.decode())
    return secrets.token_hex(8)


def _declared_length(scope: Scope) -> int:
    for name, value in scope["headers"]:
        if name == b"content-length":
            return int(value) if value.isdigit() else 0
    return 0


def _headers(sent: list[tuple[bytes, bytes]], request_id: str, scope: Scope) -> list[tuple[bytes, bytes]]:
    own = [name for name, _ in sent]
    common = SECURITY_HEADERS if b"content-security-policy" not in own else SECURITY_HEADERS[:-1]
    headers = [*sent, *common, (b"x-request-id", request_id.encode())]
    if b"cache-control" not in own:
        headers.append(_NO_STORE)
    if scope.get("scheme") == "https":
        headers.append(_HSTS)
    return headers


def _observe(scope: Scope, status: int, seconds: float, request_id: str) -> None:
    route = getattr(scope.get("route"), "path", "none")
    method = scope["method"] if scope["method"] in _METHODS else "OTHER"
    REQUESTS.labels(method, route, status).inc()
    SECONDS.labels(method, route).observe(seconds)
    _log.info(
        "request",
        method=method,
        route=route,
        status=status,
        ms=round(seconds * 1000, 2),
        request_id=request_id,
        member=scope.get("headgate.member"),
    )


_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
