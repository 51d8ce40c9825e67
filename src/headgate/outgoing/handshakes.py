"""How a program tells the proxy where to connect: SOCKS5 (RFC 1928, 1929) and HTTP CONNECT (RFC 9110)."""

import base64
import binascii
import socket
import struct
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address

_MOST_HEADERS = 16 << 10
_PLAIN, _PASSWORD, _NONE = 0, 2, 0xFF
_CONNECT = 1
_SOCKS_CODES = {"": 0, "password": 2, "refused": 2, "unreachable": 4}
_HTTP_LINES = {
    "": "200 Connected",
    "password": "407 Proxy Authentication Required",
    "refused": "403 Forbidden",
    "unreachable": "502 Bad Gateway",
}


class BadHandshake(Exception):
    """What came is not understood."""


@dataclass(frozen=True)
class Wanted:
    """Where a connection is to go, and the ticket that was shown, if any."""

    host: str
    port: int
    user: str | None = None
    password: str = ""


def socks_wanted(near: socket.socket) -> Wanted:
    """What a SOCKS5 client asks for, once its first byte was read."""
    methods = _exactly(near, _exactly(near, 1)[0])
    user, password = None, ""
    if _PLAIN in methods:
        near.sendall(bytes([5, _PLAIN]))
    elif _PASSWORD in methods:
        near.sendall(bytes([5, _PASSWORD]))
        _exactly(near, 1)
        user, password = _text(near), _text(near)
        near.sendall(bytes([1, 0]))
    else:
        near.sendall(bytes([5, _NONE]))
        raise BadHandshake
    version, command, _, kind = _exactly(near, 4)
    if version != 5 or command != _CONNECT:
        near.sendall(bytes([5, 7, 0, 1]) + bytes(6))
        raise BadHandshake
    if kind == 1:
        host = str(IPv4Address(_exactly(near, 4)))
    elif kind == 4:
        host = str(IPv6Address(_exactly(near, 16)))
    elif kind == 3:
        host = _text(near)
    else:
        raise BadHandshake
    return Wanted(host, struct.unpack("!H", _exactly(near, 2))[0], user, password)


def answer_socks(near: socket.socket, trouble: str, _: str) -> None:
    """Say what came of it, as far as there is a number for it."""
    near.sendall(bytes([5, _SOCKS_CODES[trouble], 0, 1]) + bytes(6))


def http_wanted(near: socket.socket, first: bytes) -> Wanted:
    """What an HTTP client asks for. It must show a ticket."""
    head = first
    while not head.endswith(b"\r\n\r\n"):
        # One at a time: what follows belongs to the connection itself.
        more = near.recv(1)
        if not more or len(head) > _MOST_HEADERS:
            raise BadHandshake
        head += more
    line, *headers = head.decode("latin-1").split("\r\n")
    method, _, rest = line.partition(" ")
    host, colon, port = rest.partition(" ")[0].rpartition(":")
    if method != "CONNECT" or not colon or not port.isdecimal() or not 0 < int(port) < 1 << 16:
        near.sendall(b"HTTP/1.1 405 Only CONNECT\r\nContent-Length: 0\r\n\r\n")
        raise BadHandshake
    user, password = _ticket(headers)
    return Wanted(host.strip("[]"), int(port), user, password)


def _ticket(headers: list[str]) -> tuple[str, str]:
    for header in headers:
        name, _, value = header.partition(":")
        if name.lower() == "proxy-authorization":
            try:
                shown = base64.b64decode(value.strip().removeprefix("Basic "), validate=True).decode()
            except (binascii.Error, ValueError):
                return "", ""
            user, _, password = shown.partition(":")
            return user, password
    return "", ""


def answer_http(near: socket.socket, trouble: str, why: str) -> None:
    """Say what came of it, and why."""
    lines = [f"HTTP/1.1 {_HTTP_LINES[trouble]}"]
    body = why.encode() if trouble else b""
    if trouble:
        lines += ["Content-Type: text/plain; charset=utf-8", f"Content-Length: {len(body)}", "Connection: close"]
    if trouble == "password":
        lines.append('Proxy-Authenticate: Basic realm="headgate"')
    near.sendall("\r\n".join([*lines, "", ""]).encode() + body)


def _exactly(near: socket.socket, size: int) -> bytes:
    found = b""
    while len(found) < size:
        more = near.recv(size - len(found))
        if not more:
            raise BadHandshake
        found += more
    return found


def _text(near: socket.socket) -> str:
    try:
        return _exactly(near, _exactly(near, 1)[0]).decode("ascii")
    except UnicodeDecodeError:
        raise BadHandshake from None
