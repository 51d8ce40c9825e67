"""Answers that come in pieces: as large as the caller takes, under the same rules as every call."""

import gzip
import time

import pytest

from headgate.kit.call_errors import CallRefused, Unreachable
from tests.outgoing import Handler, Seen, client, redirect, serve


def test_a_body_comes_in_pieces_beyond_the_limit_of_other_answers() -> None:
    body = b"0123456789" * 100_000
    with (
        serve(lambda handler, _: handler.reply(body=body, etag='"a"')) as server,
        client(max_response_bytes=1024) as outgoing,
    ):
        with outgoing.stream(server.url(path="/x"), headers={"Range": "bytes=5-"}) as found:
            assert (found.status, found.headers["etag"], found.url) == (200, '"a"', server.url(path="/x"))
            pieces = list(found.pieces)
        assert len(pieces) > 1
        assert b"".join(pieces) == body
    (seen,) = server.seen
    assert (seen.headers["range"], seen.headers["accept-encoding"]) == ("bytes=5-", "identity")


def test_redirects_are_judged_and_lose_secrets() -> None:
    def away(handler: Handler, seen: Seen) -> None:
        target = f"http://other.test:{handler.served.port}/b" if seen.path == "/a" else "http://10.0.0.1/"
        if seen.path == "/b":
            handler.reply(body=b"there")
        else:
            redirect(target)(handler, seen)

    with serve(away) as server, client() as outgoing:
        with outgoing.stream(server.url(path="/a"), headers={"Authorization": "secret"}) as found:
            assert (b"".join(found.pieces), found.url) == (b"there", server.url("other.test", "/b"))
        with (
            pytest.raises(CallRefused, match=r"redirected by hooks.test: 10.0.0.1 is a private address"),
            outgoing.stream(server.url(path="/c")),
        ):
            pass
    assert [seen.headers.get("authorization") for seen in server.seen] == ["secret", None, None]


def test_what_was_packed_unasked_is_unpacked() -> None:
    body = gzip.compress(b"a" * 1_000_000)
    with (
        serve(lambda handler, _: handler.reply(body=body, content_encoding="gzip")) as server,
        client() as outgoing,
        outgoing.stream(server.url()) as found,
    ):
        assert sum(map(len, found.pieces)) == 1_000_000


def test_silence_and_slowness_end() -> None:
    def silent(handler: Handler, _seen: Seen) -> None:
        handler.send_response(200)
        handler.send_header("content-length", "1000")
        handler.end_headers()
        for _ in range(600):
            handler.wfile.write(b"a")
            handler.wfile.flush()
            if handler.served.ended.wait(0.1 if "drip" in handler.path else 3):
                return

    with serve(silent) as server, client(timeout_seconds=0.4) as outgoing:
        for path, seconds in (("/silent", 60), ("/drip", 0.8)):
            began = time.monotonic()
            with (
                pytest.raises(Unreachable, match="did not answer within"),
                outgoing.stream(server.url(path=path), seconds=seconds) as found,
            ):
                list(found.pieces)
            assert time.monotonic() - began < 30
    with (
        serve(silent) as server,
        client(timeout_seconds=20) as outgoing,
        outgoing.stream(server.url(path="/drip"), seconds=60) as found,
    ):
        assert next(found.pieces) == b"a"
