"""The protocols of the egress proxy: SOCKS5 (RFC 1928, 1929) and HTTP CONNECT (RFC 9110)."""

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


class ProtocolError(Exception):
    """The client sent something that is not SOCKS5 or HTTP CONNECT."""


@dataclass(frozen=True)
class ConnectRequest:
    """The host and port that a client asks for, and its credentials, if any."""

    host: str
    port: int
    user: str | None = None
    password: str = ""


def read_socks_request(near: socket.socket) -> ConnectRequest:
    """Read the request of a SOCKS5 client, after its first byte."""
    methods = _read_exactly(near, _read_exactly(near, 1)[0])
    user, password = None, ""
    if _PLAIN in methods:
        near.sendall(bytes([5, _PLAIN]))
    elif _PASSWORD in methods:
        near.sendall(bytes([5, _PASSWORD]))
        _read_exactly(near, 1)
        user, password = _read_text(near), _read_text(near)
        near.sendall(bytes([1, 0]))
    else:
        near.sendall(bytes([5, _NONE]))
        raise ProtocolError
    version, command, _, kind = _read_exactly(near, 4)
    if version != 5 or command != _CONNECT:
        near.sendall(bytes([5, 7, 0, 1]) + bytes(6))
        raise ProtocolError
    if kind == 1:
        host = str(IPv4Address(_read_exactly(near, 4)))
    elif kind == 4:
        host = str(IPv6Address(_read_exactly(near, 16)))
    elif kind == 3:
        host = _read_text(near)
    else:
        raise ProtocolError
    return ConnectRequest(host, struct.unpack("!H", _read_exactly(near, 2))[0], user, password)


def send_socks_reply(near: socket.socket, trouble: str, _: str) -> None:
    """Reply with the SOCKS5 code of the result."""
    near.sendall(bytes([5, _SOCKS_CODES[trouble], 0, 1]) + bytes(6))


def read_http_request(near: socket.socket, first: bytes) -> ConnectRequest:
    """Read the CONNECT request of an HTTP client. It must send credentials."""
    head = first
    while not head.endswith(b"\r\n\r\n"):
        # One byte at a time: what follows the head belongs to the tunnel.
        more = near.recv(1)
        if not more or len(head) > _MOST_HEADERS:
            raise ProtocolError
        head += more
    line, *headers = head.decode("latin-1").split("\r\n")
    method, _, rest = line.partition(" ")
    host, colon, port = rest.partition(" ")[0].rpartition(":")
    if method != "CONNECT" or not colon or not port.isdecimal() or not 0 < int(port) < 1 << 16:
        near.sendall(b"HTTP/1.1 405 Only CONNECT\r\nContent-Length: 0\r\n\r\n")
        raise ProtocolError
    user, password = _read_credentials(headers)
    return ConnectRequest(host.strip("[]"), int(port), user, password)


def _read_credentials(headers: list[str]) -> tuple[str, str]:
    for header in headers:
        name, _, value = header.partition(":")
        if name.lower() == "proxy-authorization":
            try:
                credentials = base64.b64decode(value.strip().removeprefix("Basic "), validate=True).decode()
            except (binascii.Error, ValueError):
                return "", ""
            user, _, password = credentials.partition(":")
            return user, password
    return "", ""


def send_http_reply(near: socket.socket, trouble: str, why: str) -> None:
    """Reply with the HTTP status of the result; the body gives the reason."""
    lines = [f"HTTP/1.1 {_HTTP_LINES[trouble]}"]
    body = why.encode() if trouble else b""
    if trouble:
        lines += ["Content-Type: text/plain; charset=utf-8", f"Content-Length: {len(body)}", "Connection: close"]
    if trouble == "password":
        lines.append('Proxy-Authenticate: Basic realm="headgate"')
    near.sendall("\r\n".join([*lines, "", ""]).encode() + body)


def _read_exactly(near: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = near.recv(size - len(data))
        if not more:
            raise ProtocolError
        data += more
    return data


def _read_text(near: socket.socket) -> str:
    try:
        return _read_exactly(near, _read_exactly(near, 1)[0]).decode("ascii")
    except UnicodeDecodeError:
        raise ProtocolError from None
