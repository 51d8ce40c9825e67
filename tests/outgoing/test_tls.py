"""TLS: the name is what counts, although the connection goes to an address that was judged before."""

from contextlib import closing
from pathlib import Path

import pytest

from headgate.kit.call_errors import CallRefused, Unreachable
from headgate.outgoing.client import Outgoing
from headgate.settings.outgoing import OutgoingSettings
from tests.outgoing import HERE, HOOKS, Authority, client, redirect, serve


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def test_tls_checks_and_sends_the_name_although_the_address_is_pinned(authority: Authority) -> None:
    asked: list[str | None] = []
    context = authority.server("hooks.test", HERE)
    context.sni_callback = lambda _, name, __: asked.append(name)
    with serve(tls=context) as server, client(tls=authority.trusted()) as outgoing:
        assert outgoing.request("POST", server.url("hooks.test", scheme="https"), json={}).status == 200
        assert outgoing.request("GET", server.url("HOOKS.test.", scheme="https")).status == 200
        assert outgoing.request("GET", server.url(HERE, scheme="https")).status == 200
    assert asked == ["hooks.test", None]


def test_a_certificate_for_another_name_is_not_taken(authority: Authority) -> None:
    with serve(tls=authority.server("other.test")) as server, client(tls=authority.trusted()) as outgoing:
        for host in ("hooks.test", HERE):
            with pytest.raises(Unreachable, match=rf"no safe connection to {host}: .*mismatch"):
                outgoing.request("GET", server.url(host, scheme="https"))
        assert outgoing.request("GET", server.url("other.test", scheme="https")).status == 200
        assert len(server.seen) == 1


def test_an_authority_that_nobody_knows_is_not_taken(authority: Authority) -> None:
    outgoing = Outgoing(OutgoingSettings(allow=["hooks.test"]), resolver=HOOKS)
    with serve(tls=authority.server("hooks.test")) as server, closing(outgoing):
        with pytest.raises(Unreachable, match=r"no safe connection to hooks\.test: unable to get local issuer"):
            outgoing.request("GET", server.url("hooks.test", scheme="https"))
        assert not server.seen


def test_https_is_refused_where_no_tls_is_spoken() -> None:
    with serve() as server, client() as outgoing, pytest.raises(Unreachable, match="no TLS"):
        outgoing.request("GET", server.url("hooks.test", scheme="https"))


def test_a_redirect_from_https_to_http_is_refused(authority: Authority) -> None:
    context = authority.server("hooks.test")
    with serve() as plain, serve(redirect(plain.url()), tls=context) as server:
        with client(tls=authority.trusted()) as outgoing, pytest.raises(CallRefused, match=r"hooks\.test: .* by http"):
            outgoing.request("GET", server.url(scheme="https"))
        assert server.seen
        assert not plain.seen


def test_a_redirect_from_http_to_https_is_followed(authority: Authority) -> None:
    context = authority.server("hooks.test")
    with serve(tls=context) as safe, serve(redirect(safe.url(scheme="https", path="/s"), 308)) as server:
        with client(tls=authority.trusted()) as outgoing:
            assert outgoing.request("POST", server.url(), content=b"x").body == b"/s"
        assert safe.seen[0].body == b"x"
