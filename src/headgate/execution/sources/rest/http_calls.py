"""Requests with authentication, rate limit, same-origin redirects and retries."""

import contextlib
import fcntl
import random
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from urllib.parse import SplitResult, parse_qsl, quote, urlencode, urljoin, urlsplit

from headgate.contracts.api_paths import check_api_path
from headgate.execution.sources.rest.auth import AGAIN, Credentials
from headgate.execution.sources.rest.failures import ApiFailed, redact
from headgate.execution.sources.rest.requests import Limits, RequestOptions
from headgate.execution.sources.rest.responses import parsed
from headgate.execution.sources.rest.wire import HttpResponse, NoResponse, Origin, OriginConnections, origin

MAX_REDIRECTS = 5
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_AGAIN = frozenset({408, 425, 429})
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 30.0
_SAFE = "%/:=&?~#+!$,;'@()*[]-._"
_EXCERPT = 200


class RateLimiter:
    """Limits calls per second: over all tasks on a machine that share a file, otherwise per task with a share of the
    limit.
    """

    def __init__(self, calls_per_second: float, tasks: int = 1, file: str = "") -> None:
        self._gap = 1 / calls_per_second if calls_per_second > 0 else 0.0
        self._tasks, self._file = tasks, file
        self._next = 0.0

    def wait(self) -> None:
        """Wait until the next call may start."""
        if self._gap:
            time.sleep(max(self._turn() - time.monotonic(), 0.0))

    def _turn(self) -> float:
        """Reserve the start time of the next call. The clock is the same for all processes of a machine."""
        if self._file:
            with contextlib.suppress(OSError), open(self._file, "a+", encoding="ascii") as shared:  # noqa: PTH123
                fcntl.flock(shared, fcntl.LOCK_EX)
                shared.seek(0)
                turn = max(_seconds(shared.read()), time.monotonic())
                shared.truncate(0)
                shared.write(repr(turn + self._gap))
                return turn
        turn = max(self._next, time.monotonic())
        self._next = turn + self._gap * self._tasks
        return turn


def _seconds(text: str) -> float:
    try:
        return float(text or 0)
    except ValueError:
        return 0.0


class Caller:
    """Calls one API. Not thread-safe."""

    def __init__(self, asked: RequestOptions, tasks: int = 1) -> None:
        self._asked, self._limits = asked, asked.limits
        self._wire = OriginConnections(asked.proxy, asked.certificates, asked.limits.answer_bytes)
        self._pace = RateLimiter(asked.limits.calls_per_second, tasks, asked.pace_file)
        self._credentials = Credentials(asked.auth, self._post)
        self._base = urlsplit(asked.base)
        self.home: Origin = origin(self._base)

    def close(self) -> None:
        """Close all connections."""
        self._wire.close()

    def start(self) -> str:
        """The URL of the first page."""
        return below(self._asked.base, self._asked.path)

    def joined(self, url: str, target: str) -> str:
        """The target of a link in a response; ApiFailed if its origin differs."""
        results, place = _led(url, target)
        if results is None or place != self.home:
            where = f"{place[0]}://{place[1]}" if place else "an invalid URL"
            told = (
                f"The next page is at {where}, not at {self.home[0]}://{self.home[1]}, to which the secret "
                "belongs, so it "
            )
            told += "was not requested. If this is the API's own address, set it as the connection's address"
            raise ApiFailed("API_ELSEWHERE", told)
        return self._here(results)

    def get(self, url: str, parameters: Mapping[str, str]) -> HttpResponse:
        """GET a URL of this API; returns a response with a status below 300, or 404. Otherwise raises ApiFailed."""
        try:
            return self._judged(self._authorized(_with(url, parameters)))
        except ApiFailed as error:
            message = redact(error.message, self._credentials.secrets())
            raise ApiFailed(error.code, message, passing=error.passing) from None

    def _authorized(self, url: str) -> HttpResponse:
        renewed = False
        while True:
            answer = self._followed(url)
            if answer.status != 401 or renewed or not self._credentials.refused():
                return answer
            renewed = True

    def _followed(self, url: str) -> HttpResponse:
        for _ in range(MAX_REDIRECTS + 1):
            headers = {"Accept": "application/json", "User-Agent": "Headgate", **dict(self._asked.headers)}
            shown = _with(url, self._credentials.parameters())
            answer = self._patiently("GET", shown, {**headers, **self._credentials.headers()}, None)
            if answer.status not in _REDIRECTS or "location" not in answer.headers:
                return answer
            results, place = _led(url, answer.headers["location"])
            if results is None or place != self.home:
                where = f"to {place[0]}://{place[1]}" if place else "to an invalid URL"
                told = f"{self.home[1]} redirects {where}, to which this connection's secret is not sent; "
                raise ApiFailed("API_ELSEWHERE", told + "if it is right, set it as the connection's address")
            url = self._here(results)
        raise ApiFailed("API_ELSEWHERE", f"{self.home[1]} redirects more than {MAX_REDIRECTS} times; check the path")

    def _here(self, split_result: SplitResult) -> str:
        """The path and query of a URL, at the connection's own origin in any spelling."""
        query = f"?{quote(split_result.query, safe=_SAFE)}" if split_result.query else ""
        return f"{self._base.scheme}://{self._base.netloc}{quote(split_result.path, safe=_SAFE)}{query}"

    def _post(self, url: str, headers: dict[str, str], body: bytes) -> HttpResponse:
        return self._patiently("POST", url, headers, body)

    def _patiently(self, method: str, url: str, headers: Mapping[str, str], body: bytes | None) -> HttpResponse:
        """Send a request, with retries and backoff after transient errors."""
        host, tried = origin(urlsplit(url))[1], 0
        stale = False
        while True:
            self._pace.wait()
            try:
                answer = self._wire.send(method, url, headers, body, self._seconds(host))
                if answer.status not in _AGAIN and (answer.status < 500 or answer.status == 501):
                    return answer
                error = _busy(host, answer.status)
                asked_for = retry_after(answer.headers)
            except NoResponse as reason:
                if reason.stale and not stale:
                    stale = True
                    continue
                error, asked_for = ApiFailed("API_UNREACHABLE", str(reason), passing=True), None
            tried += 1
            if tried >= self._limits.attempts:
                raise ApiFailed(error.code, f"{error.message} ({tried} attempts)", passing=True)
            self._rest(pause(tried, self._limits) if asked_for is None else asked_for, error)

    def _seconds(self, host: str) -> float:
        """The timeout of a call."""
        left = self._asked.until - time.time() if self._asked.until else self._limits.call_seconds
        if left <= 0:
            raise ApiFailed("API_TOO_LONG", f"Reading {host} exceeded the run's timeout; raise the timeout")
        return min(left, self._limits.call_seconds)

    def _rest(self, seconds: float, error: ApiFailed) -> None:
        if seconds > self._limits.longest_wait:
            told = f"{error.message}, and it asks to wait {seconds:,.0f} seconds; configure retries for the pipeline"
            raise ApiFailed(error.code, told, passing=True)
        if self._asked.until and time.time() + seconds > self._asked.until:
            raise ApiFailed(error.code, f"{error.message}, and the timeout leaves no time for a retry", passing=True)
        time.sleep(seconds)

    def _judged(self, answer: HttpResponse) -> HttpResponse:
        if answer.status < 300 or answer.status == 404:
            return answer
        if answer.status == 401:
            raise ApiFailed("API_UNAUTHORIZED", f"{self.home[1]} rejects the credentials (401){_said(answer)}; {AGAIN}")
        if answer.status == 403:
            told = f"The connection has no permission to read {self.shown()} from {self.home[1]} (403){_said(answer)}"
            raise ApiFailed("API_FORBIDDEN", f"{told}; grant it in the API")
        told = f"{self.home[1]} refused the request for {self.shown()} ({answer.status}){_said(answer)}"
        raise ApiFailed("API_REFUSED", f"{told}; check the path and its parameters")

    def missing(self, answer: HttpResponse) -> ApiFailed:
        """The failure for a missing URL."""
        told = (
            f"{self.home[1]} has no resource {self.shown()} (404){_said(answer)}; check the connection's address and "
        )
        return ApiFailed("API_NOT_FOUND", redact(told + "the stream's name", self._credentials.secrets()))

    def shown(self) -> str:
        """The requested path without parameters."""
        return urlsplit(self.start()).path or "/"


