"""Calls: who asks, how patiently, how much is taken, and what is said when it goes wrong."""

import gzip
import socket
import socketserver
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any, ClassVar

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from headgate.execution.sources.rest import http_calls as calls
from headgate.execution.sources.rest.http_calls import RateLimiter, pause
from headgate.execution.sources.rest.requests import Auth, Limits, Proxy
from headgate.execution.sources.rest.source import shares, texts
from tests.execution.sources.rest import asked, auth, failure, read
from tests.outgoing import Authority, serve
from tests.support.api import SECRET, USER, Api, Reply, Seen, rows, serving, slow

ALL = rows(25)


@pytest.fixture
def api() -> Iterator[Api]:
    with serving(ALL) as found:
        yield found


@pytest.mark.parametrize(
    ("path", "who"),
    [
        ("/bearer", auth("bearer", secret=SECRET)),
        ("/basic", auth("basic", USER, SECRET)),
        ("/header", auth("header", "X-Key", SECRET)),
        ("/query", auth("query", "key", SECRET)),
        ("/oauth", auth("oauth2", USER, SECRET, scope="read")),
        ("/oauth", auth("oauth2", USER, SECRET, in_body=True)),
    ],
)
def test_every_style_of_authorization(api: Api, path: str, who: Auth) -> None:
    if who.style == "oauth2":
        who = auth("oauth2", USER, SECRET, scope=who.scope, in_body=who.in_body, token_url=f"{api.url}/token")
    assert read(asked(api, path, auth=who)) == ALL


@pytest.mark.parametrize("path", ["/bearer", "/basic", "/header", "/query", "/oauth"])
def test_a_wrong_secret_is_told_without_it(api: Api, path: str) -> None:
    wrong = "wrong+but/secret"
    who = auth(path[1:], "X-Key" if path == "/header" else "key", wrong)
    if path == "/oauth":
        who = auth("oauth2", USER, wrong, token_url=f"{api.url}/token")
    found = failure(asked(api, path, auth=who))
    assert found.code == "API_UNAUTHORIZED"
    assert "set the connection's secret again" in found.message
    assert wrong not in found.message
    assert not found.passing
    # The API repeats the headers that it got: the secret is taken out of them, however it is packed.
    if path == "/header":
        assert "'x-key': '***'" in found.message
    if path == "/oauth":
        assert "answered with status 401 (invalid_client)" in found.message


def test_a_token_that_is_refused_is_renewed_once(api: Api) -> None:
    who = auth("oauth2", USER, SECRET, token_url=f"{api.url}/token")
    api.fails("/oauth", Reply({"message": "expired"}, 401))
    assert read(asked(api, "/oauth", auth=who)) == ALL
    assert len(api.tokens) == 2
    api.on("/never", lambda _: Reply({"error": {"message": "no token is good"}}, 401))
    found = failure(asked(api, "/never", auth=who))
    assert (found.code, len(api.tokens)) == ("API_UNAUTHORIZED", 4)
    assert '"no token is good"' in found.message


def test_a_token_is_renewed_before_it_ends(api: Api) -> None:
    def brief(_: Seen) -> Reply:
        api.tokens.append(f"t{len(api.tokens)}")
        return Reply({"access_token": api.tokens[-1], "expires_in": 1})

    api.on("/token", brief)

    def slowly(seen: Seen) -> Reply:
        time.sleep(0.6)
        page = int(seen.parameters["page"])
        return Reply([{"page": page}] if page < 3 else [])

    api.on("/slowly", slowly)
    who = auth("oauth2", USER, SECRET, token_url=f"{api.url}/token")
    read(asked(api, "/slowly", auth=who, pages={"style": "page"}))
    assert len(api.tokens) == 3


@pytest.mark.parametrize(
    "body", [b"no", b"[]", b'{"token": "x"}', b'{"access_token": 5}', b'{"access_token": "a", "expires_in": "soon"}']
)
def test_a_token_service_that_gives_none_is_told(api: Api, body: bytes) -> None:
    api.on("/token", lambda _: Reply(body))
    found = failure(asked(api, "/oauth", auth=auth("oauth2", USER, SECRET, token_url=f"{api.url}/token")))
    assert (found.code, "returned no access_token" in found.message) == ("API_UNAUTHORIZED", True)


