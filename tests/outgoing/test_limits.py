"""Servers that send too much, too slowly, or nothing that makes sense."""

import gzip
import os
import socket
import struct
import threading
import time
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from headgate.kit.call_errors import TooLarge, Unreachable
from tests.outgoing import HERE, Answer, Handler, Names, Seen, client, fine, raw, serve

LIMIT = 20_000
NOISE = os.urandom(LIMIT)
GZIP = {"content_encoding": "gzip"}


def packed(body: bytes) -> bytes:
    """Gzip without the time of day, so that a case has the same name in every process."""
    return gzip.compress(body, mtime=0)


def replying(body: bytes, **headers: str) -> Answer:
    return lambda handler, _: handler.reply(200, body, **headers)


@contextmanager
def quick(seconds: float = 0.5) -> Iterator[None]:
    """What is inside must give up at its deadline, not when the server does, which takes half a minute at least."""
    started = time.monotonic()
    yield
    taken = time.monotonic() - started
    assert seconds * 0.9 < taken < 20


@pytest.mark.parametrize("size", [0, 1, LIMIT - 1, LIMIT])
@pytest.mark.parametrize("is_packed", [False, True])
def test_an_answer_may_be_as_large_as_the_limit(size: int, is_packed: bool) -> None:
    body = NOISE[: size // 2] + b"\0" * (size - size // 2)
    answer = replying(packed(body), **GZIP) if is_packed else replying(body)
    with serve(answer) as server, client(max_response_bytes=LIMIT) as outgoing:
        assert outgoing.request("GET", server.url()).body == body
        assert outgoing.request("GET", server.url()).body == body
    assert len({seen.connection for seen in server.seen}) == 1


@pytest.mark.parametrize("answer", [replying(b"a" * (LIMIT + 1)), replying(packed(b"a" * (LIMIT + 1)), **GZIP)])
def test_but_not_one_byte_larger(answer: Answer) -> None:
    with (
        serve(answer) as server,
        client(max_response_bytes=LIMIT) as outgoing,
        pytest.raises(TooLarge, match=rf"hooks\.test .*{LIMIT} bytes; outgoing\.max_response_bytes"),
    ):
        outgoing.request("GET", server.url())


@pytest.mark.parametrize("headers", [{}, GZIP])
def test_an_endless_answer_is_given_up(headers: dict[str, str]) -> None:
    packer = zlib.compressobj(wbits=31)

    def endless(handler: Handler, _: Seen) -> None:
        handler.send_response(200)
        for name, value in {"transfer_encoding": "chunked", **headers}.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        while not handler.served.ended.is_set():
            piece = NOISE[:5000]
            sent = packer.compress(piece) + packer.flush(zlib.Z_SYNC_FLUSH) if headers else piece
            handler.wfile.write(b"%x\r\n%b\r\n" % (len(sent), sent))

    with serve(endless) as server, client(max_response_bytes=LIMIT) as outgoing, pytest.raises(TooLarge):
        outgoing.request("GET", server.url())


def test_a_bomb_is_never_held_in_memory() -> None:
    size = 200 << 20
    packer = zlib.compressobj(9, wbits=31)
    bomb = b"".join(packer.compress(bytes(1 << 20)) for _ in range(size >> 20)) + packer.flush()
    with serve(replying(bomb, **GZIP)) as server, client(max_response_bytes=1 << 20) as outgoing:
        tracemalloc.start()
        try:
            with pytest.raises(TooLarge):
                outgoing.request("GET", server.url())
            assert tracemalloc.get_traced_memory()[1] < 8 << 20
        finally:
            tracemalloc.stop()


def test_bytes_behind_the_end_of_a_gzip_count() -> None:
    body = packed(b"small")
    with serve(replying(body + b"x" * 100, **GZIP)) as server, client(max_response_bytes=LIMIT) as outgoing:
        assert outgoing.request("GET", server.url()).body == b"small"
    with (
        serve(replying(body + b"x" * LIMIT, **GZIP)) as server,
        client(max_response_bytes=LIMIT) as outgoing,
        pytest.raises(TooLarge),
    ):
        outgoing.request("GET", server.url())


@pytest.mark.parametrize(
    ("body", "encoding"),
    [
        *[(packed(b"a" * 500)[:-9], "gzip"), (b"not packed at all", "gzip"), (packed(b"a")[:5], "gzip")],
        *[
            (packed(packed(b"a")), "gzip, gzip"),
            (zlib.compress(b"a"), "deflate"),
            (b"a", "br"),
            (b"a", "zstd"),
        ],
    ],
)
def test_what_cannot_be_unpacked_is_no_answer(body: bytes, encoding: str) -> None:
    with (
        serve(replying(body, content_encoding=encoding)) as server,
        client() as outgoing,
        pytest.raises(Unreachable, match=r"hooks\.test is packed"),
    ):
        outgoing.request("GET", server.url())


@pytest.mark.parametrize("encoding", ["GZIP", "x-gzip", " gzip "])
def test_gzip_has_several_names(encoding: str) -> None:
    with serve(replying(packed(b"a"), content_encoding=encoding)) as server, client() as outgoing:
        assert outgoing.request("GET", server.url()).body == b"a"


def test_identity_is_no_packing_and_nothing_needs_no_unpacking() -> None:
    with serve(replying(b"a", content_encoding="identity")) as server, client() as outgoing:
        assert outgoing.request("GET", server.url()).body == b"a"
    with serve(replying(b"", **GZIP)) as server, client() as outgoing:
        assert outgoing.request("HEAD", server.url()).body == b""


Talk = Callable[[socket.socket, threading.Event], None]


def dripping(start: bytes, piece: bytes) -> Talk:
    def talk(connection: socket.socket, ended: threading.Event) -> None:
        connection.recv(65536)
        connection.sendall(start)
        for _ in range(600):
            connection.sendall(piece)
            if ended.wait(0.05):
                break

    return talk


def silent(_: socket.socket, ended: threading.Event) -> None:
    ended.wait(60)


def deaf(connection: socket.socket, ended: threading.Event) -> None:
    """Takes a little of the request now and then, so that it never quite stands still."""
    for _ in range(300):
        connection.recv(128 << 10)
        if ended.wait(0.1):
            break


@pytest.mark.parametrize(
    "talk",
    [
        pytest.param(silent, id="no answer"),
        pytest.param(dripping(b"", b"H"), id="no status line"),
        pytest.param(dripping(b"HTTP/1.1 200 OK\r\n", b"A: b\r\n"), id="headers"),
        pytest.param(dripping(b"", b"HTTP/1.1 100 Continue\r\n\r\n"), id="not yet"),
        pytest.param(dripping(b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n", b"a"), id="body"),
        pytest.param(dripping(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\na\r\n"), id="chunks"),
        pytest.param(dripping(b"HTTP/1.1 200 OK\r\n\r\n", b"a"), id="without a length"),
    ],
)
def test_a_server_cannot_hold_a_call_by_dripping(talk: Talk) -> None:
    says = r"hooks\.test did not answer within 0\.5 seconds; outgoing\.timeout_seconds"
    with raw(talk) as server, client(timeout_seconds=0.5) as outgoing, quick(), pytest.raises(Unreachable, match=says):
        outgoing.request("GET", server.url())


def test_nor_by_not_listening() -> None:
    with (
        raw(deaf) as server,
        client(timeout_seconds=0.5) as outgoing,
        quick(),
        pytest.raises(Unreachable, match="within"),
    ):
        outgoing.request("POST", server.url(), content=bytes(64 << 20))


@pytest.mark.parametrize("talk", [silent, dripping(b"\x16\x03\x03\x40\x00", b"\x02")])
def test_nor_in_a_handshake(talk: Talk) -> None:
    with raw(talk) as server, client(timeout_seconds=0.5) as outgoing, quick(), pytest.raises(Unreachable):
        outgoing.request("GET", server.url(scheme="https"))


def test_nor_by_redirects() -> None:
    def slowly(handler: Handler, _: Seen) -> None:
        time.sleep(0.2)
        handler.reply(302, location="/")

    with (
        serve(slowly) as server,
        client(timeout_seconds=0.5) as outgoing,
        quick(),
        pytest.raises(Unreachable, match="within"),
    ):
        outgoing.request("GET", server.url())


def test_nor_by_its_name() -> None:
    over = threading.Event()

    def hanging(_: str) -> list[str]:
        over.wait(60)
        return [HERE]

    with client(timeout_seconds=0.5, resolver=hanging) as outgoing, quick(), pytest.raises(Unreachable, match="within"):
        outgoing.request("GET", "http://hooks.test/")
    over.set()


def test_nor_by_an_address_that_swallows_connections() -> None:
    """The backlog is full, so nothing is accepted; the second address still gets its share of the time."""
    with serve() as server, socket.socket() as full:
        full.bind(("127.0.0.3", server.port))
        full.listen(0)
        waiting = [socket.socket() for _ in range(8)]
        for one in waiting:
            one.settimeout(0)
            one.connect_ex(full.getsockname())
        names = Names(two_test=[["127.0.0.3", HERE]])
        with client("127.0.0.0/8", resolver=names, timeout_seconds=4) as outgoing:
            assert outgoing.request("GET", server.url("two.test")).status == 200
        for one in waiting:
            one.close()


@pytest.mark.slow
def test_each_call_on_a_connection_has_its_own_deadline() -> None:
    def slowly(handler: Handler, seen: Seen) -> None:
        time.sleep(0.9)
        fine(handler, seen)

    with serve(slowly) as server:
        with client(timeout_seconds=4) as outgoing:
            for _ in range(5):
                outgoing.request("GET", server.url())
        assert len({seen.connection for seen in server.seen}) == 1


@pytest.mark.parametrize(
    "sent",
    [
        *(b"", b"SSH-2.0-OpenSSH_9.6\r\n", b"HTTP/1.1 abc\r\n\r\n", b"HTTP/1.1 200 OK\r\nA\x00: b\r\n\r\n"),
        *(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc", b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n"),
        *(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", b"HTTP/1.1 200 OK\r\nA: " + b"b" * 200_000),
        b"HTTP/1.1 200 OK\r\n" + b"".join(b"A%d: b\r\n" % number for number in range(20_000)),
    ],
)
def test_what_is_not_http_is_no_answer(sent: bytes) -> None:
    def talk(connection: socket.socket, _: threading.Event) -> None:
        connection.recv(65536)
        connection.sendall(sent)
        connection.shutdown(socket.SHUT_WR)

    with (
        raw(talk) as server,
        client() as outgoing,
        pytest.raises(Unreachable, match=r"hooks\.test closed the connection"),
    ):
        outgoing.request("GET", server.url())


def test_a_connection_that_is_cut_is_no_answer() -> None:
    def talk(connection: socket.socket, _: threading.Event) -> None:
        connection.recv(65536)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    with (
        raw(talk) as server,
        client() as outgoing,
        pytest.raises(Unreachable, match=r"hooks\.test closed the connection"),
    ):
        outgoing.request("GET", server.url())