def below(base: str, path: str) -> str:
    """The URL of a path below another; ApiFailed if it leads elsewhere."""
    try:
        check_api_path(path)
    except ValueError as error:
        raise ApiFailed("API_PATH", str(error)) from None
    parts, inner = urlsplit(base), quote(path.lstrip("/"), safe=_SAFE)
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}/{inner}".rstrip("/")


def _led(url: str, target: str) -> tuple[SplitResult | None, Origin | None]:
    """The parsed target of a link on a page; nothing if it is not a URL."""
    try:
        results = urlsplit(urljoin(url, target.strip()))
        return results, origin(results)
    except ValueError:
        return None, None


def pause(tried: int, limits: Limits) -> float:
    """The backoff after this many attempts: exponential, with jitter."""
    longest = min(_LONGEST_PAUSE, limits.longest_wait)
    return min(_FIRST_PAUSE * 2.0 ** (tried - 1), longest) * random.uniform(0.5, 1.0)  # noqa: S311 - spreads load


def _busy(host: str, status: int) -> ApiFailed:
    if status == 429:
        told = f"{host} rate-limits its requests (429); lower the connection's calls per second"
        return ApiFailed("API_BUSY", told, passing=True)
    told = f"{host} has an internal error; run the pipeline again later, or configure retries ({status})"
    return ApiFailed("API_DOWN", told, passing=True)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """The seconds in a Retry-After header, given as a number or a date; None if there is none."""
    text = headers.get("retry-after", "").strip()
    if text.isascii() and text.isdigit() and len(text) < 10:
        return float(text)
    try:
        return max(parsedate_to_datetime(text).timestamp() - time.time(), 0.0)
    except (ValueError, TypeError, OverflowError):
        return None


def _with(url: str, parameters: Mapping[str, str]) -> str:
    """A URL with parameters; existing ones of the same name are replaced."""
    if not parameters:
        return url
    before, _, query = url.partition("?")
    kept = [(name, value) for name, value in parse_qsl(query, keep_blank_values=True) if name not in parameters]
    return f"{before}?{urlencode([*kept, *parameters.items()])}"


def _said(answer: HttpResponse) -> str:
    """The error message in one of the usual response fields."""
    try:
        result = parsed(answer.body, "")
    except ApiFailed:
        return ""
    for name in ("message", "error_description", "detail", "title", "error"):
        text = result.get(name) if isinstance(result, dict) else None
        if isinstance(text, dict):
            text = text.get("message")
        if isinstance(text, str) and text.strip():
            plain = "".join(c if c.isprintable() else " " for c in text.strip())
            return f': "{plain[:_EXCERPT]}"'
    return ""
