"""Strict parsing of requests to the object store: which files of one table they access, and how.

A client describes the request that it wants signed. Anything not known to be harmless is refused: query parameters
beyond reading and writing bytes, headers with side effects such as a copy, and ambiguous paths.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import unquote_to_bytes, urlsplit

from headgate.lakehouse.catalog.delete_bodies import named_keys
from headgate.lakehouse.catalog.errors import Forbidden, Malformed
from headgate.warehouse.address import Address
from headgate.warehouse.locations import metadata_root, table_root
from headgate.warehouse.sigv4 import TRAILER, UNSIGNED

READ, WRITE = "execute", "edit"
"""The action that a request needs on the table."""

_PATH = re.compile(r"/[A-Za-z0-9._~!$&'()*+,=:@%/-]*")
_QUERY = re.compile(r"[A-Za-z0-9._~!$'()*,:@%/=&-]*")
_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})|%2[Ff]|%5[Cc]")
_HASH = re.compile(r"[0-9a-f]{64}")
_NUMBER = re.compile(r"[1-9][0-9]{0,4}")

_HEADERS = re.compile(
    r"x-amz-(?:content-sha256|checksum-[a-z0-9]+|sdk-checksum-algorithm|te|trailer|decoded-content-length)"
)
"""The store-specific headers that a client may send."""

_ALREADY_SIGNED = frozenset({"authorization", "x-amz-date", "x-amz-security-token"})
_LISTING = frozenset(
    {
        "list-type",
        "prefix",
        "delimiter",
        "max-keys",
        "continuation-token",
        "start-after",
        "encoding-type",
        "fetch-owner",
    }
)
_OBJECT: dict[str, tuple[frozenset[str], ...]] = {
    "GET": (frozenset(),),
    "HEAD": (frozenset(),),
    "PUT": (frozenset(), frozenset({"partNumber", "uploadId"})),
    "POST": (frozenset({"uploads"}), frozenset({"uploadId"})),
    "DELETE": (frozenset(), frozenset({"uploadId"})),
}
"""For each method on a file, the allowed sets of query parameters."""


@dataclass(frozen=True, slots=True)
class SignableRequest:
    """A request that may be signed for callers with `action` on the table."""

    action: str
    headers: dict[str, str]
    """The client's headers that the signature covers."""

    payload: str
    """The hash of the body, or the marker for an unsigned body."""


@dataclass(frozen=True, slots=True)
class S3Request:
    """A request as described by a client."""

    method: str
    uri: str
    region: str
    headers: Mapping[str, list[str]]
    body: str | None = None


def understood(described: S3Request, address: Address, table_id: str) -> SignableRequest:
    """The action that a request needs if it concerns only one table's files; otherwise raises Malformed or
    Forbidden.
    """
    if described.region != address.region:
        raise Malformed(
            f"Requests are signed for the region {address.region}; set client.region and s3.region to this value"
        )
    key, query = _place(described.uri, address)
    headers, payload = _headers(described.headers)
    if key:
        return SignableRequest(_on_file(described.method, key, query, address, table_id), headers, payload)
    if described.method == "GET" and query.get("list-type") == "2":
        _on_listing(query, address, table_id)
        return SignableRequest(READ, headers, payload)
    if described.method == "POST" and query == {"delete": ""}:
        return _on_many(described.body, headers, payload, address, table_id)
    raise _outside()


def _place(uri: str, address: Address) -> tuple[str, dict[str, str]]:
    """The key in a URI, empty for the bucket itself, and the query."""
    if not uri.isascii() or not uri.isprintable():
        raise _unclear()  # some URI parsers drop line breaks and tabs
    try:
        parts = urlsplit(uri)
        host = parts.netloc.lower()
    except ValueError:
        raise Malformed("The URI is invalid") from None
    usual = {"http": ":80", "https": ":443"}.get(parts.scheme, "")
    if parts.scheme != address.scheme or host.removesuffix(usual) != address.request_host or "#" in uri:
        raise Forbidden(f"Requests are signed only for {address.scheme}://{address.request_host}")
    path = _decoded(parts.path, _PATH)
    root = address.request_root
    if path == root.rstrip("/"):
        path = root
    if not path.startswith(root):
        raise _outside()
    return path.removeprefix(root), _parameters(parts.query)


