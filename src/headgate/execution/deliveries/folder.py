"""File deliveries to a local folder below an allowed root. Symbolic links are not followed."""

import errno
import os
import re
import shutil
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from io import BytesIO
from typing import Any

from headgate.contracts.external_systems.endpoints import Endpoint
from headgate.execution.deliveries.export import Exported
from headgate.execution.steps.context import Context, StepFailed
from headgate.kit.crash_points import crash_point
from headgate.outgoing import folders
from headgate.outgoing.folders import FolderNotAllowed

MANIFEST, LATEST = "_SUCCESS", "_LATEST.json"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
_OURS = re.compile(r"run_[0-9a-z]{20}-[0-9]{1,5}")
_ASIDE = re.compile(r"\.run_[0-9a-z]{20}-[0-9]{1,5}-[0-9]{1,9}(\.latest)?")
_THERE = {errno.ENOTEMPTY, errno.EEXIST}


@contextmanager
def opened(
    context: Context,
    endpoint: Endpoint,
    parts: Sequence[str],
    own: str,
    fence: int,
) -> Iterator["LocalRunFolder"]:
    """The folder, created if missing; operating system errors are raised as StepFailed."""
    path = str(endpoint.config["path"])
    with _told(path):
        try:
            with folders.opened(path, context.settings.deliveries.folders, "deliveries.folders") as root:
                handle = _below(root.handle, parts)
        except FolderNotAllowed as error:
            raise StepFailed("FOLDER_REFUSED", str(error)) from None
        try:
            yield LocalRunFolder(context, handle, own, fence)
        finally:
            os.close(handle)


def _below(root: int, parts: Sequence[str]) -> int:
    """Open a subfolder, created if missing, as a file descriptor that a symbolic link cannot redirect."""
    handle = os.dup(root)
    for part in parts:
        try:
            with suppress(FileExistsError):
                os.mkdir(part, dir_fd=handle)
            inner = os.open(part, _FOLDER, dir_fd=handle)
        finally:
            os.close(handle)
        handle = inner
    return handle


@contextmanager
def _told(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise _failure(path, error) from None


def _failure(path: str, error: OSError) -> StepFailed:
    match error.errno:
        case errno.ENOSPC | errno.EDQUOT | errno.EFBIG:
            told = f"No space left in {path}, so nothing was delivered; free space, and run the pipeline again"
            return StepFailed("FULL_THERE", told, passing=True)
        case errno.EACCES | errno.EPERM | errno.EROFS:
            return StepFailed("DENIED_THERE", f"The worker's user has no write permission for {path}; grant it")
        case errno.ELOOP | errno.ENOTDIR:
            told = (
                f"{path} contains a symbolic link or a file in place of a folder; remove it, or choose another target"
            )
            return StepFailed("FOLDER_REFUSED", told)
    return StepFailed("FAILED_THERE", f"Cannot write to {path}: {error.strerror}", passing=True)


class LocalRunFolder:
    """The pipeline's folder, and the run's folder in it, which is published by a rename."""

    def __init__(self, context: Context, handle: int, own: str, fence: int) -> None:
        self._context, self._handle, self._own = context, handle, own
        self._aside = f".{own}-{fence}"

    def left(self) -> dict[str, list[str]]:
        """Staged files: no other run of this pipeline and no earlier attempt of this run is active."""
        return {name: [name] for name in self._names(_ASIDE)}

    def others(self) -> dict[str, list[str]]:
        """The completed folders of other runs."""
        return {name: [name] for name in self._names(_OURS) if name != self._own}

    def _names(self, pattern: re.Pattern[str]) -> list[str]:
        there = os.listdir(self._handle)  # noqa: PTH208 - of a handle
        return sorted(value for value in there if pattern.fullmatch(value))

    def remove(self, result: dict[str, list[str]]) -> None:
        """Remove folders, and anything else with such a name. Symbolic links are removed, not followed."""
        for value in result:
            with suppress(FileNotFoundError):
                facts = os.stat(value, dir_fd=self._handle, follow_symlinks=False)
                if stat.S_ISDIR(facts.st_mode):
                    shutil.rmtree(value, dir_fd=self._handle)
                else:
                    os.unlink(value, dir_fd=self._handle)
            crash_point("delivery: one removed")

    def manifest(self) -> bytes | None:
        """The manifest of this run; None if it is not complete."""
        try:
            inner = os.open(self._own, _FOLDER, dir_fd=self._handle)
        except FileNotFoundError:
            return None
        try:
            with os.fdopen(os.open(MANIFEST, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=inner), "rb") as file:
                return file.read()
        finally:
            os.close(inner)

    def put(self, exported: Exported, suffix: str) -> list[dict[str, Any]]:
        """Copy the files into a staging folder."""
        os.mkdir(self._aside, dir_fd=self._handle)
        inner = os.open(self._aside, _FOLDER, dir_fd=self._handle)
        result = []
        try:
            for number, file in enumerate(exported.files):
                self._context.check_stopped()
                name = f"part-{number:05}.{suffix}"
                with file.open("rb") as source:
                    _write(inner, name, source)
                crash_point("delivery: a file put")
                result.append({"name": name, "bytes": file.stat().st_size})
        finally:
            os.close(inner)
        return result

    def appear(self, manifest: bytes) -> bool:
        """Rename the staging folder to its final name, which publishes all files atomically."""
        try:
            inner = os.open(self._aside, _FOLDER, dir_fd=self._handle)
            try:
                _write(inner, MANIFEST, BytesIO(manifest))
                os.fsync(inner)
            finally:
                os.close(inner)
            os.rename(self._aside, self._own, src_dir_fd=self._handle, dst_dir_fd=self._handle)
        except OSError as error:
            self.give_up()
            if error.errno not in _THERE:
                raise
            return False
        os.fsync(self._handle)
        return True

    def point(self, manifest: bytes | None) -> None:
        """Replace the file by an atomic rename."""
        if manifest is None:
            with suppress(FileNotFoundError):
                os.unlink(LATEST, dir_fd=self._handle)
            return
        beside = f"{self._aside}.latest"
        with suppress(FileNotFoundError):
            os.unlink(beside, dir_fd=self._handle)
        try:
            _write(self._handle, beside, BytesIO(manifest))
            os.rename(beside, LATEST, src_dir_fd=self._handle, dst_dir_fd=self._handle)
        except OSError:
            with suppress(OSError):
                os.unlink(beside, dir_fd=self._handle)
            raise
        os.fsync(self._handle)

    def give_up(self) -> None:
        """Remove the staging folder."""
        shutil.rmtree(self._aside, dir_fd=self._handle, ignore_errors=True)


def _write(folder: int, name: str, source: Any) -> None:
    """Write a new file, and sync it to disk."""
    with os.fdopen(os.open(name, _NEW, 0o644, dir_fd=folder), "wb") as file:
        shutil.copyfileobj(source, file, 1 << 20)
        file.flush()
        os.fsync(file.fileno())
