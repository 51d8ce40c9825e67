"""Calls to real servers on this machine: where they may go, by which address, through which redirects."""

import socket
import threading
from pathlib import Path

import pytest

from headgate import __version__
from headgate.kit.call_errors import CallRefused, Unreachable
from headgate.outgoing.client import MAX_REDIRECTS, check_url
from headgate.settings.outgoing import OutgoingSettings
from tests.outgoing import ELSEWHERE, HERE, PUBLIC, Handler, Names, Seen, client, fine, redirect, serve


def test_a_call_takes_everything_there_and_the_answer_back() -> None:
    def created(handler: Handler, _: Seen) -> None:
        handler.reply(201, b'{"id": 1}', content_type="application/json", x_more="a")

    with serve(created) as server, client() as outgoing:
        url = server.url(path="/a%20b/ü?q=1&q=é")
        found = outgoing.request("post", url, headers={"X-Own": " v "}, json={"ä": [1, None]}, idempotency_key="k-1")
    assert (found.status, found.body, found.headers["X-More"]) == (201, b'{"id": 1}', "a")
    (seen,) = server.seen
    assert (seen.method, seen.path, seen.body) == ("POST", "/a%20b/%C3%BC?q=1&q=%C3%A9", '{"ä":[1,null]}'.encode())
    assert seen.headers == {
        "host": f"hooks.test:{server.port}",
        "user-agent": f"Headgate/{__version__}",
        "accept": "*/*",
        "accept-encoding": "gzip",
        "content-type": "application/json",
        "content-length": "15",
        "idempotency-key": "k-1",
        "x-own": "v",
    }


def test_content_goes_as_it_is() -> None:
    with serve() as server, client() as outgoing:
        outgoing.request("PUT", server.url(), headers={"Content-Type": "a/b", "User-Agent": "own"}, content=b"\x00\xff")
        assert outgoing.request("HEAD", server.url()).body == b""
        assert outgoing.request("GET", server.url(path="/x")).body == b"/x"
        with pytest.raises(ValueError, match="both"):
            outgoing.request("POST", server.url(), content=b"", json=1)
    put, head, get = server.seen
    assert (put.body, put.headers["content-type"], put.headers["user-agent"]) == (b"\x00\xff", "a/b", "own")
    assert (head.method, get.method) == ("HEAD", "GET")
    assert "content-type" not in get.headers
    assert "content-length" not in get.headers


@pytest.mark.parametrize("status", [204, 304, 400, 404, 500, 300])
def test_any_status_is_an_answer(status: int) -> None:
    with serve(lambda handler, _: handler.reply(status, location="/x")) as server, client() as outgoing:
        assert outgoing.request("GET", server.url()).status == status


@pytest.mark.parametrize(
    ("allow", "host"),
    [
        *[
            ("hooks.test", "hooks.test"),
            ("HOOKS.Test", "hooks.test"),
            ("hooks.test", "HOOKS.test."),
            (HERE, "hooks.test"),
        ],
        *[
            ("127.0.0.0/8", "hooks.test"),
            (HERE, HERE),
            ("127.0.0.0/31", HERE),
            (HERE, "0x7f.1"),
            (HERE, "[::ffff:127.0.0.1]"),
        ],
    ],
)
def test_what_is_listed_is_called(allow: str, host: str) -> None:
    with serve() as server, client(allow) as outgoing:
        assert outgoing.request("GET", server.url(host)).status == 200
        assert server.seen


@pytest.mark.parametrize("allow", ["other.test", "ooks.test", "test", ELSEWHERE, "10.0.0.0/8", "::/0"])
@pytest.mark.parametrize("host", ["hooks.test", HERE, "127.1", "2130706433"])
def test_what_is_not_listed_is_refused_before_a_byte_is_sent(allow: str, host: str) -> None:
    with serve() as server, client(allow) as outgoing:
        with pytest.raises(CallRefused, match=r"outgoing\.allow = ") as refused:
            outgoing.request("GET", server.url(host))
        assert not server.seen
        assert HERE not in str(refused.value) or host != "hooks.test"


