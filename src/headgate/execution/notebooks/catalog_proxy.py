"""A proxy through which a notebook's sandbox reads the catalog; it forwards read requests only. It runs outside the
sandbox and adds the run's token to each request. So the sandbox never has the token, and cannot reach other routes of
the server.
"""

import http.client
import json
import re
import socket
import threading
from http.server import BaseHTTPRequestHandler
from urllib.parse import urlsplit

SECONDS = 120
MOST_CONNECTIONS = 64
REFUSAL = "Notebooks can only read declared tables from the catalog; write with save(df, table)"
_PATH = re.compile(r"/v1/[A-Za-z0-9_.~%/-]{1,2000}(?:\?[A-Za-z0-9_.~%=&+:,-]{0,2000})?")
_UP = re.compile(r"\.\.|%2e|%2f|%5c|//", re.IGNORECASE)
_PASSED_ON = ("Accept", "Accept-Encoding", "If-None-Match", "X-Client-Version", "X-Iceberg-Access-Delegation")
_PASSED_BACK = ("Content-Type", "Content-Encoding", "ETag", "Retry-After", "Cache-Control")


class CatalogProxy:
    """Forwards requests on a listening socket to the catalog, with the run's token."""

    def __init__(self, catalog_url: str, token: str) -> None:
        self._parts, self._token = urlsplit(catalog_url), token
        self._room = threading.BoundedSemaphore(MOST_CONNECTIONS)

    def serve(self, listener: socket.socket) -> None:
        """Serve from now on, each connection in its own thread."""
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()

    def ask(self, method: str, path: str, headers: dict[str, str]) -> tuple[int, dict[str, str], bytes]:
        """Forward an allowed request; return status, headers and body."""
        host, port = self._parts.hostname or "localhost", self._parts.port
        kind = http.client.HTTPSConnection if self._parts.scheme == "https" else http.client.HTTPConnection
        upstream = kind(host, port, timeout=SECONDS)
        try:
            own = {**headers, "Authorization": f"Bearer {self._token}"}
            upstream.request(method, f"{self._parts.path.rstrip('/')}{path}", headers=own)
            answer = upstream.getresponse()
            back = {name: value for name in _PASSED_BACK if (value := answer.getheader(name)) is not None}
            return answer.status, back, answer.read()
        finally:
            upstream.close()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            self._room.acquire()
            try:
                near, _ = listener.accept()
            except OSError:
                self._room.release()
                return
            threading.Thread(target=self._answer, args=(near,), daemon=True).start()

    def _answer(self, near: socket.socket) -> None:
        try:
            near.settimeout(SECONDS)
            with near:
                _Handler(near, self)
        except (OSError, ValueError, http.client.HTTPException):
            return
        finally:
            self._room.release()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __init__(self, near: socket.socket, door: CatalogProxy) -> None:
        self._door = door
        super().__init__(near, ("", 0), door)  # type: ignore[arg-type]

    def do_GET(self) -> None:
        """Forward a read."""
        has_body = self.headers.get("Content-Length", "0").strip() != "0" or "Transfer-Encoding" in self.headers
        if has_body or not _PATH.fullmatch(self.path) or _UP.search(self.path):
            self._refuse()
            return
        headers = {name: value for name in _PASSED_ON if (value := self.headers.get(name)) is not None}
        try:
            self._send(*self._door.ask(self.command, self.path, headers))
        except (OSError, http.client.HTTPException):
            self._fail(503, "ServiceUnavailableException", "The catalog does not respond")

    do_HEAD = do_GET  # noqa: N815 - the names that are called

    def _refuse(self) -> None:
        self.close_connection = True
        self._fail(403, "ForbiddenException", REFUSAL)

    do_POST = do_PUT = do_DELETE = do_PATCH = do_OPTIONS = _refuse  # noqa: N815

    def _fail(self, status: int, kind: str, message: str) -> None:
        body = json.dumps({"error": {"message": message, "type": kind, "code": status}}).encode()
        self._send(status, {"Content-Type": "application/json"}, body)

    def _send(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.send_response_only(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Log nothing: the catalog has its own log."""
