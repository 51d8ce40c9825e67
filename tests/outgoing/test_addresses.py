"""Which URLs may be saved: hosts in every spelling, addresses of every kind, and what the setting allows."""

import json
import re
import socket
import threading
import time
import tomllib
from ipaddress import ip_address, ip_network
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.kit.call_errors import CallRefused, OutgoingError, TooLarge, Unreachable
from headgate.kit.hosts import read_host
from headgate.kit.urls import MAX_LENGTH, read_url
from headgate.outgoing.addresses import Allowed, fault, meant
from headgate.outgoing.client import check_url
from headgate.outgoing.network import system_resolver
from headgate.settings.outgoing import OutgoingSettings
from headgate.settings.settings import BadSettings, load
from tests.outgoing import PUBLIC, Names

NOTHING = OutgoingSettings()


def allowing(*entries: str) -> OutgoingSettings:
    return OutgoingSettings(allow=list(entries))


NOT_PUBLIC = {
    "loopback": ["127.0.0.1", "127.255.255.254", "::1"],
    "unspecified": ["0.0.0.0", "0.1.2.3", "::"],  # noqa: S104 - never listened on
    "private": ["10.0.0.5", "172.16.0.1", "172.31.255.255", "192.168.1.1", "fc00::1", "fdff::1", "fec0::1"],
    "link-local": ["169.254.0.1", "169.254.170.2", "fe80::1", "febf::1"],
    "metadata": ["169.254.169.254", "100.100.100.200", "168.63.129.16", "192.0.0.192", "fd00:ec2::254", "fd20:ce::254"],
    "carrier": ["100.64.0.1", "100.127.255.255"],
    "multicast": ["224.0.0.1", "224.0.1.1", "239.255.255.255", "ff02::1", "ff0e::1"],
    "documentation": ["192.0.2.1", "198.51.100.1", "203.0.113.1", "2001:db8::1", "3fff::1"],
    "measurements": ["198.18.0.1", "198.19.255.255", "2001:2::1"],
    "tunnel": [
        *("2002:7f00:1::1", "2002:808:808::1", "2001:0:4136:e378:8000:63bf:3fff:fdd2", "192.88.99.1"),
        *("64:ff9b:1::a00:5", "2606:4700::5efe:7f00:1", "2606:4700::200:5efe:a00:5"),
    ],
    "reserved": [
        *("192.0.0.1", "192.0.0.9", "240.0.0.1", "255.255.255.255", "2001:10::1", "2001:20::1", "100::1", "5f00::1"),
        *("4000::1", "::10.0.0.5", "::ffff:0:10.0.0.5", "1::1", "8000::1", "fe00::1"),
    ],
}
PUBLIC_ADDRESSES = [
    *("1.1.1.1", "8.8.8.8", PUBLIC, "11.0.0.1", "100.63.255.255", "100.128.0.1", "172.15.255.255", "172.32.0.1"),
    *("126.255.255.255", "128.0.0.1", "169.253.255.255", "169.255.0.1", "192.0.1.1", "192.167.255.255"),
    *("223.255.255.255", "2606:4700:4700::1111", "2a00:1450:4001:800::200e", "2001:4860:4860::8888", "2001:200::1"),
]


@pytest.mark.parametrize(("kind", "address"), [(kind, one) for kind, found in NOT_PUBLIC.items() for one in found])
def test_what_is_not_public_is_refused_and_named(kind: str, address: str) -> None:
    host = f"[{address}]" if ":" in address else address
    with pytest.raises(CallRefused) as refused:
        check_url(f"https://{host}/hook", NOTHING)
    usual = str(ip_address(address))
    assert re.search(rf"{re.escape(usual)}(?: is|,) (?:an?|the) [^.]*{kind}", str(refused.value))
    check_url(f"https://{host}/hook", allowing(address))


@pytest.mark.parametrize("address", PUBLIC_ADDRESSES)
def test_what_is_public_is_called(address: str) -> None:
    check_url(f"https://{f'[{address}]' if ':' in address else address}/", NOTHING)


@pytest.mark.parametrize(
    "private", ["127.0.0.1", "10.0.0.5", "169.254.169.254", "100.64.0.1", "224.0.0.1", "192.0.2.1"]
)
@pytest.mark.parametrize("inside", ["::ffff:{}", "64:ff9b::{}"])
def test_an_address_inside_another_is_judged_as_what_it_is(private: str, inside: str) -> None:
    url = f"http://[{inside.format(private)}]/"
    with pytest.raises(CallRefused, match=re.escape(private)) as refused:
        check_url(url, NOTHING)
    assert str(fault(ip_address(private))) in str(refused.value)
    check_url(url, allowing(private))
    check_url(f"http://[{inside.format('8.8.8.8')}]/", NOTHING)


