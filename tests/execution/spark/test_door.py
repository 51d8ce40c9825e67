"""The door to the catalog: reads of the catalog pass with the token, and nothing else passes."""

import json
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from headgate.execution.notebooks.catalog_proxy import REFUSAL, CatalogProxy
from headgate.execution.sandbox import bubblewrap as sandbox
from headgate.execution.sandbox import relay, seccomp

TOKEN = "hgw_the-token"
_asked: list[tuple[str, str, dict[str, str]]] = []


class Catalog(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        _asked.append((self.command, self.path, dict(self.headers)))
        body = b"" if self.command == "HEAD" else b'{"from": "the catalog"}'
        self.send_response(404 if "missing" in self.path else 200)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Set-Cookie", "a=b")
        self.send_header("ETag", '"tag"')
        self.end_headers()
        self.wfile.write(body)

    do_HEAD = do_POST = do_DELETE = do_GET  # noqa: N815

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def door(tmp_path: Path) -> Iterator[Path]:
    """The socket of a door to a catalog."""
    _asked.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), Catalog) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        path = tmp_path / "door"
        CatalogProxy(f"http://127.0.0.1:{server.server_port}/iceberg", TOKEN).serve(relay.listen_unix(str(path)))
        yield path
        server.shutdown()


def said(door: Path, request: bytes) -> bytes:
    with socket.socket(socket.AF_UNIX) as near:
        near.settimeout(10)
        near.connect(str(door))
        near.sendall(request)
        near.shutdown(socket.SHUT_WR)
        answer = b""
        while piece := near.recv(65536):
            answer += piece
    return answer


def ask(door: Path, line: str, *headers: str, body: bytes = b"") -> bytes:
    return said(door, "\r\n".join((line, "Host: x", *headers, "", "")).encode() + body)


def test_reads_pass_with_the_token_that_only_the_door_has(door: Path) -> None:
    answer = ask(
        door,
        "GET /v1/namespaces/raw/tables/a%1Fb?snapshots=all HTTP/1.1",
        "Authorization: Bearer mine",
        "Accept: a/b",
        "Cookie: x=y",
        "X-Other: z",
    )
    assert answer.startswith(b"HTTP/1.1 200")
    assert answer.endswith(b'{"from": "the catalog"}')
    assert b"Set-Cookie" not in answer
    assert b'ETag: "tag"' in answer
    [(method, path, headers)] = _asked
    assert (method, path) == ("GET", "/iceberg/v1/namespaces/raw/tables/a%1Fb?snapshots=all")
    assert headers["Authorization"] == f"Bearer {TOKEN}"
    assert headers["Accept"] == "a/b"
    assert not {"Cookie", "X-Other"} & set(headers)
    assert ask(door, "HEAD /v1/missing HTTP/1.1").startswith(b"HTTP/1.1 404")


def test_two_requests_on_one_connection_are_two(door: Path) -> None:
    answer = said(door, b"GET /v1/a HTTP/1.1\r\nHost: x\r\n\r\nGET /v1/b HTTP/1.1\r\nHost: x\r\n\r\n")
    assert answer.count(b"HTTP/1.1 200") == 2
    assert [path for _, path, _ in _asked] == ["/iceberg/v1/a", "/iceberg/v1/b"]


@pytest.mark.parametrize(
    "line",
    [
        "POST /v1/namespaces/raw/tables/a HTTP/1.1",
        "DELETE /v1/namespaces/raw/tables/a HTTP/1.1",
        "PUT /v1/a HTTP/1.1",
        "PATCH /v1/a HTTP/1.1",
        "OPTIONS /v1/a HTTP/1.1",
        "GET /api/access/me HTTP/1.1",
        "GET / HTTP/1.1",
        "GET /v1/../api/tokens HTTP/1.1",
        "GET /v1/%2E%2e/api HTTP/1.1",
        "GET /v1/a%2f..%2fb HTTP/1.1",
        "GET /v1//a HTTP/1.1",
        "GET /v1/a\\..\\b HTTP/1.1",
        "GET http://127.0.0.1/v1/a HTTP/1.1",
        "GET /v1/a#/api HTTP/1.1",
        "GET /v1/é HTTP/1.1",
        f"GET /v1/{'a' * 3000} HTTP/1.1",
    ],
)
def test_all_else_is_refused_before_the_catalog_hears_of_it(door: Path, line: str) -> None:
    answer = ask(door, line)
    assert answer.startswith(b"HTTP/1.1 403"), answer
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["message"] == REFUSAL
    assert _asked == []


@pytest.mark.parametrize("line", ["CONNECT a:1 HTTP/1.1", "GET", "GET /v1/a HTTP/9.9", "\x16\x03\x01"])
def test_what_is_no_request_is_answered_with_an_error(door: Path, line: str) -> None:
    assert b" 200 " not in ask(door, line).split(b"\r\n")[0]
    assert _asked == []


