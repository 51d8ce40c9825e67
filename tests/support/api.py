"""A REST API on loopback, with every way of paging and authorizing, and every kind of trouble."""

import base64
import gzip
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

SECRET = "s3cret/of+the api"
USER = "pump"


@dataclass(frozen=True)
class Seen:
    """A request that arrived."""

    method: str
    path: str
    parameters: dict[str, str]
    headers: dict[str, str]
    body: bytes
    at: float


@dataclass
class Reply:
    """An answer to give."""

    body: Any = None
    """JSON, or bytes as they are."""

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)


Handler = Callable[[Seen], Reply]


def rows(count: int) -> list[dict[str, Any]]:
    """Rows with an id each."""
    return [{"id": n, "name": f"row {n}", "amount": n / 4, "tags": ["a", "b"][: n % 3]} for n in range(1, count + 1)]


class Api:
    """The running API. What is asked for is kept in `seen`; `on` adds an address."""

    def __init__(self, data: list[dict[str, Any]]) -> None:
        self.data, self.seen = data, list[Seen]()
        self.port = 0
        self.tokens: list[str] = []
        self.state: Any = None
        """What handlers of a test share."""

        self.closes = False
        """Whether it ends each connection after an answer, without having said so."""

        self._lock = threading.Lock()
        self._handlers: dict[str, Handler] = {
            "/rows": lambda seen: Reply(self.data),
            "/page": self._page,
            "/offset": self._offset,
            "/cursor": self._cursor,
            "/last": self._last,
            "/link": self._link,
            "/next": self._next,
            "/token": self._token,
            "/oauth": self._oauth,
            "/bearer": self._authorized(lambda seen: seen.headers.get("authorization") == f"Bearer {SECRET}"),
            "/basic": self._authorized(lambda seen: seen.headers.get("authorization") == basic(USER, SECRET)),
            "/header": self._authorized(lambda seen: seen.headers.get("x-key") == SECRET),
            "/query": self._authorized(lambda seen: seen.parameters.get("key") == SECRET),
            "/since": self._since,
            "/region": self._region,
            "/packed": lambda seen: Reply(
                gzip.compress(json.dumps(self.data).encode()), headers={"Content-Encoding": "gzip"}
            ),
        }

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    def on(self, path: str, handler: Handler) -> None:
        """Answer at an address."""
        self._handlers[path] = handler

    def fails(self, path: str, *replies: Reply) -> None:
        """Give these answers first, and then what was given before."""
        waiting, after = list(replies), self._handlers[path]

        def handler(seen: Seen) -> Reply:
            with self._lock:
                found = waiting.pop(0) if waiting else None
            return found or after(seen)

        self._handlers[path] = handler

    def answer(self, seen: Seen) -> Reply:
        with self._lock:
            self.seen.append(seen)
        handler = self._handlers.get(seen.path)
        return handler(seen) if handler else Reply({"message": "there is no such thing"}, 404)

    def _page(self, seen: Seen) -> Reply:
        number, size = int(seen.parameters["page"]), int(seen.parameters.get("size", "10"))
        return Reply({"data": {"items": self.data[(number - 1) * size : number * size]}})

    def _offset(self, seen: Seen) -> Reply:
        start, size = int(seen.parameters["offset"]), min(int(seen.parameters.get("limit", "10")), 10)
        return Reply(self.data[start : start + size])

    def _cursor(self, seen: Seen) -> Reply:
        start = int(base64.b64decode(seen.parameters.get("after", "MA==")))
        following = base64.b64encode(str(start + 10).encode()).decode() if start + 10 < len(self.data) else None
        return Reply({"rows": self.data[start : start + 10], "meta": {"next": following}})

    def _last(self, seen: Seen) -> Reply:
        """By the id of the last row, as some do it."""
        after = int(seen.parameters.get("starting_after", "0"))
        return Reply({"data": [row for row in self.data if row["id"] > after][:10]})

    def _link(self, seen: Seen) -> Reply:
        number = int(seen.parameters.get("p", "1"))
        more = number * 10 < len(self.data)
        link = (
            f'<{self.url}/rows>; rel="first", </link?p={number + 1}&keep=1>; title="a, b"; rel="next"' if more else ""
        )
        return Reply(self.data[(number - 1) * 10 : number * 10], headers={"Link": link})

    def _next(self, seen: Seen) -> Reply:
        number = int(seen.parameters.get("p", "1"))
        more = number * 10 < len(self.data)
        url = f"{self.url}/next?p={number + 1}" if more else None
        return Reply({"results": self.data[(number - 1) * 10 : number * 10], "next": url})

    def _token(self, seen: Seen) -> Reply:
        form = {name: values[0] for name, values in parse_qs(seen.body.decode()).items()}
        by_header = seen.headers.get("authorization") == basic(USER, "s3cret%2Fof%2Bthe+api")
        by_body = (form.get("client_id"), form.get("client_secret")) == (USER, SECRET)
        if not (by_header or by_body) or form.get("grant_type") != "client_credentials":
            return Reply({"error": "invalid_client"}, 401)
        with self._lock:
            self.tokens.append(f"token-{len(self.tokens) + 1}-{form.get('scope', '')}")
            return Reply({"access_token": self.tokens[-1], "token_type": "Bearer", "expires_in": 3600})

    def _oauth(self, seen: Seen) -> Reply:
        """Rows for the newest token alone."""
        newest = self.tokens[-1] if self.tokens else ""
        if seen.headers.get("authorization") != f"Bearer {newest}":
            return Reply({"message": "who are you?"}, 401)
        return Reply(self.data)

    def _authorized(self, knows: Callable[[Seen], bool]) -> Handler:
        return lambda seen: Reply(self.data) if knows(seen) else Reply({"message": f"not you: {seen.headers}"}, 401)

    def _since(self, seen: Seen) -> Reply:
        since = seen.parameters.get("since", "")
        return Reply([row for row in self.data if str(row.get("at", "")) >= since])

    def _region(self, seen: Seen) -> Reply:
        region = seen.parameters.get("region", "")
        return Reply([{"region": region, **row} for row in self.data])


