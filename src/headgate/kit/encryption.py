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
    """A value that cannot be decrypted; the message says which, why and what to do, without the secret."""


class UnknownPlace(LookupError):
    """A column that is not registered for key rotation."""


def prefix_of(key_id: str) -> str:
    """The prefix of all values that are encrypted with this key."""
    return f"{_VERSION}.{key_id}."


def key_id_of(value: str) -> str | None:
    """The key id in an encrypted value or its prefix; None if it is not an encrypted value."""
    match = _SHAPE.match(value)
    return match[1] if match else None


def row_name(*key: object) -> str:
    """How a row is called when its values are sealed: by its key, or by all parts of its key as a list."""
    return str(key[0]) if len(key) == 1 else json.dumps([str(part) for part in key])


class Sealer:
    """Encrypts and decrypts values with the keys of a key file, also during a key rotation."""

    def __init__(self, keys: KeyFile, columns: Container[tuple[str, str]] = PLACES) -> None:
        self._keys, self._places = keys, columns
        if not keys.ring(PURPOSE).generations:
            keys.change(PURPOSE, _started)
        self._seen = self._read()

    def seal(self, text: str | bytes, table: str, row: str, column: str) -> str:
        """Encrypt a text for this column and row with the newest key."""
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
        """Decrypt the text of this column and row."""
        try:
            return self.open_bytes(value, table, row, column).decode()
        except UnicodeDecodeError:
            raise CannotOpen(f"{_named(table, row, column)} is encrypted bytes, not text; read it as bytes") from None

    def open_bytes(self, value: str, table: str, row: str, column: str) -> bytes:
        """Decrypt the bytes of this column and row."""
        from cryptography.exceptions import InvalidTag  # noqa: PLC0415 - as above
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415 - as above

        key_id, body = key_id_of(value), _decoded(value[PREFIX_LENGTH:])
        if key_id is None or body is None or len(body) < _NONCE + _TAG:
            raise CannotOpen(f"{_named(table, row, column)} is not an encrypted value; {_REMEDY}")
        key = self._find(key_id, _named(table, row, column)).key
        try:
            return AESGCM(key).decrypt(body[:_NONCE], body[_NONCE:], _bound(key_id, table, row, column))
        except InvalidTag:
            raise CannotOpen(
                f"{_named(table, row, column)} was changed, or was encrypted for another row or column; {_REMEDY}"
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
                raise CannotOpen(f"cannot decrypt {place}: {error}") from None
            key = self._seen[1].get(key_id)
        if key is None:
            raise CannotOpen(
                f"{place} is encrypted with key {key_id}, which is not in {self._keys.path}; restore the key file "
                "from a backup that has this key"
            )
        return key

    def _read(self) -> tuple[object, KeyRing]:
        """The stamp of the file, then its ring: a file that is written in between is noticed the next time."""
        stamp, ring = self._keys.stamp(), self._keys.ring(PURPOSE)
        if not ring.generations:
            raise BadKeyFile(f"{self._keys.path} is missing or has no encryption keys; restore it from a backup")
        return stamp, ring


_REMEDY = "restore the row from a backup, or set the secret again"


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
        raise ValueError("a secret must be valid UTF-8 text") from None


def _encoded(body: bytes) -> str:
    return base64.urlsafe_b64encode(body).decode().rstrip("=")


def _decoded(text: str) -> bytes | None:
    """The bytes of exactly the text that `_encoded` makes; other spellings of the same bytes count as changed."""
    try:
        body = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except ValueError:
        return None
    return body if _encoded(body) == text else None
