"""Validated text fields of external system configurations: hosts, URLs, names, headers, folders."""

import re
from pathlib import PurePosixPath
from typing import Annotated

from pydantic import AfterValidator, Field

from headgate.kit.call_errors import CallRefused
from headgate.kit.hosts import read_host
from headgate.kit.names import is_text
from headgate.kit.urls import read_url

HEADERS = frozenset(
    {
        "accept",
        "accept-charset",
        "accept-language",
        "prefer",
        "user-agent",
        "x-account-id",
        "x-client-id",
        "x-client-name",
        "x-organization-id",
        "x-project-id",
        "x-tenant-id",
        "x-workspace-id",
    }
)
"""The headers that a connection may send with every request, besides version headers."""
_VERSION_HEADER = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*-version")
_HEADER_NAME = re.compile(r"[A-Za-z0-9_-]{1,100}")
_OURS = re.compile(
    r"host|content-.*|transfer-encoding|connection|keep-alive|te|trailer|upgrade|expect|accept-encoding|cookie|proxy-.*"
)
_PRINTABLE = re.compile(r"[\x20-\x7e]*")
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_REGION = re.compile(r"[a-z0-9-]{1,40}")


def _plain(text: str) -> str:
    if not is_text(text) or text.strip() != text:
        raise ValueError("contains control characters, or leading or trailing spaces; remove them")
    return text


def _host(text: str) -> str:
    if "/" in text or text.count(":") == 1:
        raise ValueError(f"{text[:80]!r} is not a host name; write it without a scheme, port or path")
    try:
        read_host(f"[{text}]" if ":" in text and not text.startswith("[") else text)
    except CallRefused as error:
        raise ValueError(f"{error}; write one as db.example.com") from None
    return text.strip("[]")


def _url(text: str) -> str:
    try:
        request_target = read_url(text)
    except CallRefused as error:
        raise ValueError(str(error)) from None
    if request_target.url.query or "?" in text or "#" in text:
        raise ValueError("the URL has a query or fragment; remove the part after ? or #")
    return text.rstrip("/")


def _bucket(text: str) -> str:
    if not _BUCKET.fullmatch(text) or ".." in text:
        raise ValueError(f"{text[:80]!r} is not a valid bucket name; use 3 to 63 of a-z, 0-9, dots and hyphens")
    return text


def _region(text: str) -> str:
    if not _REGION.fullmatch(text):
        raise ValueError(f"{text[:50]!r} is not a region; write one as eu-central-1")
    return text


def _prefix(text: str) -> str:
    if not is_text(text) or any(part in {".", ".."} for part in text.split("/")):
        raise ValueError("the prefix contains control characters, or . or .. as a path segment")
    return text.strip("/")


def _folder(text: str) -> str:
    path = PurePosixPath(text)
    if not is_text(text) or not path.is_absolute() or ".." in path.parts:
        raise ValueError("write an absolute path such as /srv/incoming, without ..")
    return str(path)


def _ca(text: str) -> str:
    from cryptography.x509 import load_pem_x509_certificates  # noqa: PLC0415 - 30 ms that few need

    try:
        load_pem_x509_certificates(text.encode())
    except ValueError:
        raise ValueError("is not a certificate; write it as PEM, starting with -----BEGIN CERTIFICATE-----") from None
    return text


def key_header(name: str) -> str:
    """The name of a header or parameter that carries a key."""
    if not _HEADER_NAME.fullmatch(name) or _OURS.fullmatch(name.lower()):
        raise ValueError(
            f"{name[:100]!r} is not a valid header or parameter name; write one such as X-API-Key or api_key"
        )
    return name


def headers(given: dict[str, str]) -> dict[str, str]:
    """Headers to send with every request: only allowed ones, without secrets."""
    for name, value in given.items():
        if name.lower() not in HEADERS and not _VERSION_HEADER.fullmatch(name.lower()):
            raise ValueError(
                f"{name[:100]!r} cannot be set as a header; allowed are {', '.join(sorted(HEADERS))} and names "
                "that end in -version. Keys and tokens belong in `secrets`"
            )
        if not _PRINTABLE.fullmatch(value):
            raise ValueError(f"{name}: the value of a header must be printable ASCII")
    return given


Plain = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_plain)]
Host = Annotated[str, Field(min_length=1, max_length=253, examples=["db.example.com"]), AfterValidator(_host)]
Port = Annotated[int, Field(ge=1, le=65535)]
Url = Annotated[str, Field(max_length=2000, examples=["https://api.example.com/v1"]), AfterValidator(_url)]
Bucket = Annotated[str, Field(max_length=80, examples=["incoming"]), AfterValidator(_bucket)]
Region = Annotated[str, Field(max_length=80, examples=["eu-central-1"]), AfterValidator(_region)]
Prefix = Annotated[str, Field(max_length=900, examples=["exports/shop"]), AfterValidator(_prefix)]
FolderPath = Annotated[str, Field(max_length=1000, examples=["/srv/incoming"]), AfterValidator(_folder)]
Certificate = Annotated[str, Field(max_length=100_000, description="PEM"), AfterValidator(_ca)]
KeyName = Annotated[str, Field(examples=["X-API-Key"]), AfterValidator(key_header)]
Headers = Annotated[
    dict[str, Annotated[str, Field(max_length=1000)]],
    Field(max_length=20, examples=[{"Accept-Language": "de"}]),
    AfterValidator(headers),
]
