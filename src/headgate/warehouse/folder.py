"""A store in a local folder or shared mount."""

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from headgate.kit.file_ownership import inherit, make_folder
from headgate.warehouse.store import Missing, PathTaken, StoredFile, checked


class FolderStore:
    """Files below a folder."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @property
    def url(self) -> str:
        """The root as engines know it."""
        return f"file://{self.root}"

    def _at(self, path: str) -> Path:
        return self.root / checked(path)

    def read(self, path: str) -> bytes:
        """The content of a file, or Missing."""
        with self.open(path) as file:
            return file.read()

    def open(self, path: str) -> BinaryIO:
        """A seekable file, or Missing."""
        try:
            return self._at(path).open("rb")
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
            raise Missing(path) from None

    def write(self, path: str, parts: Iterable[bytes]) -> int:
        """Write a new file, whole or not at all, and durably; its size. Taken if there is one."""
        target = self._at(path)
        make_folder(target.parent)
        handle, name = tempfile.mkstemp(prefix="new-", dir=target.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                size = sum(file.write(part) for part in parts)
                file.flush()
                os.fchmod(file.fileno(), 0o644)
                inherit(Path(name))
                os.fsync(file.fileno())
            try:
                os.link(name, target)
            except FileExistsError:
                raise PathTaken(path) from None
        finally:
            with suppress(FileNotFoundError):
                os.unlink(name)  # noqa: PTH108 - a name that mkstemp gave
        _sync_folder(target.parent)
        return size

    def size(self, path: str) -> int:
        """The size of a file, or Missing."""
        try:
            return self._at(path).stat().st_size
        except (FileNotFoundError, NotADirectoryError):
            raise Missing(path) from None

    def files(self, folder: str) -> Iterator[StoredFile]:
        """Every file below a folder, in no order; none if there is no such folder. Links are not followed."""
        for place, _, names in os.walk(self._at(folder)):
            for name in names:
                file = Path(place, name)
                with suppress(FileNotFoundError):
                    results = file.lstat()
                    modified = datetime.fromtimestamp(results.st_mtime, UTC)
                    yield StoredFile(str(file.relative_to(self.root)), results.st_size, modified)

    def delete(self, path: str) -> None:
        """Delete a file, if it exists."""
        self._at(path).unlink(missing_ok=True)

    def delete_folder(self, folder: str) -> None:
        """Delete a folder with its files."""
        with suppress(FileNotFoundError):
            shutil.rmtree(self._at(folder))

    def check(self) -> list[str]:
        """The problems that prevent the use of this folder, each with what to do."""
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self.root) as file:
                file.write(b"headgate")
        except OSError as error:
            return [
                f"The folder {self.root} is not writable: {error.strerror}; change its owner to the server's "
                "user, or set another folder"
            ]
        return []


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
