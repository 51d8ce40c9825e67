"""Who owns files when Headgate runs as root. Only the standard library.

Sandboxes of a root worker run as a user without rights (`spark.sandbox_uid`). What they read and write has to belong to
that user, and what root adds to their folders later too: it belongs to whom the folder belongs. Any other user owns
what it makes already; for it, nothing here does anything.
"""

import os
import stat
import struct
from contextlib import suppress
from pathlib import Path

_ACL, _NOBODY = "system.posix_acl_default", 0xFFFFFFFF


def is_root() -> bool:
    """Whether this process runs as root."""
    return os.geteuid() == 0


def give(user: int, *paths: Path) -> None:
    """Change the owner of paths recursively. Symbolic links are not followed."""
    if not is_root():
        return
    for path in paths:
        with suppress(FileNotFoundError):
            if path.is_dir() and not path.is_symlink():
                _give_tree(user, path)
            os.chown(path, user, user, follow_symlinks=False)


def owned(user: int, folder: Path) -> None:
    """Create a folder, and change its owner recursively; the folder itself changes last."""
    folder.mkdir(parents=True, exist_ok=True)
    if is_root() and folder.stat().st_uid != user:
        give(user, folder)


def share(user: int, folder: Path) -> None:
    """Let a user write below a folder what root makes there from now on, where the file system keeps access lists.

    Other engines that root runs write tables too, and know nothing of that user.
    """
    if not is_root():
        return
    mode = folder.stat().st_mode
    entries = ((1, 7, _NOBODY), (2, 7, user), (4, mode >> 3 & 7, _NOBODY), (16, 7, _NOBODY), (32, mode & 7, _NOBODY))
    with suppress(OSError):
        os.setxattr(folder, _ACL, struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries))


def make_folder(path: Path, mode: int = 0o777) -> None:
    """Create a folder and its missing parents, each owned like its parent."""
    missing = [path]
    while not missing[-1].parent.exists():
        missing.append(missing[-1].parent)
    for folder in reversed(missing):
        with suppress(FileExistsError):
            folder.mkdir(mode=mode)
            inherit(folder)


def inherit(path: Path) -> None:
    """Give a new file or folder the owner of its parent folder."""
    if is_root():
        about = path.parent.stat()
        os.chown(path, about.st_uid, about.st_gid, follow_symlinks=False)


def _give_tree(user: int, root: Path) -> None:
    # By handles: a folder that becomes a link meanwhile leads nowhere. A file with two names may be one of elsewhere.
    for _, folders, files, handle in os.fwalk(root, topdown=False, follow_symlinks=False):
        for name in (*folders, *files):
            with suppress(FileNotFoundError):
                about = os.stat(name, dir_fd=handle, follow_symlinks=False)
                if stat.S_ISDIR(about.st_mode) or about.st_nlink == 1:
                    os.chown(name, user, user, dir_fd=handle, follow_symlinks=False)