def test_a_secret_that_breaks_its_header_is_told(api: Api) -> None:
    found = failure(asked(api, "/bearer", auth=auth("bearer", secret="abc\r\nX-Evil: 1")))
    assert (found.code, "line break" in found.message) == ("API_UNAUTHORIZED", True)
    assert not api.seen


@pytest.mark.parametrize(
    ("status", "code", "said"),
    [
        (400, "API_REFUSED", 'refused the request for /odd (400): "bad"; check the path and its parameters'),
        (401, "API_UNAUTHORIZED", "rejects the credentials (401)"),
        (403, "API_FORBIDDEN", "has no permission to read /odd from 127.0.0.1 (403)"),
        (404, "API_NOT_FOUND", "has no resource /odd (404)"),
        (410, "API_REFUSED", "(410)"),
        (501, "API_REFUSED", "(501)"),
    ],
)
def test_a_refusal_is_told_once_and_says_what_to_do(api: Api, status: int, code: str, said: str) -> None:
    api.on("/odd", lambda _: Reply({"message": "bad"}, status))
    found = failure(asked(api, "/odd"))
    assert (found.code, found.passing, len(api.seen)) == (code, False, 1)
    assert said in found.message


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504])
def test_trouble_that_passes_is_waited_out(api: Api, status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "pause", lambda tried, _: 0.3 if tried == 1 else 60.0)
    api.fails("/rows", Reply(None, status), Reply(None, status, {"Retry-After": "0"}))
    assert read(asked(api, "/rows")) == ALL
    assert len(api.seen) == 3
    first, second, third = (seen.at for seen in api.seen)
    assert second - first >= 0.3
    assert third - second < 30


def test_trouble_that_stays_is_told_as_passing(api: Api) -> None:
    api.on("/busy", lambda _: Reply(None, 429, {"Retry-After": "0"}))
    found = failure(asked(api, "/busy"))
    assert (found.code, found.passing, len(api.seen)) == ("API_BUSY", True, 3)
    assert "rate-limits its requests (429); lower the connection's calls per second (3 attempts)" in found.message
    api.on("/down", lambda _: Reply(None, 503, {"Retry-After": "0"}))
    found = failure(asked(api, "/down"))
    assert found.code == "API_DOWN"
    assert "run the pipeline again later, or configure retries (503) (3 attempts)" in found.message


@pytest.mark.slow
def test_a_time_to_wait_is_kept_to(api: Api) -> None:
    api.fails("/rows", Reply(None, 429, {"Retry-After": "1"}))
    read(asked(api, "/rows"))
    assert api.seen[1].at - api.seen[0].at >= 1
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=3), usegmt=True)
    api.fails("/rows", Reply(None, 503, {"Retry-After": later}))
    read(asked(api, "/rows"))
    assert api.seen[3].at - api.seen[2].at >= 0.8
    api.fails("/rows", Reply(None, 429, {"Retry-After": "3600"}))
    found = failure(asked(api, "/rows"))
    assert (found.code, found.passing) == ("API_BUSY", True)
    assert "asks to wait 3,600 seconds" in found.message
    api.fails("/rows", Reply(None, 429, {"Retry-After": "60"}))
    found = failure(asked(api, "/rows", until=time.time() + 30, limits={"longest_wait": 90}))
    assert "leaves no time for a retry" in found.message


def test_pauses_grow_and_differ() -> None:
    limits = Limits()
    assert all(0.25 <= pause(1, limits) <= 0.5 for _ in range(100))
    assert all(4 <= pause(5, limits) <= 8 for _ in range(100))
    assert all(pause(60, limits) <= 30 for _ in range(100))
    assert len({pause(3, limits) for _ in range(10)}) == 10


