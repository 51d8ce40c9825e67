"""The files of one table: whether a location lies below its root, and a FileIO that opens nothing else.

A commit can name any location, in any spelling. One that could be read as another place than it seems is refused.
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
    """A location that is not, or not certainly, below the root."""


def normal(location: Any) -> str:
    """One spelling for one place, or Outside for a location that could mean two."""
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
    """Refuse a path that leads up or nowhere, however it is encoded."""
    decoded = path
    for _ in range(_ROUNDS):
        parts = decoded.replace("\\", "/").strip("/").split("/")
        if any(part in {".", ".."} for part in parts) or "\0" in decoded or "#" in decoded or "?" in decoded:
            raise OutsideRoot(location)
        decoded = unquote(decoded)


class Root:
    """The root of one table, and the folder of its metadata."""

    def __init__(self, store: Store, table_id: str) -> None:
        self.store, self.table_id = store, table_id
        self.url = f"{store.url}/{table_root(table_id)}"
        self._base = normal(store.url)
        self._folder = f"{self._base}/{table_root(table_id)}/"
        self._metadata = f"{self._base}/{metadata_root(table_id)}/"
        self._real = cache(os.path.realpath)

    def path(self, location: Any, *, or_metadata: bool = False) -> str:
        """A location below the root as a path in the store, or Outside."""
        result = normal(location)
        within = self._folder if result.startswith(self._folder) else self._metadata
        if not result.startswith(within) or (within == self._metadata and not or_metadata):
            raise OutsideRoot(str(location))
        if "//" in result[len(self._base) :] or result.endswith("/"):
            raise OutsideRoot(str(location))
        self._refuse_links(result, within)
        return result[len(self._base) + 1 :]

    def _refuse_links(self, result: str, within: str) -> None:
        """Refuse what a link leads out of the root; only a folder has links."""
        if not isinstance(self.store, FolderStore):
            return
        path, root = result.removeprefix("file://"), within.removeprefix("file://").rstrip("/")
        top = os.path.realpath(self.store.root) + root[len(str(self.store.root)) :]
        folder = self._real(os.path.dirname(path))  # noqa: PTH120 - thousands of them, and pathlib is slow
        if (folder != top and not folder.startswith(top + "/")) or os.path.islink(path):  # noqa: PTH114 - as above
            raise OutsideRoot(result)


def table_io(store: Store, table_id: str) -> "FileIO":
    """A FileIO for PyIceberg that reads files below the table's root and its metadata folder, and writes nothing."""
    from pyiceberg.io import FileIO, InputFile, InputStream, OutputFile

    root = Root(store, table_id)

    class Input(InputFile):
        """A file of the table."""

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
        """The files of the table."""

        def new_input(self, location: str) -> InputFile:
            return Input(location)

        def new_output(self, location: str) -> OutputFile:
            raise PermissionError(f"nothing is written here: {location}")

        def delete(self, location: str | InputFile | OutputFile) -> None:
            raise PermissionError(f"nothing is deleted here: {location}")

    return TableFiles()


def size(store: Store, path: str) -> int:
    """The size of a file of a table, whose name its engine chose; FileNotFoundError if there is none."""
    if isinstance(store, FolderStore):
        return (store.root / path).stat().st_size
    try:
        return store.size_named(path) if isinstance(store, BucketStore) else store.size(path)
    except (Missing, ValueError):
        raise FileNotFoundError(path) from None


def remove(store: Store, paths: Sequence[str]) -> None:
    """Delete files of a table, as far as they are there; whoever asks has made sure that they lie where they may."""
    if isinstance(store, BucketStore):
        store.delete_named(paths)
        return
    for path in paths:
        if isinstance(store, FolderStore):
            (store.root / path).unlink(missing_ok=True)
        else:
            store.delete(path)


def opened(store: Store, path: str) -> Any:
    """A file of a table, to read and seek in; FileNotFoundError if there is none."""
    if isinstance(store, FolderStore):
        return (store.root / path).open("rb")
    try:
        return store.open_named(path) if isinstance(store, BucketStore) else store.open(path)
    except (Missing, ValueError):
        raise FileNotFoundError(path) from None
