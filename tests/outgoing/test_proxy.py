"""The proxy for programs that connect by themselves: declared hosts alone, each judged as all calls are."""

import base64
import errno
import os
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from headgate.execution.sandbox import relay
from headgate.kit.call_errors import CallRefused, Unreachable
from headgate.outgoing.proxy import Egress, ProxyTicket, authorization


@contextmanager
def echo() -> Iterator[int]:
    """A server that sends back what it gets, in capitals."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    near, _ = listener.accept()
                except OSError:
                    return
                threading.Thread(target=answer, args=(near,), daemon=True).start()

        def answer(near: socket.socket) -> None:
            with near:
                while data := near.recv(1 << 16):
                    near.sendall(data.upper())

        threading.Thread(target=serve, daemon=True).start()
        yield int(listener.getsockname()[1])
        listener.shutdown(socket.SHUT_RDWR)


HUNG_UP = {errno.ECONNRESET, errno.EPIPE, errno.ENOTCONN}
"""What a client sees of a proxy that did not wait until all was said."""
NAMES = {
    "db.example.com": ["93.184.216.34"],
    "inner.example.com": ["10.1.2.3"],
    "mixed.example.com": ["93.184.216.34", "127.0.0.1"],
}


class Proxied:
    """A proxy on a port, and its clients."""

    def __init__(self, *allow: str, always: dict[tuple[str, int], tuple[str, int]] | None = None) -> None:
        self.names = {**NAMES, "local.example.com": ["127.0.0.1"]}
        self.egress = Egress(allow, always, self._resolve)
        self._open: list[socket.socket] = []
        listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = listener.getsockname()[1]
        self.egress.serve(listener)

    def _resolve(self, name: str) -> list[str]:
        if name not in self.names:
            raise OSError
        return self.names[name]

    def dial(self) -> socket.socket:
        self._open.append(socket.create_connection(("127.0.0.1", self.port), 10))
        return self._open[-1]

    def close(self) -> None:
        self.egress.close()
        for one in self._open:
            one.close()

    def socks(self, host: str, port: int, ticket: ProxyTicket | None = None) -> tuple[int, socket.socket]:
        """What the proxy answers to SOCKS5, and the connection."""
        near = self.dial()
        if ticket is None:
            near.sendall(b"\x05\x02\x00\x02")
            assert near.recv(2) == b"\x05\x00"
        else:
            near.sendall(b"\x05\x01\x02")
            assert near.recv(2) == b"\x05\x02"
            user, password = ticket.user.encode(), ticket.password.encode()
            near.sendall(b"\x01" + bytes([len(user)]) + user + bytes([len(password)]) + password)
            assert near.recv(2) == b"\x01\x00"
        try:
            place = b"\x01" + socket.inet_aton(host) if host[0].isdigit() else None
        except OSError:
            place = None
        place = place or b"\x03" + bytes([len(host)]) + host.encode()
        near.sendall(b"\x05\x01\x00" + place + struct.pack("!H", port))
        answer = near.recv(10)
        assert len(answer) == 10
        return answer[1], near

    def http(
        self, host: str, port: int, ticket: ProxyTicket | None = None, shown: str | None = None
    ) -> tuple[str, socket.socket]:
        """What the proxy answers to CONNECT, and the connection."""
        near = self.dial()
        header = shown or (authorization(ticket) if ticket else None)
        lines = [f"CONNECT {host}:{port} HTTP/1.1", f"Host: {host}:{port}"]
        lines += [f"Proxy-Authorization: {header}"] if header else []
        near.sendall("\r\n".join([*lines, "", ""]).encode())
        answer = b""
        while b"\r\n\r\n" not in answer:
            answer += near.recv(1)
        return answer.decode(), near


@pytest.fixture
def proxied() -> Iterator[Proxied]:
    found = Proxied("127.0.0.1")
    yield found
    found.close()


def says(near: socket.socket, text: bytes = b"hello") -> bytes:
    with near:
        near.sendall(text)
        return near.recv(100)


def test_it_leads_to_what_is_declared_while_it_is(proxied: Proxied) -> None:
    with echo() as port:
        with proxied.egress.admit([("local.example.com", port)]) as ticket:
            code, near = proxied.socks("local.example.com", port)
            assert (code, says(near)) == (0, b"HELLO")
            code, near = proxied.socks("local.example.com", port, ticket)
            assert (code, says(near)) == (0, b"HELLO")
            answer, near = proxied.http("local.example.com", port, ticket)
            assert answer == "HTTP/1.1 200 Connected\r\n\r\n"
            assert says(near) == b"HELLO"
            # A driver may have looked the name up itself.
            code, near = proxied.socks("127.0.0.1", port)
            assert (code, says(near)) == (0, b"HELLO")
            assert ticket.refused == ticket.failed == []
        code, near = proxied.socks("local.example.com", port)
        assert code == 2


def test_what_is_not_declared_is_refused(proxied: Proxied) -> None:
    with echo() as port, proxied.egress.admit([("local.example.com", port)]) as ticket:
        for host, other in (
            ("db.example.com", port),
            ("local.example.com", port + 1),
            ("127.0.0.1", port + 1),
            ("127.0.0.2", port),
        ):
            code, _near = proxied.socks(host, other)
            assert code == 2, (host, other)
        assert len(ticket.refused) == 4
        assert "did not declare" in ticket.refused[0]


def test_work_that_shows_its_ticket_reaches_its_own_hosts_alone(proxied: Proxied) -> None:
    with (
        echo() as port,
        echo() as other,
        proxied.egress.admit([("local.example.com", port)]) as mine,
        proxied.egress.admit([("local.example.com", other)]) as theirs,
    ):
        assert proxied.http("local.example.com", other, mine)[0].startswith("HTTP/1.1 403")
        assert (len(mine.refused), theirs.refused) == (1, [])
        code, _near = proxied.socks("local.example.com", other, mine)
        assert code == 2
        assert proxied.http("local.example.com", other, theirs)[0].startswith("HTTP/1.1 200")


def test_http_needs_a_ticket(proxied: Proxied) -> None:
    with echo() as port, proxied.egress.admit([("local.example.com", port)]) as ticket:
        wrong = base64.b64encode(f"{ticket.user}:guessed".encode()).decode()
        for shown in (None, "Basic !!!", f"Basic {wrong}", "Bearer x"):
            answer, _ = proxied.http("local.example.com", port, shown=shown)
            assert answer.startswith("HTTP/1.1 407")
            assert "Proxy-Authenticate" in answer
        stale = ticket
    answer, _near = proxied.http("local.example.com", port, stale)
    assert answer.startswith("HTTP/1.1 407")


@pytest.mark.parametrize(
    "host",
    [
        "10.1.2.3",
        "inner.example.com",
        "127.0.0.1",
        "local.example.com",
        "mixed.example.com",
        "169.254.169.254",
        "localhost",
        "0x7f000001",
        "::1",
        "::ffff:10.1.2.3",
    ],
)
def test_a_private_address_is_refused_by_whatever_name_it_goes(host: str) -> None:
    proxied = Proxied()
    try:
        with pytest.raises((CallRefused, Unreachable)) as refused, proxied.egress.admit([(host, 5432)]):
            pass
        if host != "localhost":
            assert "outgoing.allow" in str(refused.value)
            assert "10.1.2.3" not in str(refused.value) or host.endswith("10.1.2.3"), "what a name leads to is not told"
    finally:
        proxied.close()


def test_a_name_that_turns_to_a_private_address_after_it_was_judged_is_refused(proxied: Proxied) -> None:
    proxied = Proxied()
    with echo() as port, proxied.egress.admit([("db.example.com", port)]) as ticket:
        proxied.names["db.example.com"] = ["127.0.0.1"]
        code, _near = proxied.socks("db.example.com", port)
        assert code == 2
        assert "leads to an address that is not public" in ticket.refused[0]
        assert "outgoing.allow" in ticket.refused[0]
    proxied.close()


def test_what_does_not_answer_is_said(proxied: Proxied) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with proxied.egress.admit([("local.example.com", port)]) as ticket:
        code, near = proxied.socks("local.example.com", port)
        assert code == 4
        assert ticket.failed == [f"local.example.com:{port} cannot be reached: Connection refused"]
        answer, near = proxied.http("local.example.com", port, ticket)
        with near:
            assert answer.startswith("HTTP/1.1 502")
            assert near.recv(200).decode() == ticket.failed[0]
        del proxied.names["local.example.com"]
        proxied.socks("local.example.com", port)
        assert "cannot resolve" in ticket.failed[-1]
    with pytest.raises(Unreachable, match="cannot resolve"), proxied.egress.admit([("nowhere.example.com", 1)]):
        pass


def test_parts_of_ours_are_reached_by_the_address_that_is_asked_for() -> None:
    with echo() as port:
        proxied = Proxied(always={("127.0.0.9", 443): ("127.0.0.1", port)})
        code, near = proxied.socks("127.0.0.9", 443)
        assert (code, says(near)) == (0, b"HELLO")
        code, near = proxied.socks("127.0.0.1", port)
        assert code == 2
        proxied.close()


def test_much_data_passes_both_ways_and_ends_pass_too(proxied: Proxied) -> None:
    with echo() as port, proxied.egress.admit([("local.example.com", port)]):
        _, near = proxied.socks("local.example.com", port)
        sent = b"a" * (8 << 20)
        threading.Thread(target=lambda: (near.sendall(sent), near.shutdown(socket.SHUT_WR)), daemon=True).start()
        got = 0
        while data := near.recv(1 << 16):
            assert set(data) == {ord("A")}
            got += len(data)
        assert got == len(sent)


@pytest.mark.parametrize(
    "sent",
    [
        b"\x04\x01",
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x05\x01\x01",
        b"\x05\x01\x00\x05\x02\x00\x01" + bytes(6),
        b"CONNECT x HTTP/1.1\r\n\r\n",
        b"C" * 40_000,
        b"\x05\x01\x00\x05\x01\x00\x03\x02\xff\xff\x00\x01",
        b"",
    ],
)
def test_what_is_not_understood_ends(proxied: Proxied, sent: bytes) -> None:
    with socket.create_connection(("127.0.0.1", proxied.port), 60) as near:
        try:
            near.sendall(sent)
            near.shutdown(socket.SHUT_WR)
            while near.recv(1000):
                pass
        except OSError as error:
            if error.errno not in HUNG_UP:
                raise


def test_who_may_not_come_is_not_answered() -> None:
    egress = Egress([])
    listener = socket.create_server(("127.0.0.1", 0))
    egress.serve(listener, lambda _: False)
    with socket.create_connection(listener.getsockname(), 5) as near:
        assert near.recv(1) == b""
    egress.close()


# Connections that a program in a sandbox hands over


@contextmanager
def handed(proxied: Proxied, folder: Path) -> Iterator[tuple[int, str]]:
    """The port of a relay that hands its connections to the proxy, and the socket by which it does."""
    path = str(folder / "way")
    proxied.egress.serve(relay.listen_unix(path), taken=relay.taken)
    with relay.listen("127.0.0.1", 0) as listener:
        relay.hand_over(listener, path)
        yield int(listener.getsockname()[1]), path
        listener.shutdown(socket.SHUT_RDWR)


def test_a_connection_that_is_handed_over_is_judged_as_any(proxied: Proxied, tmp_path: Path) -> None:
    with echo() as port, handed(proxied, tmp_path) as (proxied.port, _), proxied.egress.admit([("127.0.0.1", port)]):
        for _ in range(3):
            code, near = proxied.socks("127.0.0.1", port)
            assert code == 0
            near.sendall(b"hello" * 50_000)
            near.shutdown(socket.SHUT_WR)
            found = b""
            while data := near.recv(1 << 16):
                found += data
            assert found == b"HELLO" * 50_000
        assert proxied.socks("127.0.0.1", port + 1)[0] != 0
        assert proxied.socks("inner.example.com", port)[0] != 0


@pytest.mark.parametrize("what", ["nothing", "a file", "a pipe", "a Unix socket", "a datagram socket"])
def test_what_is_handed_over_and_is_no_connection_is_dropped(proxied: Proxied, tmp_path: Path, what: str) -> None:
    ends = [*os.pipe(), os.open(__file__, os.O_RDONLY)]
    one, other = socket.socketpair()
    datagram = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        handles = {
            "nothing": [],
            "a file": [ends[2]],
            "a pipe": [ends[1]],
            "a Unix socket": [one.fileno()],
            "a datagram socket": [datagram.fileno()],
        }[what]
        with echo() as port, handed(proxied, tmp_path) as (proxied.port, path), relay.unix(path)() as giver:
            socket.send_fds(giver, [b"\0"], handles)
            assert giver.recv(1) == b""
            one.close()
            os.close(ends.pop(1))
            assert other.recv(1) == b""
            assert os.read(ends[0], 1) == b""
            with proxied.egress.admit([("127.0.0.1", port)]):
                assert proxied.socks("127.0.0.1", port)[0] == 0
    finally:
        for end in ends:
            os.close(end)
        for one_of in (one, other, datagram):
            one_of.close()