def test_calls_keep_their_pace(api: Api) -> None:
    began = time.monotonic()
    read(asked(api, "/page", pages={"style": "page"}, rows="data.items", limits={"calls_per_second": 10}))
    assert len(api.seen) == 4
    assert time.monotonic() - began >= 0.3
    api.seen.clear()
    began = time.monotonic()
    read(
        asked(
            api,
            "/region",
            partition_parameter="region",
            partitions=("a", "b", "c", "d"),
            tasks=2,
            limits={"calls_per_second": 20},
        )
    )
    # Each of two tasks has half of the calls, and waits once, for twice as long.
    assert len(api.seen) == 4
    assert time.monotonic() - began >= 0.2


def test_tasks_of_a_machine_keep_a_common_pace(api: Api, tmp_path: Path) -> None:
    wanted = asked(
        api,
        "/region",
        partition_parameter="region",
        partitions=tuple("abcdefgh"),
        tasks=4,
        limits={"calls_per_second": 20},
        pace_file=str(tmp_path / "pace"),
    )
    began = time.monotonic()
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda share: list(texts(wanted, share)), shares(wanted)))
    assert len(api.seen) == 8
    assert time.monotonic() - began >= 0.35
    (tmp_path / "pace").write_text("garbled")
    assert RateLimiter(1000, 1, str(tmp_path / "pace")).wait() is None
    assert RateLimiter(1000, 1, str(tmp_path / "missing" / "pace")).wait() is None


def test_a_common_pace_is_not_slower_however_many_ask(tmp_path: Path) -> None:
    paces = [RateLimiter(0.01, 4, str(tmp_path / "pace")) for _ in range(4)]
    first, *turns = [pace._turn() for pace in paces * 2]
    assert turns == pytest.approx([first + 100 * number for number in range(1, 8)])


@pytest.mark.parametrize("packed", [False, True])
def test_an_answer_that_is_too_large_is_not_taken(api: Api, packed: bool) -> None:
    api.on("/rows", lambda _: Reply([{"text": "x" * 100_000}]))
    if packed:
        body = gzip.compress(b"[" + b" " * 100_000 + b"]")
        assert len(body) < 1000
        api.on("/rows", lambda _: Reply(body, headers={"Content-Encoding": "gzip"}))
    found = failure(asked(api, "/rows", limits={"answer_bytes": 50_000}))
    assert (found.code, len(api.seen)) == ("API_TOO_LARGE", 1)
    assert "is larger than 50,000 bytes; request fewer rows per page" in found.message


def test_an_answer_that_takes_too_long_is_cut(api: Api) -> None:
    api.on("/slow", slow(60))
    began = time.monotonic()
    found = failure(asked(api, "/slow", limits={"call_seconds": 1, "attempts": 2}))
    assert time.monotonic() - began < 40
    assert (found.code, found.passing, len(api.seen)) == ("API_UNREACHABLE", True, 2)
    assert "127.0.0.1 timed out (2 attempts)" in found.message


def test_a_run_without_time_reads_nothing(api: Api) -> None:
    found = failure(asked(api, "/rows", until=time.time() - 1))
    assert (found.code, "raise the timeout" in found.message, api.seen) == ("API_TOO_LONG", True, [])


def test_redirects_stay_on_their_origin(api: Api) -> None:
    who = auth("header", "X-Key", SECRET)
    api.on("/old", lambda _: Reply(None, 302, {"Location": "/header?x=1"}))
    assert read(asked(api, "/old", auth=who)) == ALL
    api.on("/round", lambda _: Reply(None, 307, {"Location": "/round"}))
    found = failure(asked(api, "/round"))
    assert (found.code, "redirects more than 5 times" in found.message) == ("API_ELSEWHERE", True)
    api.seen.clear()
    for target in ("http://127.0.0.2/x", "https://127.0.0.1/x", "http://169.254.169.254/latest/", "http://["):
        api.on("/away", lambda _, target=target: Reply(None, 302, {"Location": target}))
        found = failure(asked(api, "/away", auth=who))
        assert (found.code, "to which this connection's secret is not sent" in found.message) == ("API_ELSEWHERE", True)