def _decoded(text: str, allowed: re.Pattern[str]) -> str:
    """Decode percent-encoding; refuses ambiguous text."""
    if not allowed.fullmatch(text) or _PERCENT.search(text):
        raise _unclear()
    try:
        result = unquote_to_bytes(text).decode("utf-8")
    except UnicodeDecodeError:
        raise _unclear() from None
    if any(ord(value) < 32 or ord(value) == 127 for value in result):
        raise _unclear()
    return result


def _parameters(query: str) -> dict[str, str]:
    values: dict[str, str] = {}
    for entry in query.split("&") if query else ():
        name, _, value = entry.partition("=")
        name, value = _decoded(name, _QUERY), _query_value(value)
        if not name or name in values:
            raise _unclear()
        values[name] = value
    return values


def _query_value(text: str) -> str:
    """Decode a query value, in which clients may encode slashes."""
    return _decoded(re.sub("%2[Ff]", "/", text), _QUERY)


def _headers(given: Mapping[str, list[str]]) -> tuple[dict[str, str], str]:
    """The headers to sign, and the payload hash or marker."""
    result: dict[str, str] = {}
    for name, values in given.items():
        lowered = name.lower()
        if lowered in _ALREADY_SIGNED:
            raise Malformed(f"The request is already signed: remove {name}")
        if lowered.startswith("x-amz-") and not _HEADERS.fullmatch(lowered):
            raise Forbidden(f"Requests with the header {name} are not signed")
        if lowered.startswith("x-amz-") or lowered == "content-md5":
            if lowered in result or len(values) != 1 or not values[0].isprintable():
                raise Malformed(f"The header {name} must occur once, with one value")
            result[lowered] = values[0]
    payload = result.get("x-amz-content-sha256") or (TRAILER if "x-amz-trailer" in result else UNSIGNED)
    if payload not in {TRAILER, UNSIGNED} and not _HASH.fullmatch(payload):
        raise Forbidden("Chunked bodies are not supported; send the body in one piece")
    return result, payload


def _on_file(method: str, key: str, query: dict[str, str], address: Address, table_id: str) -> str:
    """The action that a request on one file needs."""
    if frozenset(query) not in _OBJECT.get(method, ()):
        raise Forbidden(
            f"{method} requests with this query are not signed; only requests that read, write and delete files are"
        )
    number = query.get("partNumber", "1")
    if query.get("uploads") or not _NUMBER.fullmatch(number) or query.get("uploadId") == "":
        raise Forbidden("The query is invalid")
    action = READ if method in {"GET", "HEAD"} else WRITE
    _check_key(key, address, table_id, writes=action == WRITE)
    return action


def _on_listing(query: dict[str, str], address: Address, table_id: str) -> None:
    if not _LISTING.issuperset(query):
        raise Forbidden("List requests with this query are not signed")
    prefix = query.get("prefix", "")
    _check_key(f"{prefix}x" if prefix.endswith("/") else prefix, address, table_id, writes=False)


def _on_many(
    body: str | None, headers: dict[str, str], payload: str, address: Address, table_id: str
) -> SignableRequest:
    """Bulk delete: the signature covers exactly the body that was checked."""
    if body is None:
        raise Forbidden("A request to delete several files is signed only with its body; delete them one by one")
    for key in named_keys(body):
        _check_key(key, address, table_id, writes=True)
    digest = hashlib.sha256(body.encode()).hexdigest()
    if payload not in {digest, UNSIGNED} or payload != headers.get("x-amz-content-sha256", payload):
        raise Forbidden("The body does not match its hash")
    if headers.get("x-amz-content-sha256") == UNSIGNED:
        raise Forbidden("A request to delete several files requires the hash of its body")
    return SignableRequest(WRITE, headers, digest)


def _check_key(key: str, address: Address, table_id: str, *, writes: bool) -> None:
    """Refuse a key outside of the table's root and, for reads, its metadata folder."""
    _refuse_dots(key)
    roots = [table_root(table_id)] if writes else [table_root(table_id), metadata_root(table_id)]
    if not any(key.startswith(f"{address.prefix}{root}/") for root in roots):
        raise _outside()


def _refuse_dots(key: str) -> None:
    """Refuse `..` in any, even repeated, encoding, because a store or proxy might resolve it."""
    text = key
    for _ in range(4):
        if any(value in {"", ".", ".."} for value in re.split(r"[/\\]", text)):
            raise _outside()
        text = unquote_to_bytes(text).decode("utf-8", "replace")


def _outside() -> Forbidden:
    return Forbidden("Only requests for files of this table are signed, except for its metadata files")


def _unclear() -> Forbidden:
    return Forbidden("The URI is ambiguous; write it without encoded slashes and dot segments")
