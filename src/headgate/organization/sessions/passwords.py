"""Passwords: argon2id with limited concurrency, and a check against common passwords."""

import os
import threading
from collections.abc import Sequence

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerifyMismatchError

from headgate.kit.errors import Invalid

SHORTEST, LONGEST = 10, 200
_WEAK = 1
_LOOKED_AT = 72

_hasher = PasswordHasher(time_cost=1, memory_cost=47_104, parallelism=1)
_slots = threading.BoundedSemaphore(os.cpu_count() or 1)
_NOBODYS = _hasher.hash("nobody has this password")


def hashed(password: str) -> str:
    """The stored hash of a password. It takes tens of milliseconds: never call it in a transaction."""
    with _slots:
        return _hasher.hash(password)


def is_right(stored: str | None, password: str) -> bool:
    """Whether a password matches the stored hash. It takes as long if there is none."""
    with _slots:
        try:
            return _hasher.verify(stored or _NOBODYS, password[:LONGEST]) and stored is not None
        except (VerifyMismatchError, InvalidHashError):
            return False


def needs_new_hash(stored: str) -> bool:
    """Whether a stored hash has outdated parameters."""
    return _hasher.check_needs_rehash(stored)


def check_strength(password: str, about: Sequence[str]) -> None:
    """Reject a password that is short, common, or derived from public facts about its owner."""
    if len(password) < SHORTEST:
        raise Invalid(f"password: use at least {SHORTEST} characters, such as a few words in a row")
    if len(password) > LONGEST:
        raise Invalid(f"password: use at most {LONGEST} characters")
    from zxcvbn import zxcvbn  # noqa: PLC0415 - its lists take a while to load

    personal = [part for text in about for part in (text, *text.replace("@", " ").replace(".", " ").split())]
    if zxcvbn(password[:_LOOKED_AT], user_inputs=["headgate", *personal])["score"] <= _WEAK:
        raise Invalid("password: it is easy to guess, because it is common or contains a name or a pattern")
