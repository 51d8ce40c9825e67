"""Secrets at rest: AES-256-GCM under a key of the key file, bound to the place where the value is stored.

A sealed value is `v1.KEY.BODY`: the version, the id of the key, and base64url of a random 96-bit nonce, the ciphertext
and its tag. Version, key, table, row and column are authenticated with it, so a value opens only where it was sealed.
"""

import base64
import json
import os
import re
from collections.abc import Container

from headgate.kit.clock import now
from headgate.kit.key_file import KEY_ID_LENGTH, BadKeyFile, Generation, KeyFile, KeyRing

PURPOSE = "secrets"
PLACES: set[tuple[str, str]] = set()
"""Table and column of every place that may hold sealed values: those that a rotation of keys goes through."""

_VERSION = "v1"
_NONCE, _TAG = 12, 16
_SHAPE = re.compile(rf"{_VERSION}\.([0-9a-z]{{{KEY_ID_LENGTH}}})\.")
PREFIX_LENGTH = len(f"{_VERSION}..") + KEY_ID_LENGTH
"""How much of a sealed value says which key it needs."""


class CannotOpen(ValueError):
    """A sealed value that cannot be opened; the message says which, why and what to do, and nothing of the secret."""


class UnknownPlace(LookupError):
    """Something was to be sealed where no rotation of keys would find it."""


def prefix_of(key_id: str) -> str:
    """How every value begins that is sealed with this key."""
    return f"{_VERSION}.{key_id}."


def key_id_of(value: str) -> str | None:
    """The key that a sealed value, or its beginning, names; None if it is not a sealed value."""
    match = _SHAPE.match(value)
    return match[1] if match else None


def row_name(*key: object) -> str:
    """How a row is called when its values are sealed: by its key, or by all parts of its key as a list."""
    return str(key[0]) if len(key) == 1 else json.dumps([str(part) for part in key])


class Sealer:
    """Seals and opens values with the keys of a key file, also while another process rotates them."""

    def __init__(self, keys: KeyFile, columns: Container[tuple[str, str]] = PLACES) -> None:
        self._keys, self._places = keys, columns
        if not keys.ring(PURPOSE).generations:
            keys.change(PURPOSE, _started)
        self._seen = self._read()

    def seal(self, text: str | bytes, table: str, row: str, column: str) -> str:
        """A text as it is stored in this place, sealed with the newest key."""
        if (table, column) not in self._places:
            raise UnknownPlace(
                f"{table}.{column} is not registered: call headgate.platform.secrets.rotation.register for it"
            )
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415 - 25 ms that few commands need

        generation, nonce = self.current(), os.urandom(_NONCE)
        bound = _bound(generation.id, table, row, column)
        body = nonce + AESGCM(generation.key).encrypt(nonce, _as_bytes(text), bound)
        return prefix_of(generation.id) + _encoded(body)

    def open(self, value: str, table: str, row: str, column: str) -> str:
        """The text that was sealed in this place."""
        try:
            return self.open_bytes(value, table, row, column).decode()
        except UnicodeDecodeError:
            raise CannotOpen(f"{_named(table, row, column)} holds bytes that are no text; read it as bytes") from None

    def open_bytes(self, value: str, table: str, row: str, column: str) -> bytes:
        """The bytes that were sealed in this place."""
        from cryptography.exceptions import InvalidTag  # noqa: PLC0415 - as above
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415 - as above

        key_id, body = key_id_of(value), _decoded(value[PREFIX_LENGTH:])
        if key_id is None or body is None or len(body) < _NONCE + _TAG:
            raise CannotOpen(f"{_named(table, row, column)} is not a sealed value; {_REMEDY}")
        key = self._find(key_id, _named(table, row, column)).key
        try:
            return AESGCM(key).decrypt(body[:_NONCE], body[_NONCE:], _bound(key_id, table, row, column))
        except InvalidTag:
            raise CannotOpen(
                f"{_named(table, row, column)} was changed, or was sealed for another place; {_REMEDY}"
            ) from None

    def current(self) -> Generation:
        """The newest key; the file is read again if it was written since, so that no value gets a key that is gone."""
        stamp, ring = self._seen
        if self._keys.stamp() != stamp:
            _, ring = self._seen = self._read()
        return ring.current

    def _find(self, key_id: str, place: str) -> Generation:
        """A key by its id; one that is not known may have been made by another process since the file was read."""
        key = self._seen[1].get(key_id)
        if key is None:
            try:
                self._seen = self._read()
            except BadKeyFile as error:
                raise CannotOpen(f"{place} cannot be opened: {error}") from None
            key = self._seen[1].get(key_id)
        if key is None:
            raise CannotOpen(
                f"{place} is sealed with key {key_id}, which {self._keys.path} does not hold; "
                "restore the key file from a backup that has this key"
            )
        return key

    def _read(self) -> tuple[object, KeyRing]:
        """The stamp of the file, then its ring: a file that is written in between is noticed the next time."""
        stamp, ring = self._keys.stamp(), self._keys.ring(PURPOSE)
        if not ring.generations:
            raise BadKeyFile(f"{self._keys.path} is gone or holds no sealing keys; restore it from a backup")
        return stamp, ring


_REMEDY = "restore the row from a backup, or enter the secret again"


def _started(ring: KeyRing) -> KeyRing:
    return ring if ring.generations else ring.turned(now(), rotating=False)


def _named(table: str, row: str, column: str) -> str:
    return f"{table}.{column} of {row}"


def _bound(key_id: str, table: str, row: str, column: str) -> bytes:
    """What is authenticated with a value: a list, so that no two places read the same."""
    return json.dumps([_VERSION, key_id, table, row, column]).encode()


def _as_bytes(text: str | bytes) -> bytes:
    try:
        return text if isinstance(text, bytes) else text.encode()
    except UnicodeEncodeError:
        # The error would carry the text.
        raise ValueError("a secret must be text that can be written as UTF-8") from None


def _encoded(body: bytes) -> str:
    return base64.urlsafe_b64encode(body).decode().rstrip("=")


def _decoded(text: str) -> bytes | None:
    """The bytes of exactly the text that `_encoded` makes; other spellings of the same bytes count as changed."""
    try:
        body = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except ValueError:
        return None
    return body if _encoded(body) == text else None