@given(st.integers(0, 2**32 - 1))
def test_no_ipv4_address_becomes_public_by_being_wrapped(number: int) -> None:
    v4 = ip_address(number)
    expected = fault(v4)
    assert (expected is None) <= (v4.is_global and not v4.is_multicast and not v4.is_private)
    for prefix in ("::ffff:0:0/96", "64:ff9b::/96"):
        assert fault(ip_network(prefix)[number]) == expected
    for wrapped in (f"2002:{number >> 16:x}:{number & 0xFFFF:x}::1", f"::{v4}", f"2001::{v4}", f"fe80::5efe:{v4}"):
        assert fault(ip_address(wrapped)) is not None


@given(st.integers(0, 2**128 - 1))
def test_only_global_unicast_is_public(number: int) -> None:
    address = ip_address(number) if number >= 2**32 else ip_address(number + 2**32)
    if fault(address) is None and meant(address) == address:
        assert address in ip_network("2000::/3")
        assert address.is_global


SPELLINGS = {
    "127.0.0.1": [
        *("127.1", "127.0.1", "2130706433", "0x7f000001", "0x7f.1", "0X7F.0x0.0.1", "0177.0.0.1"),
        *("017700000001", "127.0.0.1.", "0x7f.0.0.0x1", "0177.1", "00000177.0.0.01", "１２７.0.0.1", "127。0。0。1"),
        *("①②⑦.0.0.1", "127．0｡0．1", "[::ffff:7f00:1]", "[::FFFF:127.0.0.1]", "[0:0:0:0:0:ffff:127.0.0.1]"),
    ],
    "0.0.0.0": ["0", "0x0", "00", "0x", "0.0", "0x.0x"],  # noqa: S104 - never listened on
    "169.254.169.254": ["2852039166", "0xa9fea9fe", "0xA9.0xFE.0xA9.0xFE", "0251.0376.0251.0376", "169.254.43518"],
    "255.255.255.255": ["4294967295", "0xffffffff", "037777777777"],
    "::1": ["[0:0:0:0:0:0:0:1]", "[0000::0001]", "[::0.0.0.1]"],
    "8.8.8.8": ["0x08080808", "134744072", "010.8.8.010", "[::ffff:8.8.8.8]"],
}


@pytest.mark.parametrize(("usual", "odd"), [(usual, odd) for usual, found in SPELLINGS.items() for odd in found])
def test_odd_spellings_are_understood(usual: str, odd: str) -> None:
    target = read_url(f"http://{odd}:8080/x")
    assert target.host == ip_address(usual)
    assert target.url.raw_host == usual.encode()
    if usual == "8.8.8.8":
        return check_url(f"http://{odd}/", NOTHING)
    with pytest.raises(CallRefused, match=re.escape(usual)) as refused:
        check_url(f"http://{odd}/", NOTHING)
    assert odd.strip("[]") in str(refused.value)
    return check_url(f"http://{odd}/", allowing(usual))


@pytest.mark.parametrize(
    "host",
    [
        *(
            "256.1.1.1",
            "1.2.3.4.5",
            "1.2.3.4.0",
            "1.2.3.256",
            "4294967296",
            "0x100000000",
            "08.1.1.1",
            "0x7g.1",
            "1..2",
        ),
        *("a.1", "1_0.1.1.1"),
        *("0o17.1.1.1", "1.256.1", "127.0.0.1..", "0xzz.1", "1.1.0b1.1", "+1.1.1.1", "-1", "1.2.65536"),
        *("[127.0.0.1]", "[::1", "::1]", "[::g]", "[]", "[::1]x", "[v1.a]", "[1:2]", "[::ffff:0177.0.0.1]", "[::１]"),
        *("[fe80::1%25eth0]", "[fe80::1%eth0]", "[::1%25lo]", "[2606:4700::1%251]"),
        *("%31%32%37.0.0.1", "a%2eb", "a b", "a,b", "a;b", "a&b", "-a.example", "a-.example", "a..example"),
        *(".example", "."),
        *("a" * 64 + ".example", ".".join(["a" * 60] * 5), "ex\u00adample.com", "a／b", "a＠b", "a：80", "a＃b"),
        *("℀.example", "é" * 70),
        *("", "*.example", "a'b", "a|b", "a<b>", '"', "xn--\u00e9.example"),
    ],
)
def test_whatever_is_no_host_is_refused(host: str) -> None:
    with pytest.raises(CallRefused):
        check_url(f"http://{host}/", NOTHING)


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        *[("EXAMPLE.com", "example.com"), ("example.com.", "example.com"), ("my_service", "my_service")],
        *[("bücher.example", "xn--bcher-kva.example"), ("BÜCHER.example", "xn--bcher-kva.example")],
        *[("straße.example", "xn--strae-oqa.example"), ("例え。テスト", "xn--r8jz45g.xn--zckzah")],
        *[("ｅxample.com", "example.com"), ("1.example", "1.example"), ("0x7f.example", "0x7f.example")],
    ],
)
def test_names_are_put_in_their_usual_spelling(typed: str, name: str) -> None:
    assert read_host(typed) == name
    assert read_url(f"https://{typed}/").url.raw_host == name.encode()