def test_localhost_is_refused_without_asking_and_can_be_listed() -> None:
    names = Names(localhost=[[HERE]])
    with serve() as server, client("10.0.0.1", resolver=names) as outgoing:
        with pytest.raises(CallRefused, match=r'\["localhost"\]'):
            outgoing.request("GET", server.url("localhost."))
        assert not names.asked
        assert not server.seen
    with serve() as server, client("localhost", resolver=names) as outgoing:
        assert outgoing.request("GET", server.url("localhost.")).status == 200


def test_a_name_that_was_public_when_it_was_saved_is_judged_again() -> None:
    names = Names(rebound_test=[[PUBLIC], [HERE]])
    with serve() as server, client("10.0.0.1", resolver=names) as outgoing:
        check_url(server.url("rebound.test"), OutgoingSettings(), resolve=True, resolver=names)
        with pytest.raises(CallRefused, match=r"rebound\.test"):
            outgoing.request("GET", server.url("rebound.test"))
        assert not server.seen
    assert names.asked == ["rebound.test"] * 2


def test_the_connection_goes_to_the_address_that_was_judged() -> None:
    """The name is asked for once a connection; what it would say a moment later is of no interest."""
    names = Names(rebound_test=[[HERE], [ELSEWHERE]])

    def closing(handler: Handler, _: Seen) -> None:
        handler.reply(connection="close")

    with serve(closing) as server, client(resolver=names) as outgoing:
        outgoing.request("GET", server.url("rebound.test"))
        assert names.asked == ["rebound.test"]
        assert len(server.seen) == 1
        with pytest.raises(CallRefused):
            outgoing.request("GET", server.url("rebound.test"))
        assert len(server.seen) == 1


@pytest.mark.parametrize("answers", [[HERE, ELSEWHERE], [ELSEWHERE, HERE], [HERE, "::1"], [HERE, "10.0.0.1"]])
def test_one_bad_address_spoils_the_answer(answers: list[str]) -> None:
    with serve() as server, client(resolver=Names(mixed_test=[answers])) as outgoing:
        with pytest.raises(CallRefused):
            outgoing.request("GET", server.url("mixed.test"))
        assert not server.seen


def test_the_next_address_is_tried_when_one_takes_no_connection() -> None:
    with serve() as server, client("127.0.0.0/8", resolver=Names(two_test=[[ELSEWHERE, HERE]])) as outgoing:
        assert outgoing.request("GET", server.url("two.test")).status == 200


def test_a_connection_is_used_again_without_asking_again() -> None:
    names = Names(hooks_test=[[HERE], [ELSEWHERE]])
    with serve() as server, client(resolver=names) as outgoing:
        for _ in range(3):
            outgoing.request("POST", server.url(), json={})
    assert len({seen.connection for seen in server.seen}) == 1
    assert len(names.asked) == 1


