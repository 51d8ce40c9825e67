"""The interface of stores. Paths consist of ids and fixed names, never of user input."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import BinaryIO, Protocol

from headgate.kit.errors import Unavailable

_PATH = re.compile(r"[A-Za-z0-9_=-][A-Za-z0-9._=-]*(?:/[A-Za-z0-9_=-][A-Za-z0-9._=-]*)*")


class Missing(Exception):
    """No file exists at this path."""


class PathTaken(Exception):
    """A file already exists at this path."""


class StoreUnavailable(Unavailable):
    """The store is unavailable. Members are asked to try again; `reason` tells the operator what to do."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__("Cannot reach the warehouse; try again, or tell the operator")


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file of a store."""

    path: str
    size: int
    modified: datetime


class Store(Protocol):
    """Files below one root. Paths are relative to it; URLs are for engines."""

    @property
    def url(self) -> str:
        """The root as engines know it, without a slash at its end."""

    def read(self, path: str) -> bytes:
        """The content of a file, or Missing."""

    def open(self, path: str) -> BinaryIO:
        """A seekable file, or Missing."""

    def write(self, path: str, parts: Iterable[bytes]) -> int:
        """Write a new file, whole or not at all, and durably; its size. Taken if there is one."""

    def size(self, path: str) -> int:
        """The size of a file, or Missing."""

    def files(self, folder: str) -> Iterator[StoredFile]:
        """Every file below a folder, in no order; none if there is no such folder."""

    def delete(self, path: str) -> None:
        """Delete a file, if it exists."""

    def delete_folder(self, folder: str) -> None:
        """Delete a folder with its files."""

    def check(self) -> list[str]:
        """What keeps this place from being used, each with what to do; nothing if all is well."""


def checked(path: str) -> str:
    """The path, if it stays below the root."""
    if not _PATH.fullmatch(path):
        raise ValueError(f"{path!r} is not a path of the warehouse")
    return path