@pytest.mark.parametrize(
    "name", ["localhost", "LOCALHOST", "localhost.", "localhost。", "ｌocalhost", "a.localhost", "x.y.localhost."]
)
def test_names_that_mean_this_machine_are_refused_without_asking(name: str) -> None:
    usual = read_host(name)
    assert isinstance(usual, str)
    with pytest.raises(CallRefused, match=rf"{usual} leads .*\[\"{usual}\"\]"):
        check_url(f"http://{name}/", NOTHING)
    for entry in (usual, "127.0.0.0/8", "::1"):
        check_url(f"http://{name}/", allowing(entry))
    check_url("http://localhost.example/", NOTHING)
    check_url("http://notlocalhost/", NOTHING)


@pytest.mark.parametrize(
    ("url", "says"),
    [
        *[
            (url, "http://")
            for url in ("ftp://a.example/", "file:///etc/passwd", "gopher://a/", "javascript:alert(1)", "")
        ],
        *[(url, "http://") for url in ("a.example", "//a.example/", "http:a.example", "http:/a.example", "httpx://a/")],
        *[
            (f"http://{who}@a.example/", "user name or password")
            for who in ("u", "u:p", "", ":", "a.example:80", "%40")
        ],
        *[
            (f"http://a{bad}.example/", "spaces")
            for bad in (" ", "\t", "\n", "\r", "\x00", "\\", "\u2028", "\ud800", "\x7f")
        ],
        *[(url, "spaces") for url in (" http://a.example/", "http://a.example/\n", "http://a.example\\@10.0.0.5/")],
        *[
            (f"http://a.example:{port}/", "port")
            for port in ("0", "65536", "99999999", "80:80", "-1", "٣", "8o", "+80")
        ],
        *[(url, "host") for url in ("http://", "https:///path", "http://:80/", "http://?q", "http://#f")],
        ("https://a.example/" + "a" * (MAX_LENGTH - 17), str(MAX_LENGTH)),
    ],
)
def test_a_url_that_could_be_read_in_two_ways_is_refused_and_says_why(url: str, says: str) -> None:
    with pytest.raises(CallRefused, match=re.escape(says)) as refused:
        check_url(url, allowing("0.0.0.0/0", "::/0"))
    assert "u:p" not in str(refused.value)


def test_a_url_stays_what_it_was() -> None:
    assert str(read_url("HTTPS://Example.com/a/b?c=d&e=%20#part").url) == "https://example.com/a/b?c=d&e=%20"
    assert str(read_url("http://example.com:80?q").url) == "http://example.com/?q"
    assert str(read_url("https://[2606:4700::1]:444").url) == "https://[2606:4700::1]:444/"
    assert read_url("https://example.com/").origin == ("https", "example.com", 443)
    assert read_url("https://example.com/").origin == read_url("https://EXAMPLE.com.:443/x").origin
    assert read_url("https://example.com/").origin != read_url("http://example.com:443/").origin
    assert len(str(read_url("https://a.example/" + "a" * (MAX_LENGTH - 18)).url)) == MAX_LENGTH


@pytest.mark.parametrize(
    "entry", ["10.0.0.5", "10.0.0.0/24", "10.0.0.77/24", "0xA000005", " 10.0.0.5 ", "::ffff:10.0.0.5"]
)
def test_addresses_are_allowed_alone_or_by_network(entry: str) -> None:
    check_url("http://10.0.0.5/", allowing(entry))
    with pytest.raises(CallRefused):
        check_url("http://10.0.1.5/", allowing(entry))


