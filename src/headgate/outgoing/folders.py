"""Folders on this machine, limited to those allowed by the settings, also through symbolic links.

A path is resolved when it is saved and again when it is used. Then everything is opened relative to a handle of the
allowed folder, component by component, without following links, so a link created after the check has no effect.
"""

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class FolderNotAllowed(ValueError):
    """The folder is not allowed by the settings, or leads out of the allowed ones; the message says what to do."""


def check_saved(path: str, allowed: Sequence[Path], setting: str) -> None:
    """Validate a folder when it is saved, with the links on this machine; raises FolderNotAllowed."""
    _check_written(path, allowed, setting)
    _resolved(path, allowed, setting)


def _check_written(path: str, allowed: Sequence[Path], setting: str) -> None:
    if not any(PurePosixPath(path).is_relative_to(folder) for folder in allowed):
        known = ", ".join(str(folder) for folder in allowed)
        there = f"this installation allows {known}" if known else "this installation allows none"
        raise FolderNotAllowed(f"{path} is not below a folder that `{setting}` lists; {there}. An operator can add one")


def _resolved(path: str, allowed: Sequence[Path], setting: str) -> tuple[Path, tuple[str, ...]]:
    """The allowed folder, and the path below it after resolving all links."""
    try:
        result = Path(path).resolve()
        for folder in allowed:
            root = folder.resolve()
            if result.is_relative_to(root):
                return root, result.relative_to(root).parts
    except (OSError, RuntimeError) as error:
        raise FolderNotAllowed(f"{path} cannot be resolved: {error}; choose another folder") from None
    raise FolderNotAllowed(
        f"{path} leads out of the folders that `{setting}` lists, by a symbolic link; choose another"
    )


@dataclass(frozen=True, slots=True)
class FolderFile:
    """A regular file below a folder: its relative path and its facts."""

    name: str
    facts: os.stat_result


@dataclass(frozen=True, slots=True)
class Root:
    """An opened allowed folder. `path` is its real path; operations use `handle`."""

    path: Path
    handle: int

    def files(self) -> Iterator[FolderFile]:
        """The regular files below, in order. Links to files below count as files, other links are omitted."""
        for folder, inner, names, handle in os.fwalk(".", dir_fd=self.handle, onerror=None):
            inner.sort()
            for name in sorted(names):
                path = str(PurePosixPath(folder, name))
                facts = self._facts(path, name, handle)
                if facts is not None and stat.S_ISREG(facts.st_mode):
                    yield FolderFile(path, facts)

    def _facts(self, path: str, name: str, handle: int) -> os.stat_result | None:
        try:
            facts = os.stat(name, dir_fd=handle, follow_symlinks=False)
            if not stat.S_ISLNK(facts.st_mode):
                return facts
            opened_file = self.open(path)
        except (OSError, FolderNotAllowed):
            return None
        try:
            return os.fstat(opened_file)
        finally:
            os.close(opened_file)

    def open(self, name: str) -> int:
        """Open a regular file below for reading; FolderNotAllowed if it leads out or is not a regular file."""
        target = (self.path / name).resolve()
        if not target.is_relative_to(self.path) or target == self.path:
            raise FolderNotAllowed(f"{name} leads out of its folder by a symbolic link")
        *folders, last = target.relative_to(self.path).parts
        try:
            folder = walked(self.handle, folders)
            try:
                result = os.open(last, _FILE, dir_fd=folder)
            finally:
                os.close(folder)
        except OSError as error:
            raise FolderNotAllowed(f"{name} cannot be opened: {error.strerror}") from None
        if not stat.S_ISREG(os.fstat(result).st_mode):
            os.close(result)
            raise FolderNotAllowed(f"{name} is not a regular file")
        return result


@contextmanager
def opened(path: str, allowed: Sequence[Path], setting: str) -> Iterator[Root]:
    """Open the real folder of a path if it is below an allowed one; otherwise FolderNotAllowed."""
    _check_written(path, allowed, setting)
    root, parts = _resolved(path, allowed, setting)
    try:
        base = os.open(root, _FOLDER)
        try:
            handle = walked(base, parts)
        finally:
            os.close(base)
    except OSError as error:
        raise FolderNotAllowed(
            f"{path} is not a folder on the worker's machine, or became a link while it was opened: {error.strerror}"
        ) from None
    try:
        yield Root(root.joinpath(*parts), handle)
    finally:
        os.close(handle)


def walked(handle: int, parts: Sequence[str]) -> int:
    """Open a folder below another, component by component; a link on the way raises OSError."""
    result = os.dup(handle)
    for part in parts:
        try:
            inner = os.open(part, _FOLDER, dir_fd=result)
        finally:
            os.close(result)
        result = inner
    return result
