"""Secrets: a recognizable prefix, random characters, and a checksum that detects typos."""

import hashlib
import hmac
import secrets
import string
import zlib
from enum import StrEnum

_ALPHABET = string.digits + string.ascii_letters
_LENGTH = 32
_CHECK_LENGTH = 6


class Sort(StrEnum):
    """The type of a secret, which is its prefix."""

    token = "hgt_"  # noqa: S105 - a prefix
    session = "hgs_"
    link = "hgl_"
    password = "hgp_"  # noqa: S105 - a prefix
    invitation = "hgi_"
    work = "hgw_"
    worker = "hgx_"


def _checksum(body: str) -> str:
    number = zlib.crc32(body.encode())
    digits = []
    for _ in range(_CHECK_LENGTH):
        number, digit = divmod(number, len(_ALPHABET))
        digits.append(_ALPHABET[digit])
    return "".join(digits)


def new_secret(sort: Sort) -> str:
    """A random secret, which is shown once and never stored."""
    body = "".join(secrets.choice(_ALPHABET) for _ in range(_LENGTH))
    return f"{sort.value}{body}{_checksum(body)}"


def derived_secret(sort: Sort, key: bytes) -> str:
    """A secret derived from a key: deterministic, and one-way."""
    number = int.from_bytes(hmac.digest(key, sort.value.encode(), "sha256"))
    body = []
    for _ in range(_LENGTH):
        number, digit = divmod(number, len(_ALPHABET))
        body.append(_ALPHABET[digit])
    text = "".join(body)
    return f"{sort.value}{text}{_checksum(text)}"


def has_form(secret: str, sort: Sort) -> bool:
    """Whether a text looks like a secret of this type; its checksum may be wrong."""
    body = secret.removeprefix(sort.value)
    return secret.startswith(sort.value) and len(body) == _LENGTH + _CHECK_LENGTH and body.isascii() and body.isalnum()


def is_well_formed(secret: str, sort: Sort) -> bool:
    """Whether a text is a secret of this type with a valid checksum."""
    body = secret[len(sort.value) : -_CHECK_LENGTH]
    return has_form(secret, sort) and _checksum(body) == secret[-_CHECK_LENGTH:]


def digest(secret: str) -> str:
    """The stored hash of a secret. Secrets are long and random, so a plain hash suffices."""
    return hashlib.sha256(secret.encode()).hexdigest()
