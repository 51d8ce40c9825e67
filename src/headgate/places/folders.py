"""Folders on this machine: below those that the settings allow, whatever links lie on the way."""

from collections.abc import Sequence
from pathlib import Path, PurePosixPath


class OutOfBounds(ValueError):
    """A folder that the settings do not allow, or that leads out of what they allow; says what to do."""


def check_written(path: str, allowed: Sequence[Path], setting: str) -> None:
    """Judge a folder by its name alone, as at a save: OutOfBounds if no setting allows it."""
    if not any(PurePosixPath(path).is_relative_to(folder) for folder in allowed):
        known = ", ".join(str(folder) for folder in allowed)
        there = f"this installation allows {known}" if known else "this installation allows none"
        raise OutOfBounds(f"{path} is not below a folder that `{setting}` lists; {there}. An operator can add one")


def opened(path: str, allowed: Sequence[Path], setting: str) -> Path:
    """A folder as it really is, all links followed, if it lies below an allowed one; OutOfBounds otherwise.

    Whoever goes further down must ask `inside` of each file: links can lie anywhere.
    """
    check_written(path, allowed, setting)
    found = Path(path).resolve()
    if not any(found.is_relative_to(folder.resolve()) for folder in allowed):
        raise OutOfBounds(f"{path} leads out of the folders that `{setting}` lists")
    if not found.is_dir():
        raise OutOfBounds(f"{path} is not a folder on the worker's machine")
    return found


def inside(file: Path, root: Path) -> bool:
    """Whether a file, all links followed, lies below this root, which was opened before."""
    return file.resolve().is_relative_to(root)
