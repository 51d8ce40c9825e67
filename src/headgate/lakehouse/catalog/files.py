"""The files of one table: whether a location is below its root, and a FileIO limited to its files.

A commit can name any location in any spelling. Ambiguous locations are refused.
"""

import os
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from headgate.warehouse.bucket import BucketStore
from headgate.warehouse.folder import FolderStore
from headgate.warehouse.locations import metadata_root, table_root
from headgate.warehouse.store import Missing, Store

if TYPE_CHECKING:
    from pyiceberg.io import FileIO

MAX_LENGTH = 2000
_ROUNDS = 4


class OutsideRoot(Exception):
    """A location that is outside of the root or ambiguous."""


def normal(location: Any) -> str:
    """The canonical spelling of a location; raises OutsideRoot if it is ambiguous."""
    if not isinstance(location, str) or len(location) > MAX_LENGTH or not location.isprintable() or "\\" in location:
        raise OutsideRoot(repr(location)[:200])
    scheme, colon, rest = location.partition(":")
    if not colon or not rest.startswith("/"):
        raise OutsideRoot(location)
    scheme = scheme.lower()
    if scheme == "file":
        path = "/" + rest.lstrip("/") if not rest.startswith("//") or rest.startswith("///") else ""
    else:
        path = rest if rest.startswith("//") and not rest.startswith("///") else ""
    if not path:
        raise OutsideRoot(location)
    _refuse_dots(path.removeprefix("//"), location)
    return f"{scheme}://{path.removeprefix('//')}"


def _refuse_dots(path: str, location: str) -> None:
    """Refuse `.` and `..` in a path in any encoding."""
    decoded = path
    for _ in range(_ROUNDS):
        parts = decoded.replace("\\", "/").strip("/").split("/")
        if any(part in {".", ".."} for part in parts) or "\0" in decoded or "#" in decoded or "?" in decoded:
            raise OutsideRoot(location)
        decoded = unquote(decoded)


class Root:
    """The root and the metadata folder of one table."""

    def __init__(self, store: Store, table_id: str) -> None:
        self.store, self.table_id = store, table_id
        self.url = f"{store.url}/{table_root(table_id)}"
        self._base = normal(store.url)
        self._folder = f"{self._base}/{table_root(table_id)}/"
        self._metadata = f"{self._base}/{metadata_root(table_id)}/"
        self._real = cache(os.path.realpath)

    def path(self, location: Any, *, or_metadata: bool = False) -> str:
        """A location below the root as a path in the store; otherwise raises OutsideRoot."""
        result = normal(location)
        within = self._folder if result.startswith(self._folder) else self._metadata
        if not result.startswith(within) or (within == self._metadata and not or_metadata):
            raise OutsideRoot(str(location))
        if "//" in result[len(self._base) :] or result.endswith("/"):
            raise OutsideRoot(str(location))
        self._refuse_links(result, within)
        return result[len(self._base) + 1 :]

    def _refuse_links(self, result: str, within: str) -> None:
        """Refuse symbolic links that lead out of the root; they exist only in local folders."""
        if not isinstance(self.store, FolderStore):
            return
        path, root = result.removeprefix("file://"), within.removeprefix("file://").rstrip("/")
        top = os.path.realpath(self.store.root) + root[len(str(self.store.root)) :]
        folder = self._real(os.path.dirname(path))  # noqa: PTH120 - thousands of them, and pathlib is slow
        if (folder != top and not folder.startswith(top + "/")) or os.path.islink(path):  # noqa: PTH114 - as above
            raise OutsideRoot(result)


def table_io(store: Store, table_id: str) -> "FileIO":
    """A read-only PyIceberg FileIO limited to the table's root and metadata folder."""
    from pyiceberg.io import FileIO, InputFile, InputStream, OutputFile

    root = Root(store, table_id)

    class Input(InputFile):
        """An input file of the table."""

        def __init__(self, location: str) -> None:
            super().__init__(location)
            self._path = root.path(location, or_metadata=True)

        def __len__(self) -> int:
            return size(store, self._path)

        def exists(self) -> bool:
            try:
                return len(self) >= 0
            except FileNotFoundError:
                return False

        def open(self, seekable: bool = True) -> InputStream:
            return opened(store, self._path)  # type: ignore[no-any-return]

    class TableFiles(FileIO):
        """A FileIO limited to the table's files."""

        def new_input(self, location: str) -> InputFile:
            return Input(location)

        def new_output(self, location: str) -> OutputFile:
            raise PermissionError(f"nothing is written here: {location}")

        def delete(self, location: str | InputFile | OutputFile) -> None:
            raise PermissionError(f"nothing is deleted here: {location}")

    return TableFiles()


def size(store: Store, path: str) -> int:
    """The size of a data file, whose name an engine chose; FileNotFoundError if it does not exist."""
    if isinstance(store, FolderStore):
        return (store.root / path).stat().st_size
    try:
        return store.size_named(path) if isinstance(store, BucketStore) else store.size(path)
    except (Missing, ValueError):
        raise FileNotFoundError(path) from None


def remove(store: Store, paths: Sequence[str]) -> None:
    """Delete those of a table's files that exist. The caller has checked their locations."""
    if isinstance(store, BucketStore):
        store.delete_named(paths)
        return
    for path in paths:
        if isinstance(store, FolderStore):
            (store.root / path).unlink(missing_ok=True)
        else:
            store.delete(path)


def opened(store: Store, path: str) -> Any:
    """Open a table's file for reading and seeking; FileNotFoundError if it does not exist."""
    if isinstance(store, FolderStore):
        return (store.root / path).open("rb")
    try:
        return store.open_named(path) if isinstance(store, BucketStore) else store.open(path)
    except (Missing, ValueError):
        raise FileNotFoundError(path) from None
