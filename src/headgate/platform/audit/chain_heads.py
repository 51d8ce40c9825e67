"""The head of the seal chain as recorded outside the database, with each detected break."""

import fcntl
import hashlib
import hmac
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from headgate.kit.clock import iso
from headgate.kit.key_file import write_atomically

GENESIS = "0" * 64
HEAD_FILE = "audit.head"
SEALED = "audit-sealed"
"""The purpose of a key that the key file contains once an installation has sealed events, so that a wiped log is not
mistaken for a new one.
"""
_UNMARKED, _MARKED = 1, 2


@dataclass(frozen=True, slots=True)
class Head:
    """The head of the chain: the number of the last seal, and the seal."""

    number: int
    seal: str

    @property
    def anchor(self) -> str:
        """The anchor text that an operator stores elsewhere."""
        return f"{self.number}:{self.seal}"


EMPTY = Head(0, GENESIS)


@dataclass(frozen=True, slots=True)
class Break:
    """A break: the database did not continue the recorded chain. Holds the end of both."""

    at: str
    expected: int | None
    actual: int

    def __str__(self) -> str:
        if self.expected is None:
            return (
                f"the chain head file was missing, damaged or outdated on {self.at}; the log ended at event "
                f"{self.actual}"
            )
        return (
            f"the log lacked event {self.expected} of the chain head file on {self.at}; it ended at event {self.actual}"
        )


@dataclass(frozen=True, slots=True)
class RecordedHead:
    """The content of the head file."""

    head: Head
    breaks: tuple[Break, ...] = ()
    accepted: tuple[int, ...] = ()
    """Ids of quarantined rows that the operator has acknowledged."""
    marked: bool = True
    """Whether every event that was unsealed at that time has a mark; earlier versions wrote none."""


class HeadFile:
    """A signed file next to the key file."""

    def __init__(self, path: Path, key: bytes) -> None:
        self.path, self._key = path, key

    def read(self) -> RecordedHead | None:
        """The recorded head, or None if there is no file; ValueError if the file was tampered with."""
        try:
            document = json.loads(self.path.read_text())
            mac = document.pop("mac")
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, AttributeError, TypeError):
            raise ValueError(f"{self.path} is damaged") from None
        if not hmac.compare_digest(self._mac(document), str(mac)):
            raise ValueError(f"{self.path} was not written with this installation's key")
        head = Head(int(document["number"]), str(document["seal"]))
        breaks = tuple(Break(at, expected, ended) for at, expected, ended in document.get("breaks", ()))
        return RecordedHead(
            head, breaks, tuple(document.get("accepted", ())), document.get("version", _UNMARKED) == _MARKED
        )

    def change(self, work: Callable[[RecordedHead | None], RecordedHead]) -> None:
        """Replace the recorded head under a lock. A damaged file counts as missing."""
        with self._locked():
            try:
                before = self.read()
            except ValueError:
                before = None
            self._write(work(before))

    def _write(self, stored: RecordedHead) -> None:
        document: dict[str, Any] = {
            "version": _MARKED if stored.marked else _UNMARKED,
            "number": stored.head.number,
            "seal": stored.head.seal,
            "breaks": [[mismatch.at, mismatch.expected, mismatch.actual] for mismatch in stored.breaks],
            "accepted": list(stored.accepted),
        }
        write_atomically(self.path, json.dumps({**document, "mac": self._mac(document)}))

    def _mac(self, document: dict[str, Any]) -> str:
        if "version" in document:
            text = "head of version " + json.dumps(document, sort_keys=True)
        else:
            # The signature format of earlier versions.
            text = f"head {int(document['number'])} {document['seal']}"
        return hmac.new(self._key, text.encode(), hashlib.sha256).hexdigest()

    @contextmanager
    def _locked(self) -> Iterator[None]:
        lock = os.open(self.path.with_suffix(".lock"), os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)


def broken(now: datetime, expected: Head | None, actual: Head) -> Break:
    """A break detected now."""
    return Break(iso(now), expected.number if expected else None, actual.number)