def test_threads_share_a_client() -> None:
    wrong: list[object] = []
    with serve() as server, client() as outgoing:

        def call(worker: int) -> None:
            for turn in range(8):
                path = f"/{worker}/{turn}"
                found = outgoing.request("GET", server.url(path=path)).body
                if found != path.encode():
                    wrong.append((path, found))

        threads = [threading.Thread(target=call, args=(worker,)) for worker in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong
        assert len(server.seen) == 48


def test_ipv6_goes_the_same_way() -> None:
    with serve(address="::1") as server:
        with client("10.0.0.1", resolver=Names(six_test=[["::1"]])) as outgoing:
            for host in ("[::1]", "[0:0::1]", "six.test"):
                with pytest.raises(CallRefused):
                    outgoing.request("GET", server.url(host))
        assert not server.seen
        for allow, host in (("::1", "[::1]"), ("::/64", "six.test"), ("six.test", "six.test")):
            with client(allow, resolver=Names(six_test=[["::1"]])) as outgoing:
                assert outgoing.request("GET", server.url(host)).status == 200
    assert server.seen[0].headers["host"] == f"[::1]:{server.port}"


@pytest.mark.parametrize(
    "location",
    [
        *(
            "http://127.0.0.2:{port}/",
            "http://169.254.169.254/latest/meta-data/",
            "http://2130706434:{port}/",
            "//127.0.0.2/",
        ),
        *(
            "http://inside.test:{port}/",
            "http://[::1]:{port}/",
            "http://localhost:{port}/",
            "http://[::ffff:7f00:2]:{port}/",
        ),
        *(
            "file:///etc/passwd",
            "gopher://hooks.test/",
            "http://u:p@hooks.test:{port}/",
            "http://[::1/",
            "http://hooks.test:0/",
        ),
    ],
)
def test_a_redirect_is_judged_like_a_url_that_was_typed(location: str) -> None:
    names = Names(hooks_test=[[HERE]], inside_test=[[ELSEWHERE]], localhost=[[ELSEWHERE]])
    with serve(address="0.0.0.0") as inside:  # noqa: S104 - it must be reached if the code is wrong
        with serve(redirect(location.format(port=inside.port))) as server, client(resolver=names) as outgoing:
            with pytest.raises(CallRefused, match=r"^redirected by hooks\.test: "):
                outgoing.request("GET", server.url())
            assert len(server.seen) == 1
        assert not inside.seen


def test_a_redirect_within_a_host_may_be_relative() -> None:
    def answer(handler: Handler, seen: Seen) -> None:
        fine(handler, seen) if seen.path == "/a/c?d" else handler.reply(302, location="c?d#part")

    with serve(answer) as server, client() as outgoing:
        assert outgoing.request("GET", server.url(path="/a/b")).body == b"/a/c?d"


def test_redirects_are_followed_five_times() -> None:
    def count_down(handler: Handler, seen: Seen) -> None:
        left = int(seen.path[1:])
        handler.reply(302, location=f"/{left - 1}") if left else fine(handler, seen)

    with serve(count_down) as server, client() as outgoing:
        assert outgoing.request("GET", server.url(path=f"/{MAX_REDIRECTS}")).body == b"/0"
        assert len(server.seen) == MAX_REDIRECTS + 1
        with pytest.raises(CallRefused, match=r"hooks\.test redirects more than 5 times"):
            outgoing.request("GET", server.url(path=f"/{MAX_REDIRECTS + 1}"))
        assert len(server.seen) == 2 * (MAX_REDIRECTS + 1)


@pytest.mark.parametrize(
    ("status", "method", "onward", "body"),
    [
        *[(status, "POST", "POST", b"data") for status in (307, 308)],
        *[(status, "PUT", "PUT", b"data") for status in (307, 308)],
        *[(status, method, "GET", b"") for status in (301, 302, 303) for method in ("POST", "PUT", "DELETE")],
        *[(status, "HEAD", "HEAD", b"") for status in (301, 302, 303, 307, 308)],
    ],
)
def test_a_redirect_keeps_the_method_or_becomes_a_get(status: int, method: str, onward: str, body: bytes) -> None:
    headers = {"Content-Type": "a/b", "Content-Language": "en", "X-Token": "t"}
    with serve() as end, serve(redirect(end.url("hooks.test", "/end"), status)) as server, client() as outgoing:
        content = b"data" if method != "HEAD" else None
        outgoing.request(method, server.url(), headers=headers, content=content, idempotency_key="k")
    assert (server.seen[0].method, server.seen[0].body) == (method, content or b"")
    (seen,) = end.seen
    assert (seen.method, seen.path, seen.body) == (onward, "/end", body)
    kept = {"content-type", "idempotency-key"} & set(seen.headers)
    assert kept == (set() if onward == "GET" else {"content-type", "idempotency-key"})


def test_a_redirect_is_the_answer_where_a_caller_wants_none() -> None:
    with serve() as end, serve(redirect(end.url("hooks.test", "/end"), 307)) as server, client() as outgoing:
        answer = outgoing.request("POST", server.url(), content=b"data", redirects=False)
    assert (answer.status, len(server.seen), end.seen) == (307, 1, [])


SECRETS = {"Authorization": "Bearer s", "Cookie": "a=s", "X-Api-Key": "s", "X-Hub-Signature-256": "s", "Whatever": "s"}
HARMLESS = {"Accept": "a/b", "Accept-Language": "en", "User-Agent": "u"}


@pytest.mark.parametrize("status", [302, 307])
def test_secrets_do_not_go_to_another_origin_nor_come_back(status: int) -> None:
    back: list[str] = []

    def start(handler: Handler, seen: Seen) -> None:
        if seen.path == "/back":
            fine(handler, seen)
        else:
            handler.reply(status, location=other.url("hooks.test"))

    with (
        serve(lambda handler, _: handler.reply(status, location=back[0])) as other,
        serve(start) as server,
        client() as outgoing,
    ):
        back.append(server.url(path="/back"))
        outgoing.request("POST", server.url(), headers={**SECRETS, **HARMLESS}, content=b"")
        assert set(server.seen[0].headers.values()) >= {*SECRETS.values(), *HARMLESS.values()}
        for seen in (other.seen[0], server.seen[1]):
            assert not set(seen.headers) & {name.lower() for name in SECRETS}
            assert set(seen.headers.values()) >= set(HARMLESS.values())


@pytest.mark.parametrize("host", ["hooks.test", "HOOKS.TEST."])
def test_secrets_stay_within_their_origin(host: str) -> None:
    def answer(handler: Handler, seen: Seen) -> None:
        fine(handler, seen) if seen.path == "/end" else handler.reply(307, location=server.url(host, "/end"))

    with serve(answer) as server, client() as outgoing:
        outgoing.request("POST", server.url(), headers=SECRETS)
        assert server.seen[1].headers["authorization"] == "Bearer s"


def test_another_host_is_another_origin() -> None:
    def answer(handler: Handler, seen: Seen) -> None:
        fine(handler, seen) if seen.path == "/end" else handler.reply(307, location=server.url("other.test", "/end"))

    with serve(answer) as server, client() as outgoing:
        outgoing.request("POST", server.url(), headers=SECRETS)
        assert "authorization" not in server.seen[1].headers


def test_no_cookie_is_kept_for_the_next_call() -> None:
    with serve(lambda handler, _: handler.reply(set_cookie="a=b; Path=/")) as server, client() as outgoing:
        outgoing.request("GET", server.url())
        outgoing.request("GET", server.url())
        assert "cookie" not in server.seen[1].headers


def test_proxies_and_netrc_of_the_environment_are_not_heeded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "netrc").write_text("machine hooks.test login a password b\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    with serve() as proxy:
        for name in ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, f"http://{HERE}:{proxy.port}")
        with serve() as server, client() as outgoing:
            outgoing.request("GET", server.url())
            assert "authorization" not in server.seen[0].headers
        assert not proxy.seen


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *[
            (name, "x")
            for name in ("Host", "hOST", "Content-Length", "Transfer-Encoding", "Connection", "Upgrade", "TE")
        ],
        *[
            (name, "x")
            for name in ("Proxy-Authorization", "Expect", "Accept-Encoding", "", "a b", "a:b", "a\r\nb", "é")
        ],
        *[("X-Own", value) for value in ("a\r\nHost: b", "a\nb", "a\x00b", "é", "\x7f", "a\r\n")],
    ],
)
def test_headers_that_would_change_the_request_are_refused(name: str, value: str) -> None:
    with serve() as server, client() as outgoing:
        with pytest.raises(CallRefused, match="header"):
            outgoing.request("GET", server.url(), headers={name: value})
        assert not server.seen


@pytest.mark.parametrize("method", ["CONNECT", "TRACE", "", "GET /x HTTP/1.1\r\nHost: a\r\n\r\nGET", "G ET"])
def test_only_plain_methods_are_taken(method: str) -> None:
    with serve() as server, client() as outgoing, pytest.raises(CallRefused, match="method"):
        outgoing.request(method, server.url())


def test_an_idempotency_key_is_a_header_too() -> None:
    with client() as outgoing, pytest.raises(CallRefused, match="idempotency-key"):
        outgoing.request("POST", "http://hooks.test/", idempotency_key="a\r\nb: c")


def test_a_name_without_an_address_and_a_port_without_a_server() -> None:
    with socket.create_server((HERE, 0)) as taken:
        port = taken.getsockname()[1]
    with client() as outgoing:
        with pytest.raises(Unreachable, match=r"cannot resolve nowhere\.test"):
            outgoing.request("GET", "http://nowhere.test/")
        with pytest.raises(Unreachable, match=rf"^hooks\.test accepts no connections on port {port}$"):
            outgoing.request("GET", f"http://hooks.test:{port}/")
