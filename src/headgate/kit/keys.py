"""The key file: secrets of this installation, made on first use, readable by its owner only."""

import base64
import fcntl
import json
import os
import secrets
from pathlib import Path

_VERSION = 1


class BadKeyFile(ValueError):
    """The key file cannot be used; the message says why."""


class KeyFile:
    """Named keys in one file, which is made with mode 0600 when it does not exist."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def key(self, purpose: str) -> bytes:
        """The key for a purpose; made, and kept, if there is none yet."""
        keys = self._load()
        if purpose not in keys:
            keys = self._add(purpose)
        return base64.b64decode(keys[purpose])

    def _load(self) -> dict[str, str]:
        if not self.path.exists():
            return {}
        mode = self.path.stat().st_mode & 0o077
        if mode:
            raise BadKeyFile(f"{self.path} can be read by others; run: chmod 600 {self.path}")
        try:
            found = json.loads(self.path.read_text())
            if found["version"] != _VERSION:
                raise BadKeyFile(f"{self.path} was written by another version of Headgate")
            return {str(name): str(value) for name, value in found["keys"].items()}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            if isinstance(error, BadKeyFile):
                raise
            raise BadKeyFile(f"{self.path} is not a key file; restore it from a backup") from None

    def _add(self, purpose: str) -> dict[str, str]:
        """Add a key under a lock, so that two processes that start together agree on it."""
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = os.open(self.path.with_suffix(".lock"), os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            keys = self._load()
            if purpose not in keys:
                keys[purpose] = base64.b64encode(secrets.token_bytes(32)).decode()
                self._save(keys)
            return keys
        finally:
            os.close(lock)

    def _save(self, keys: dict[str, str]) -> None:
        text = json.dumps({"version": _VERSION, "keys": keys}, indent=1)
        write_atomically(self.path, text)


def write_atomically(path: Path, text: str) -> None:
    """Write a private file so that it is there whole, or as it was before."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}.new")
    handle = os.open(fresh, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
    try:
        os.write(handle, text.encode())
        os.fsync(handle)
    finally:
        os.close(handle)
    fresh.rename(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
