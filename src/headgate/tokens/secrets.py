"""Token secrets: a prefix to be recognised by, random characters, and a checksum that catches slips."""

import hashlib
import secrets
import string
import zlib

PREFIX = "hgt_"
_ALPHABET = string.digits + string.ascii_letters
_LENGTH = 32
_CHECK_LENGTH = 6


def _checksum(body: str) -> str:
    number = zlib.crc32(body.encode())
    digits = []
    for _ in range(_CHECK_LENGTH):
        number, digit = divmod(number, len(_ALPHABET))
        digits.append(_ALPHABET[digit])
    return "".join(digits)


def new_secret() -> str:
    """A fresh secret; shown once, never stored."""
    body = "".join(secrets.choice(_ALPHABET) for _ in range(_LENGTH))
    return f"{PREFIX}{body}{_checksum(body)}"


def is_well_formed(secret: str) -> bool:
    """Whether a text can be one of our secrets at all: prefix, length, characters and checksum."""
    body, check = secret[len(PREFIX) : -_CHECK_LENGTH], secret[-_CHECK_LENGTH:]
    return (
        secret.startswith(PREFIX)
        and len(body) == _LENGTH
        and secret.isascii()
        and secret[len(PREFIX) :].isalnum()
        and _checksum(body) == check
    )


def digest(secret: str) -> str:
    """What is stored of a secret. It has far too much randomness to be guessed, so a plain hash will do."""
    return hashlib.sha256(secret.encode()).hexdigest()
