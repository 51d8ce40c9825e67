"""A folder of this machine, below one that the settings allow. Links on the way are not followed."""

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
    """The folder, made if it is not there; what the machine refuses is a StepFailed."""
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
    """A folder below another, made if it is not there, as a handle that no link can turn elsewhere any more."""
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
            told = f"There is no room left in {path}, so nothing was delivered; make some, and run it again"
            return StepFailed("FULL_THERE", told, passing=True)
        case errno.EACCES | errno.EPERM | errno.EROFS:
            return StepFailed("DENIED_THERE", f"The worker's user may not write into {path}; let it")
        case errno.ELOOP | errno.ENOTDIR:
            told = f"The target leads over a link, or over a file, in {path}; choose another, or remove it there"
            return StepFailed("FOLDER_REFUSED", told)
    return StepFailed("FAILED_THERE", f"{path} cannot be written to: {error.strerror}", passing=True)


class LocalRunFolder:
    """The pipeline's folder, and in it that of this run, which comes there by one renaming."""

    def __init__(self, context: Context, handle: int, own: str, fence: int) -> None:
        self._context, self._handle, self._own = context, handle, own
        self._aside = f".{own}-{fence}"

    def left(self) -> dict[str, list[str]]:
        """What was put aside: no other run of this pipeline is under way, and no earlier try of this."""
        return {name: [name] for name in self._names(_ASIDE)}

    def others(self) -> dict[str, list[str]]:
        """What other runs have in place."""
        return {name: [name] for name in self._names(_OURS) if name != self._own}

    def _names(self, pattern: re.Pattern[str]) -> list[str]:
        there = os.listdir(self._handle)  # noqa: PTH208 - of a handle
        return sorted(value for value in there if pattern.fullmatch(value))

    def remove(self, result: dict[str, list[str]]) -> None:
        """Remove folders, and whatever else has such a name. Links are removed, not followed."""
        for value in result:
            with suppress(FileNotFoundError):
                facts = os.stat(value, dir_fd=self._handle, follow_symlinks=False)
                if stat.S_ISDIR(facts.st_mode):
                    shutil.rmtree(value, dir_fd=self._handle)
                else:
                    os.unlink(value, dir_fd=self._handle)
            crash_point("delivery: one removed")

    def manifest(self) -> bytes | None:
        """What is in place of this run."""
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
        """Copy the files into a folder beside."""
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
        """Rename the folder beside to what it is to be called: all of it is there, or nothing."""
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
        """Replace the file by renaming another to it."""
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
        """Remove what was put aside."""
        shutil.rmtree(self._aside, dir_fd=self._handle, ignore_errors=True)


def _write(folder: int, name: str, source: Any) -> None:
    """Write a new file, durably."""
    with os.fdopen(os.open(name, _NEW, 0o644, dir_fd=folder), "wb") as file:
        shutil.copyfileobj(source, file, 1 << 20)
        file.flush()
        os.fsync(file.fileno())