@pytest.mark.parametrize(
    "request_",
    [
        b"GET /v1/a HTTP/1.1\r\nHost: x\r\nContent-Length: 30\r\n\r\nGET /v1/smuggled HTTP/1.1\r\n\r\n",
        b"GET /v1/a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /v1/smuggled HTTP/1.1\r\n\r\n",
        b"POST /v1/a HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\nGET /v1/smuggled HTTP/1.1\r\nHost: x\r\n\r\n",
    ],
)
def test_nothing_is_smuggled_in_a_body(door: Path, request_: bytes) -> None:
    answer = said(door, request_)
    assert answer.count(b"HTTP/1.1") == 1
    assert answer.startswith(b"HTTP/1.1 403")
    assert _asked == []


def test_a_catalog_that_is_away_is_told_as_such(tmp_path: Path) -> None:
    path = tmp_path / "door"
    CatalogProxy("http://127.0.0.1:1/iceberg", TOKEN).serve(relay.listen_unix(str(path)))
    answer = ask(path, "GET /v1/config HTTP/1.1")
    assert answer.startswith(b"HTTP/1.1 503")
    assert TOKEN.encode() not in answer


def test_a_relay_passes_so_many_connections_on_and_no_more(tmp_path: Path) -> None:
    held: list[socket.socket] = []

    def dial() -> socket.socket:
        near, far = socket.socketpair()
        held.append(far)
        return near

    listener = relay.listen_unix(str(tmp_path / "way"))
    relay.relay(listener, dial, 2)
    ends = []
    for _ in range(4):
        one = socket.socket(socket.AF_UNIX)
        one.connect(str(tmp_path / "way"))
        one.settimeout(5)
        ends.append(one)
    _within(lambda: len(held) == 2)
    assert len(held) == 2
    for one in (ends[0], held[0]):
        one.close()
    _within(lambda: len(held) == 3)
    for one in (*ends, *held, listener):
        one.close()


def _within(check: Any, seconds: float = 60.0) -> None:
    event = threading.Event()
    for _ in range(int(seconds / 0.05)):
        if check():
            event.wait(0.2)
            break
        event.wait(0.05)
    assert check()


# The filter of calls


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_the_filter_is_a_program_that_ends_and_allows_the_rest(machine: str) -> None:
    content = seccomp.program(machine)
    assert content is not None
    lines = list(struct.iter_unpack("=HBBI", content))
    for number, (code, yes, no, _) in enumerate(lines):
        if code in (0x15, 0x35, 0x45):
            assert number + 1 + max(yes, no) < len(lines)
    assert lines[-1] == (0x06, 0, 0, 0x7FFF0000)
    assert len(lines) < 4096


def test_a_machine_whose_calls_are_not_known_has_no_filter() -> None:
    assert seccomp.program("riscv64") is None


@pytest.mark.processes
def test_programs_work_under_the_filter_and_what_is_refused_is_refused(tmp_path: Path) -> None:
    code = """
import ctypes, errno, os, socket, subprocess, threading
library = ctypes.CDLL(None, use_errno=True)
threading.Thread(target=print, args=("thread",)).start()
print(subprocess.check_output(["echo", "child"], text=True).strip())
for family in (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK):
    socket.socket(family, socket.SOCK_RAW if family == socket.AF_NETLINK else socket.SOCK_STREAM).close()
for family in (40, 38, 17):
    try:
        socket.socket(family, socket.SOCK_STREAM); print("socket", family)
    except OSError as error:
        print(errno.errorcode[error.errno])
print(library.unshare(0x10000000), errno.errorcode[ctypes.get_errno()])
print(library.ptrace(0, 0, 0, 0), errno.errorcode[ctypes.get_errno()])
"""
    content = seccomp.program()
    assert content is not None
    file = tmp_path / "filter"
    file.write_bytes(content)
    with file.open("rb") as handle:
        command = ["bwrap", "--bind", "/", "/", "--seccomp", str(handle.fileno()), sandbox.python(), "-S", "-c", code]
        done = subprocess.run(command, capture_output=True, text=True, check=False, pass_fds=[handle.fileno()])
    assert sorted(done.stdout.split("\n")) == sorted(
        ["thread", "child", *["EAFNOSUPPORT"] * 3, "-1 EPERM", "-1 EPERM", ""]
    ), done.stderr


@pytest.mark.processes
def test_an_address_that_is_no_name_can_be_reached_in_a_network_of_its_own() -> None:
    code = (
        "import socket\nfrom headgate.execution.sandbox import network\n"
        "network.enter([('10.77.0.1', 443), ('203.0.113.9', 5432), ('127.0.0.2', 80)])\n"
        "for place in (('10.77.0.1', 443), ('203.0.113.9', 5432), ('127.0.0.2', 80)):\n"
        "    socket.create_connection(place, 3).close(); print('open')\n"
        "try:\n    socket.create_connection(('10.77.0.2', 443), 3)\nexcept OSError as error:\n    print('closed')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert done.stdout.split() == ["open", "open", "open", "closed"], done.stderr
