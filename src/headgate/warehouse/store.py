"""What a place for bytes can do. A path is ours, never a member's: made of ids and names that we chose."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import BinaryIO, Protocol

from headgate.kit.errors import Unavailable

_PATH = re.compile(r"[A-Za-z0-9_=-][A-Za-z0-9._=-]*(?:/[A-Za-z0-9_=-][A-Za-z0-9._=-]*)*")


class Missing(Exception):
    """There is nothing at this path."""


class PathTaken(Exception):
    """There is something at this path already."""


class StoreUnavailable(Unavailable):
    """The place itself cannot be used now. Members are told to wait; `reason` tells the operator what to do."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__("The warehouse cannot be reached; try again in a moment, and tell who runs it")


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file of a store."""

    path: str
    size: int
    modified: datetime


class Store(Protocol):
    """Files under one root. Paths are relative to it; URLs are what engines are told."""

    @property
    def url(self) -> str:
        """The root as engines know it, without a slash at its end."""

    def read(self, path: str) -> bytes:
        """A whole file, or Missing."""

    def open(self, path: str) -> BinaryIO:
        """A file to read and seek in, or Missing."""

    def write(self, path: str, parts: Iterable[bytes]) -> int:
        """Write a new file, whole or not at all, and durably; its size. Taken if there is one."""

    def size(self, path: str) -> int:
        """The size of a file, or Missing."""

    def files(self, folder: str) -> Iterator[StoredFile]:
        """Every file below a folder, in no order; none if there is no such folder."""

    def delete(self, path: str) -> None:
        """Delete a file, if it is there."""

    def delete_folder(self, folder: str) -> None:
        """Delete all below a folder, and the folder."""

    def check(self) -> list[str]:
        """What keeps this place from being used, each with what to do; nothing if all is well."""


def checked(path: str) -> str:
    """The path, if it cannot lead anywhere but below the root."""
    if not _PATH.fullmatch(path):
        raise ValueError(f"{path!r} is no path of the warehouse")
    return path