def basic(user: str, password: str) -> str:
    """A header of basic authorization."""
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def slow(seconds: float) -> Handler:
    """Answers one letter after the other."""

    def handler(_: Seen) -> Reply:
        return Reply(b" " * 1000, headers={"X-Slow": str(seconds / 1000)})

    return handler


@contextmanager
def serving(data: list[dict[str, Any]] | None = None) -> Iterator[Api]:
    """The API, for a while."""
    api = Api(rows(25) if data is None else data)

    class Answers(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None:
            pass

        def _serve(self) -> None:
            parts = urlsplit(self.path)
            parameters = {name: values[-1] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
            headers = {name.lower(): value for name, value in self.headers.items()}
            body = self.rfile.read(int(headers.get("content-length", "0")))
            reply = api.answer(Seen(self.command, parts.path, parameters, headers, body, time.monotonic()))
            self._send(reply)
            self.close_connection = self.close_connection or api.closes

        def _send(self, reply: Reply) -> None:
            content = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
            self.send_response(reply.status)
            given = {"Content-Type": "application/json", "Content-Length": str(len(content)), **reply.headers}
            pause = float(given.pop("X-Slow", "0"))
            for name, value in given.items():
                if value:
                    self.send_header(name, value)
            self.end_headers()
            try:
                if not pause:
                    self.wfile.write(content)
                for letter in content if pause else b"":
                    self.wfile.write(bytes([letter]))
                    self.wfile.flush()
                    time.sleep(pause)
            except OSError:
                self.close_connection = True

        do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = _serve  # noqa: N815 - the library's names

    class Quiet(ThreadingHTTPServer):
        def handle_error(self, *_: Any) -> None:
            """Callers that hang up are what some tests are about."""

    with Quiet(("127.0.0.1", 0), Answers) as server:
        server.daemon_threads = True
        api.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield api
        finally:
            server.shutdown()
            thread.join()
