"""Read files that untrusted code wrote: regular files only, no symbolic links, with size limits."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class NotRegularFile(Exception):
    """Something that is neither a folder nor a regular file, or cannot be read as one."""


def opened(file: Path) -> BinaryIO:
    """A regular file, to be read; Strange for anything else. Folders on the way must be ours."""
    try:
        handle = os.open(file, _FLAGS)
    except OSError:
        raise NotRegularFile(file.name) from None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise NotRegularFile(file.name)
    return os.fdopen(handle, "rb")


def content(file: Path, most: int) -> bytes:
    """The content of a file; NotRegularFile if it is larger than this."""
    with opened(file) as source:
        data = source.read(most + 1)
    if len(data) > most:
        raise NotRegularFile(file.name)
    return data


def entries(folder: Path, most: int) -> Iterator[os.DirEntry[str]]:
    """What a folder holds, by names; nothing if it is not there, or is a link. Strange if it is too much."""
    if folder.is_symlink() or not folder.is_dir():
        return
    members = []
    with os.scandir(folder) as listed:
        for entry in listed:
            members.append(entry)
            if len(members) > most:
                raise NotRegularFile(folder.name)
    yield from sorted(members, key=lambda entry: entry.name)
