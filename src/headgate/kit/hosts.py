"""The host of a URL or of a database, in any spelling that resolvers take."""

import re
import unicodedata
from ipaddress import IPv4Address, IPv6Address

import httpx2 as httpx

from headgate.kit.call_errors import CallRefused

Address = IPv4Address | IPv6Address
Host = str | Address
"""A host name in lower-case ASCII without a trailing dot, or an address."""

_LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_NAME = re.compile(rf"(?=.{{1,253}}\Z){_LABEL}(?:\.{_LABEL})*")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")


def read_host(text: str) -> Host:
    """What the host of a URL is: an address in any spelling that resolvers take, or a name."""
    if text.startswith("["):
        return _bracketed(text)
    name = unicodedata.normalize("NFKC", text).replace("\u3002", ".").lower().removesuffix(".")
    if not name.isascii():
        try:
            name = httpx.URL(scheme="https", host=name).raw_host.decode("ascii")
        except (httpx.InvalidURL, UnicodeError):
            raise CallRefused("the host is not a name that can be looked up") from None
    if not _NAME.fullmatch(name):
        raise CallRefused("the host is neither a name that can be looked up nor an address")
    return _numeric(name) if _NUMBER.fullmatch(name.rpartition(".")[2]) else name


def _bracketed(text: str) -> Address:
    try:
        address = IPv6Address(text[1:-1] if text.endswith("]") else "")
    except ValueError:
        raise CallRefused("the host is in brackets, but is not an IPv6 address") from None
    if address.scope_id is not None:
        raise CallRefused("the host names an interface of this machine; give an address without a zone")
    return address.ipv4_mapped or address


def _numeric(name: str) -> IPv4Address:
    """A name that ends in a number is an IPv4 address: one to four parts, the last of which fills what is left."""
    try:
        *heads, tail = [_number(part) for part in name.split(".")]
        if len(heads) > 3 or any(part > 255 for part in heads) or tail >= 256 ** (4 - len(heads)):
            raise ValueError
    except ValueError:
        raise CallRefused("the host ends in a number, but is not an IPv4 address") from None
    return IPv4Address(sum(part << (24 - 8 * place) for place, part in enumerate(heads)) + tail)


def _number(part: str) -> int:
    if not _NUMBER.fullmatch(part):
        raise ValueError(part)
    if part.startswith("0x"):
        return int(part[2:] or "0", 16)
    return int(part, 8 if part.startswith("0") else 10)
