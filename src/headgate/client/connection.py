"""The HTTP connection of the client: authentication, requests, errors and paging."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self

import httpx2 as httpx

from headgate.client.errors import Unreachable, error_of
from headgate.kit import errors
from headgate.kit.ids import kind_of

PAGE_SIZE = 200
_UNKNOWN_TOKEN = "The server does not accept this token: it is unknown, expired or revoked"  # noqa: S105 - a message


class Connection:
    """A connection to a server, as the member whose token it has; without a token only to sign in.

    `http` replaces the HTTP client, for a server in the same process.
    """

    def __init__(
        self, server: str, token: str | None = None, *, timeout: float = 60, http: httpx.Client | None = None
    ) -> None:
        self.server = server.rstrip("/")
        headers = {"Authorization": f"Bearer {token}"} if token else {"Origin": self.server}
        try:
            self._http = http or httpx.Client(base_url=self.server, headers=headers, timeout=timeout)
        except httpx.InvalidURL:
            raise errors.Invalid(f"{server!r} is not a valid server address") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._http.close()

    def get(self, path: str, **query: Any) -> Any:
        """GET; the response body."""
        return self.request("GET", path, **query)

    def post(self, path: str, body: Any = None) -> Any:
        """POST; the response body."""
        return self.request("POST", path, body)

    def request(self, method: str, path: str, body: Any = None, **query: Any) -> Any:
        """A request of the API; the decoded response body, or HeadgateError. None in the query is omitted."""
        content = {} if body is None else {"json": body}
        return answer(self.send(method, path, params=_present(query), **content))

    def send(self, method: str, path: str, **options: Any) -> httpx.Response:
        """A request with options of httpx; its response, whatever its status. Unreachable if the connection fails."""
        with self._failures():
            return self._http.request(method, path, **options)

    @contextmanager
    def stream(self, path: str, headers: Mapping[str, str] | None = None, **query: Any) -> Iterator[httpx.Response]:
        """GET; the response, whose body has not been read yet."""
        with self._failures(), self._http.stream("GET", path, params=_present(query), headers=headers) as response:
            if not response.is_success:
                response.read()
                answer(response)
            yield response

    def read(self, path: str, accept: str = "*/*", **query: Any) -> Iterator[bytes]:
        """GET; the response body in chunks."""
        with self.stream(path, {"Accept": accept}, **query) as response:
            yield from response.iter_bytes()

    def pages(self, method: str, path: str, **question: Any) -> Iterator[Any]:
        """Every page of a list. The question is the query of a GET and the body of a POST."""
        cursor: str | None = None
        while True:
            asked = {**question, "limit": PAGE_SIZE, "cursor": cursor}
            page = self.post(path, asked) if method == "POST" else self.request(method, path, **asked)
            yield page
            cursor = page["next_cursor"]
            if cursor is None:
                return

    def items(self, path: str, **query: Any) -> Iterator[Any]:
        """Every item of a list, page by page."""
        for page in self.pages("GET", path, **query):
            yield from page["items"]

    @contextmanager
    def _failures(self) -> Iterator[None]:
        try:
            yield
        except httpx.TransportError as error:
            raise Unreachable(self.server, str(error)) from None


def answer(response: httpx.Response) -> Any:
    """The decoded body of a response, or the error that it is."""
    is_json = "json" in response.headers.get("content-type", "")
    if response.is_success:
        return response.json() if is_json else response.text
    body = response.json() if is_json else {}
    if response.status_code == 401 and "Authorization" in response.request.headers:
        body["detail"] = _UNKNOWN_TOKEN
    if body.get("detail") == errors.NotFound.title:
        body["detail"] = _missing(response.url.path)
    raise error_of(response.status_code, body)


def _present(query: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in query.items() if value is not None}


def _missing(path: str) -> str:
    """The message of a 404 that names the id in the path."""
    ids = [part for part in path.split("/") if kind_of(part)]
    if not ids:
        return errors.NotFound.title
    return f"There is no {str(kind_of(ids[-1])).replace('_', ' ')} {ids[-1]} that you may see"