@pytest.mark.parametrize("entry", ["fd12::/16", "[fd12::5]", "fd12::5", "FD12:0::5"])
def test_so_are_those_of_ipv6(entry: str) -> None:
    check_url("http://[fd12::5]/", allowing(entry))
    with pytest.raises(CallRefused):
        check_url("http://[fd13::5]/", allowing(entry))


@pytest.mark.parametrize(
    "entry", ["", "https://a.example", "a.example:80", "*.example", "10.0.0.0/33", "a/8", "a b", "1.2.3.4.5"]
)
def test_an_entry_that_would_never_match_is_an_error(entry: str) -> None:
    with pytest.raises(BadSettings, match=r"outgoing\.allow"):
        Allowed.of(["a.example", entry])


def test_a_name_is_judged_by_every_address_it_leads_to() -> None:
    names = Names(
        public_test=[[PUBLIC, "2606:4700::1"]], private_test=[["10.0.0.5"]], mixed_test=[[PUBLIC, "10.0.0.5"]]
    )
    check_url("https://public.test/", NOTHING, resolve=True, resolver=names)
    check_url("https://private.test/", NOTHING, resolver=names)
    for name in ("private.test", "mixed.test"):
        with pytest.raises(CallRefused, match=name) as refused:
            check_url(f"https://{name}/", NOTHING, resolve=True, resolver=names)
        assert "10.0" not in str(refused.value)
        for entry in (name, name.upper(), f"{name}.", "10.0.0.5", "10.0.0.0/8"):
            check_url(f"https://{name}/", allowing(entry), resolve=True, resolver=names)
        for entry in ("other.test", f"a.{name}", "10.0.0.6", "11.0.0.0/8"):
            with pytest.raises(CallRefused):
                check_url(f"https://{name}/", allowing(entry), resolve=True, resolver=names)
    with pytest.raises(Unreachable, match=r"nowhere\.test"):
        check_url("https://nowhere.test/", NOTHING, resolve=True, resolver=names)


@pytest.mark.parametrize("answer", ["fe80::1%eth0", "::ffff:10.0.0.5", "64:ff9b::a00:5", "::1", "2002:a00:5::1"])
def test_answers_in_ipv6_are_judged_too(answer: str) -> None:
    with pytest.raises(CallRefused):
        check_url("https://a.test/", NOTHING, resolve=True, resolver=Names(a_test=[[answer]]))


def test_an_answer_may_be_empty() -> None:
    with pytest.raises(Unreachable):
        check_url("https://a.test/", NOTHING, resolve=True, resolver=lambda _: [])


def test_a_resolver_that_hangs_is_not_waited_for() -> None:
    over = threading.Event()

    def hanging(_: str) -> list[str]:
        over.wait(60)
        return [PUBLIC]

    settings, started = OutgoingSettings(timeout_seconds=0.2), time.monotonic()
    with pytest.raises(Unreachable, match=r"slow\.test .*0\.2 seconds"):
        check_url("https://slow.test/", settings, resolve=True, resolver=hanging)
    assert time.monotonic() - started < 30
    over.set()


def test_the_system_knows_this_machine() -> None:
    assert "127.0.0.1" in system_resolver("localhost")
    with pytest.raises(socket.gaierror):
        system_resolver("nowhere.invalid")


@pytest.mark.parametrize(
    "url", ["http://10.0.0.5/", "http://[fd00::5]/", "http://0x7f.1/", "http://localhost/", "http://a.test/"]
)
def test_following_the_advice_of_a_refusal_works(url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    names = Names(a_test=[["10.0.0.5"]], localhost=[["127.0.0.1", "::1"]])
    with pytest.raises(CallRefused) as refused:
        check_url(url, load().outgoing, resolve=True, resolver=names)
    found = re.search(r" outgoing\.allow = (\S+) \((HEADGATE_\w+)='(\S+)'\)$", str(refused.value))
    assert found
    assert tomllib.loads(f"allow = {found[1]}")["allow"] == json.loads(found[3])
    monkeypatch.setenv(found[2], found[3])
    check_url(url, load().outgoing, resolve=True, resolver=names)


def test_all_errors_are_of_one_kind() -> None:
    assert {CallRefused, Unreachable, TooLarge} == set(OutgoingError.__subclasses__())
