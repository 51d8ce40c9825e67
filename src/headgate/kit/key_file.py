"""The key file: secrets of this installation, made on first use, readable by its owner only.

A purpose has either one key for good, or a ring: generations of keys, of which the newest is used and older ones are
kept until nothing needs them. A file without rings is written as version 1, as it always was; one with rings is version
2, so that a Headgate which knows no rings refuses the file rather than writing it anew without them.
"""

import base64
import fcntl
import json
import os
import re
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from headgate.kit.clock import iso

KEY_ID_LENGTH = 8
_PLAIN, _WITH_RINGS = 1, 2
_KEY_LENGTH = 32
_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_KEY_ID = re.compile(f"[{_ALPHABET}]{{{KEY_ID_LENGTH}}}")


class BadKeyFile(ValueError):
    """An unusable key file; the message says why."""


@dataclass(frozen=True, slots=True)
class Generation:
    """One key of a ring, the id by which sealed values name it, and when it was made."""

    id: str
    made: datetime
    key: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class KeyRing:
    """The generations of one purpose, oldest first; `rotating` while values are being moved to the newest."""

    generations: tuple[Generation, ...] = ()
    rotating: bool = False

    @property
    def current(self) -> Generation:
        """The generation that encrypts."""
        return self.generations[-1]

    def get(self, key_id: str) -> Generation | None:
        """The generation of this id, if it exists."""
        return next((generation for generation in self.generations if generation.id == key_id), None)

    def turned(self, at: datetime, *, rotating: bool) -> "KeyRing":
        """The ring with a new generation."""
        return KeyRing((*self.generations, self._fresh(at)), rotating)

    def _fresh(self, at: datetime) -> Generation:
        while True:
            key_id = "".join(secrets.choice(_ALPHABET) for _ in range(KEY_ID_LENGTH))
            if self.get(key_id) is None:
                return Generation(key_id, at, secrets.token_bytes(_KEY_LENGTH))


@dataclass(slots=True)
class _Content:
    """What the file holds: keys as base64 by purpose, and rings by purpose."""

    keys: dict[str, str] = field(default_factory=dict)
    rings: dict[str, KeyRing] = field(default_factory=dict)


class KeyFile:
    """Named keys and rings in one file, which is made with mode 0600 when it does not exist."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def key(self, purpose: str) -> bytes:
        """The key for a purpose, created if missing."""
        keys = self._load().keys
        if purpose not in keys:
            keys = self._add(purpose)
        return base64.b64decode(keys[purpose])

    def known(self, purpose: str) -> bytes:
        """The existing key for a purpose; BadKeyFile if it is missing."""
        keys = self._load().keys
        if purpose not in keys:
            raise BadKeyFile(f"{self.path} is missing, or lacks the key for {purpose}; restore it from a backup")
        return base64.b64decode(keys[purpose])

    def has(self, purpose: str) -> bool:
        """Whether there is a key for a purpose."""
        return purpose in self._load().keys

    def ring(self, purpose: str) -> KeyRing:
        """The current ring of a purpose; empty if there is none."""
        return self._load().rings.get(purpose, KeyRing())

    def change(self, purpose: str, work: Callable[[KeyRing], KeyRing]) -> KeyRing:
        """Replace a ring by what the work makes of it, and give the new one; nobody else changes the file meanwhile."""
        with self._locked():
            content = self._load()
            before = content.rings.get(purpose, KeyRing())
            after = work(before)
            if after != before:
                content.rings[purpose] = after
                self._save(content)
            return after

    def stamp(self) -> tuple[int, int, int] | None:
        """A value that changes whenever the file is written; None if there is no file."""
        try:
            status = self.path.stat()
        except FileNotFoundError:
            return None
        return status.st_mtime_ns, status.st_ino, status.st_size

    def _load(self) -> _Content:
        if not self.path.exists():
            return _Content()
        mode = self.path.stat().st_mode & 0o077
        if mode:
            raise BadKeyFile(f"{self.path} is readable by other users; run: chmod 600 {self.path}")
        try:
            document = json.loads(self.path.read_text())
            if document["version"] not in (_PLAIN, _WITH_RINGS):
                raise BadKeyFile(f"{self.path} was written by another version of Headgate")
            return _content(document)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            if isinstance(error, BadKeyFile):
                raise
            raise BadKeyFile(f"{self.path} is not a key file; restore it from a backup") from None

    def _add(self, purpose: str) -> dict[str, str]:
        """Add a key under a lock, so that two processes that start together agree on it."""
        with self._locked():
            content = self._load()
            if purpose not in content.keys:
                content.keys[purpose] = base64.b64encode(secrets.token_bytes(_KEY_LENGTH)).decode()
                self._save(content)
            return content.keys

    @contextmanager
    def _locked(self) -> Iterator[None]:
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = os.open(self.path.with_suffix(".lock"), os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)

    def _save(self, content: _Content) -> None:
        document: dict[str, Any] = {"version": _WITH_RINGS if content.rings else _PLAIN, "keys": content.keys}
        if content.rings:
            document["rings"] = {purpose: _ring_as_json(ring) for purpose, ring in content.rings.items()}
        # A process that was killed while it wrote leaves keys behind, which would outlive their end here.
        for leftover in self.path.parent.glob(_fresh_name(self.path, "*")):
            leftover.unlink(missing_ok=True)
        write_atomically(self.path, json.dumps(document, indent=1))


def _content(document: Any) -> _Content:
    rings = document["rings"] if document["version"] == _WITH_RINGS else {}
    return _Content(
        {str(name): str(value) for name, value in document["keys"].items()},
        {str(purpose): _ring(ring) for purpose, ring in rings.items()},
    )


def _ring(document: Any) -> KeyRing:
    generations = tuple(_generation(item) for item in document["generations"])
    if not generations or len({generation.id for generation in generations}) < len(generations):
        raise ValueError("a ring without keys, or with two of one id")
    return KeyRing(generations, document["rotating"] is True)


def _generation(document: Any) -> Generation:
    made = datetime.fromisoformat(document["made"])
    generation = Generation(document["id"], made, base64.b64decode(document["key"], validate=True))
    if len(generation.key) != _KEY_LENGTH or made.tzinfo is None or not _KEY_ID.fullmatch(generation.id):
        raise ValueError("not a key of a ring")
    return generation


def _ring_as_json(ring: KeyRing) -> dict[str, Any]:
    return {
        "rotating": ring.rotating,
        "generations": [
            {"id": generation.id, "made": iso(generation.made), "key": base64.b64encode(generation.key).decode()}
            for generation in ring.generations
        ],
    }


def _fresh_name(path: Path, process: int | str) -> str:
    return f".{path.name}.{process}.new"


def write_atomically(path: Path, text: str) -> None:
    """Write a private file atomically."""
    fresh = path.with_name(_fresh_name(path, os.getpid()))
    with os.fdopen(os.open(fresh, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "wb") as file:
        file.write(text.encode())
        file.flush()
        os.fsync(file.fileno())
    fresh.rename(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