@pytest.mark.parametrize("path", ["http://evil.test/x", "//evil.test/x", "/a/../../b", "/a/%2e%2E/b", "/./a"])
def test_a_stream_stays_below_the_address(api: Api, path: str) -> None:
    assert failure(asked(api, path)).code == "API_PATH"
    assert not api.seen


def test_the_address_may_have_a_path(api: Api) -> None:
    api.on("/base/v1/rows", lambda _: Reply(ALL))
    wanted = asked(api, "v1/rows")
    assert read(replace(wanted, base=f"{api.url}/base/")) == ALL
    api.on("/base", lambda _: Reply([1]))
    assert read(replace(wanted, base=f"{api.url}/base/", path="")) == [{"value": 1}]


def test_nothing_there_is_told(api: Api) -> None:
    wanted = asked(api, "/rows", limits={"attempts": 1})
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    found = failure(replace(wanted, base=f"http://127.0.0.1:{port}"))
    assert (found.code, found.passing) == ("API_UNREACHABLE", True)
    assert f"127.0.0.1 accepts no connections on port {port}" in found.message
    found = failure(replace(wanted, base=f"https://127.0.0.1:{api.port}"))
    assert f"127.0.0.1 does not speak TLS on port {api.port}" in found.message


def test_a_connection_that_was_closed_meanwhile_is_opened_again(api: Api) -> None:
    api.on("/closing", lambda seen: Reply([{"p": seen.parameters["page"]}] if int(seen.parameters["page"]) < 4 else []))
    api.closes = True
    began = time.monotonic()
    assert len(read(asked(api, "/closing", pages={"style": "page"}, limits={"attempts": 1}))) == 3
    assert time.monotonic() - began < 30


def test_tls_is_verified(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    with (
        serve(lambda handler, _: handler.reply(body=b"[1]"), tls=authority.server("127.0.0.1")) as server,
        serving() as api,
    ):
        wanted = asked(api, "/", limits={"attempts": 1})
        wanted = replace(wanted, base=server.url("127.0.0.1", scheme="https"))
        found = failure(wanted)
        assert (found.code, "The TLS connection to 127.0.0.1 failed" in found.message) == ("API_UNSAFE", True)
        pem = authority.certificate.public_bytes(Encoding.PEM).decode()
        assert read(replace(wanted, certificates=pem)) == [{"value": 1}]


class Doorkeeper(socketserver.StreamRequestHandler):
    """A proxy that leads every name to one port, but evil ones."""

    port = 0
    heads: ClassVar[list[bytes]] = []

    def handle(self) -> None:
        head = b"".join(iter(self.rfile.readline, b"\r\n"))
        self.heads.append(head)
        if b"evil" in head:
            self.wfile.write(b"HTTP/1.1 403 Forbidden\r\n\r\nevil.test leads to an address that is not public")
            return
        with socket.create_connection(("127.0.0.1", self.port)) as far:
            self.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
            back = threading.Thread(target=self._copy, args=(far, self.request))
            back.start()
            self._copy(self.request, far)
            back.join()

    def _copy(self, one: socket.socket, other: socket.socket) -> None:
        while data := one.recv(65536):
            other.sendall(data)
        other.shutdown(socket.SHUT_WR)


def test_calls_go_through_the_proxy_by_connect(api: Api) -> None:
    keeper: Any = type("Own", (Doorkeeper,), {"port": api.port, "heads": []})
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), keeper) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,)).start()
        wanted = asked(api, "/rows", proxy=Proxy("127.0.0.1", server.server_address[1], "Basic abc"))
        assert read(replace(wanted, base="http://api.test")) == ALL
        assert keeper.heads == [
            b"CONNECT api.test:80 HTTP/1.1\r\nHost: api.test:80\r\nProxy-Authorization: Basic abc\r\n"
        ]
        assert api.seen[0].headers["host"] == "api.test"
        found = failure(replace(wanted, base="https://evil.test"))
        assert (found.code, found.message) == ("ADDRESS_REFUSED", "evil.test leads to an address that is not public")
        server.shutdown()
